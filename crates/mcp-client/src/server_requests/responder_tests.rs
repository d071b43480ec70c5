use std::{collections::VecDeque, sync::Mutex};

use async_trait::async_trait;
use futures_util::FutureExt;
use rmcp::model::RequestId;
use switchboard_domain::{
    ChatResponse, Elicitation, ElicitationAnswer, ElicitationForm, SampleError, SampleRequest,
};
use tokio::time::Instant;

use super::*;
use crate::{
    server_requests::{
        elicitation::ElicitationParams,
        pending_requests::register_pending,
        url_elicitation::{VisitedUrls, parse_url_elicitations},
    },
    transport::open_requests::OpenRequests,
};

/// Returns the given answers, one per elicitation, and records the elicitations. Later elicitations
/// get no answer.
#[derive(Default)]
struct User {
    answers: Mutex<VecDeque<ElicitationAnswer>>,
    asked: Mutex<Vec<Elicitation>>,
}

impl User {
    fn with_answers(answers: impl IntoIterator<Item = ElicitationAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<Elicitation> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Elicitor for User {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        self.asked.lock().unwrap().push(elicitation.clone());
        let next = self.answers.lock().unwrap().pop_front();
        match next {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn config() -> ServerConfig {
    let mut config = ServerConfig::stdio("crm", "c", [""; 0]);
    config.secrets = vec!["sk-secret-1".into()];
    config
}

fn responder(config: &ServerConfig, user: Option<Arc<User>>) -> RequestResponder {
    let handlers = ClientHandlers {
        elicitor: user.map(|user| user as Arc<dyn Elicitor>),
        ..ClientHandlers::default()
    };
    RequestResponder::new(config, &handlers)
}

fn accept(content: Value) -> ElicitationAnswer {
    let Value::Object(content) = content else {
        panic!("not an object: {content}");
    };
    ElicitationAnswer::Accept { content }
}

/// Returns the context of a request that may belong to one of two calls.
fn unattributed() -> RequestContext {
    let open = OpenRequests::default();
    for id in 0..2 {
        open.record_request(RequestId::Number(id), Some(Arc::default()), None);
    }
    open.candidate_calls()
}

/// Returns the context of the call with this key.
fn of_call(key: &str) -> RequestContext {
    RequestContext::from_call(&CallContext::new(Some(key.to_owned())))
}

fn form() -> Value {
    json!({
        "message": "Who? (sk-secret-1)",
        "requestedSchema": {
            "type": "object",
            "properties": {"age": {"type": "integer", "default": 36}, "name": {"type": "string"}},
            "required": ["name"],
        },
    })
}

fn url_elicitations(ids: &[&str]) -> Vec<ElicitationParams> {
    let elicitations: Vec<Value> = ids
        .iter()
        .map(|id| {
            json!({"mode": "url", "message": "Log in", "url": format!("https://h/{id}"), "elicitationId": id})
        })
        .collect();
    let error = ErrorData::new(
        ErrorCode(-32042),
        "log in first",
        Some(json!({"elicitations": elicitations})),
    );
    parse_url_elicitations(&error).unwrap()
}

#[tokio::test]
async fn three_invalid_answers_cancel_the_elicitation() {
    let wrong = || accept(json!({"name": 1}));
    let user = User::with_answers([wrong(), wrong(), wrong(), wrong()]);
    let responder = responder(&config(), Some(user.clone()));
    let from = unattributed();
    let answer = responder.answer_elicitation(form(), &from).await;
    assert_eq!(answer.unwrap(), json!({"action": "cancel"}));
    let asked = user.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0].message, "Who? ([redacted])");
}

#[tokio::test]
async fn an_invalid_elicitation_is_an_error() {
    let user = User::with_answers([]);
    let responder = responder(&config(), Some(user.clone()));
    for elicitation in [
        json!({"message": "?"}),
        json!({"message": "?", "requestedSchema": {"properties": {"a": {"type": "object"}}}}),
        json!({"mode": "url", "message": "?", "url": "file:///etc/passwd"}),
        json!({"mode": "telepathy", "message": "?"}),
        json!("?"),
    ] {
        let error = responder
            .answer_elicitation(elicitation.clone(), &unattributed())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{elicitation}");
    }
    assert!(user.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_times_out() {
    let responder = responder(&config(), Some(User::with_answers([])));
    let begun = Instant::now();
    let from = unattributed();
    let answer = responder.answer_elicitation(form(), &from).await;
    assert_eq!(answer.unwrap(), json!({"action": "cancel"}));
    assert_eq!(begun.elapsed(), ClientHandlers::default().answer_timeout);
    assert_eq!(responder.pending.borrow().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_url_elicitation_waits_for_its_completion() {
    let user = User::with_answers([accept(json!({})), accept(json!({}))]);
    let responder = responder(&config(), Some(user.clone()));
    let mut visited = VisitedUrls::default();
    let begun = Instant::now();
    let context = unattributed();
    let mut visit =
        Box::pin(responder.ask_to_open_urls(url_elicitations(&["a", "b"]), &mut visited, &context));
    assert!((&mut visit).now_or_never().is_none());
    assert_eq!(
        user.asked()[0].form,
        ElicitationForm::Url {
            url: "https://h/a".to_owned(),
            id: "a".to_owned()
        }
    );
    responder.complete_url_elicitation("b");
    responder.complete_url_elicitation("unknown");
    assert!((&mut visit).now_or_never().is_none());
    responder.complete_url_elicitation("a");
    visit.await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // Further errors with the same URL wait again without a new elicitation, up to a limit.
    let mut waits = Vec::new();
    let error = loop {
        let begun = Instant::now();
        match responder
            .ask_to_open_urls(url_elicitations(&["a"]), &mut visited, &unattributed())
            .await
        {
            Ok(()) => waits.push(begun.elapsed().as_secs()),
            Err(error) => break error,
        }
    };
    assert_eq!(waits, [10, 20, 40, 60, 60, 60, 60]);
    assert_eq!(user.asked().len(), 2);
    assert!(error.starts_with("the user agreed"), "{error}");
}

#[tokio::test]
async fn input_of_unknown_kinds_is_collected() {
    let user = User::with_answers([accept(json!({"name": "Ada"}))]);
    let responder = responder(&config(), Some(user.clone()));
    let required = json!({
        "resultType": "input_required",
        "requestState": "s-1",
        "inputRequests": {
            "who": {"method": "elicitation/create", "params": {
                "message": "?",
                "requestedSchema": {"properties": {"name": {"type": "string", "format": "nickname"}}},
            }},
            "where": {"method": "roots/list"},
        },
    });
    let input = responder
        .collect_input(&required, &of_call("run/1/a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(input.state.as_deref(), Some("s-1"));
    assert_eq!(
        serde_json::to_value(input.responses).unwrap(),
        json!({
            "who": {"action": "accept", "content": {"name": "Ada"}},
            "where": {"roots": []},
        })
    );
    assert_eq!(user.asked()[0].call.as_deref(), Some("run/1/a"));
    let unknown = json!({
        "resultType": "input_required", "inputRequests": {"x": {"method": "mind/read"}},
    });
    let error = responder
        .collect_input(&unknown, &unattributed())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
    assert!(
        responder
            .collect_input(&json!({"content": []}), &unattributed())
            .await
            .is_none()
    );
}

/// Rejects all sampling requests.
struct RejectingSampler;

#[async_trait]
impl Sampler for RejectingSampler {
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError> {
        Err(SampleError::NotAllowed {
            server: sample.server.clone(),
            reason: "rejected by the sampler".to_owned(),
        })
    }
}

#[tokio::test]
async fn sampling_requests_over_the_pending_limit_are_not_counted() {
    let mut config = config();
    config.sampling = Some(SamplingLimits {
        calls: 1,
        max_tokens: 100,
    });
    let handlers = ClientHandlers {
        sampler: Some(Arc::new(RejectingSampler)),
        ..ClientHandlers::default()
    };
    let responder = RequestResponder::new(&config, &handlers);
    let context = unattributed();
    let params = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}],
        "maxTokens": 10,
    });
    let sample = || responder.answer_request("sampling/createMessage", params.clone(), &context);
    let register = || register_pending(&responder.pending, &context);
    let pending: Vec<_> = std::iter::from_fn(register).collect();
    let error = sample().await.unwrap_err();
    assert_eq!(error.message, "too many pending requests");
    drop(pending);
    let error = sample().await.unwrap_err();
    assert_eq!(error.message, "rejected by the sampler");
    let error = sample().await.unwrap_err();
    assert_eq!(error.message, "the limit of 1 model answers is reached");
}

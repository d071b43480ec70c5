use std::collections::VecDeque;

use async_trait::async_trait;
use futures_util::FutureExt;
use rmcp::{model::RequestId, service::ServiceError};
use switchboard_domain::{
    ChatResponse, Elicitation, ElicitationAnswer, ElicitationForm, FinishReason, Message,
    SampleError, SampleRequest, ToolChoiceOutcome, ToolDefinition, Usage,
};
use tokio::time::Instant;

use super::*;
use crate::{
    server_requests::elicitation::{Visited, Visits},
    transport::open_requests::OpenRequests,
};

/// Answers what it was told to, and keeps what it was asked.
#[derive(Default)]
struct Person {
    answers: Mutex<VecDeque<ElicitationAnswer>>,
    asked: Mutex<Vec<Elicitation>>,
}

impl Person {
    fn who_says(answers: impl IntoIterator<Item = ElicitationAnswer>) -> Arc<Self> {
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
impl Elicitor for Person {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        self.asked.lock().unwrap().push(elicitation.clone());
        let next = self.answers.lock().unwrap().pop_front();
        match next {
            Some(answer) => answer,
            // Thinks about it.
            None => std::future::pending().await,
        }
    }
}

struct Model;

#[async_trait]
impl Sampler for Model {
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError> {
        let asked = sample.request.messages[0].text();
        if asked == "forbidden" {
            return Err(SampleError::NotAllowed {
                server: sample.server.clone(),
                reason: "not this".to_owned(),
            });
        }
        Ok(ChatResponse {
            message: Message::assistant(format!("{asked} to {}", sample.server)),
            finish: FinishReason::Stop,
            finish_raw: None,
            usage: Usage::default(),
            tool_choice: ToolChoiceOutcome::default(),
            warnings: Vec::new(),
            response_id: None,
            model: None,
        })
    }
}

fn config() -> ServerConfig {
    let mut config = ServerConfig::stdio("crm", "c", [""; 0]);
    config.secrets = vec!["sk-secret-1".into()];
    config
}

fn asks(config: &ServerConfig, person: Option<Arc<Person>>, model: bool) -> Asks {
    let answering = Answering {
        elicitor: person.map(|person| person as Arc<dyn Elicitor>),
        sampler: model.then(|| Arc::new(Model) as Arc<dyn Sampler>),
        ..Answering::default()
    };
    Asks::new(config, &answering)
}

fn accept(content: Value) -> ElicitationAnswer {
    let Value::Object(content) = content else {
        panic!("no object: {content}");
    };
    ElicitationAnswer::Accept { content }
}

/// Within one of two calls.
fn somewhere() -> Within {
    let open = OpenRequests::default();
    for id in 0..2 {
        open.begin(RequestId::Number(id), Some(Arc::default()));
    }
    Within::Unplaced(open.question(false))
}

/// Within the call with this key.
fn within(key: &str) -> Within {
    let definition = Arc::new(ToolDefinition::new("work", "", json!({})));
    Within::call(&Caller::of(&definition, Some(key.to_owned())))
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

fn visit_first(ids: &[&str]) -> Visits {
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
    Visits::of(&ServiceError::McpError(error)).unwrap()
}

#[test]
fn what_is_answered_is_offered_and_nothing_else() {
    let offered = |asks: &Asks| serde_json::to_value(asks.capabilities()).unwrap();
    let mut config = config();
    assert_eq!(offered(&asks(&config, None, true)), json!({}));
    let person = Person::who_says([]);
    assert_eq!(
        offered(&asks(&config, Some(person), false)),
        json!({"elicitation": {"form": {}, "url": {}}})
    );
    config.sampling = Some(SamplingLimits::default());
    config.roots = Some(Vec::new());
    assert_eq!(
        offered(&asks(&config, None, false)),
        json!({"roots": {"listChanged": true}})
    );
    assert_eq!(
        offered(&asks(&config, None, true)),
        json!({"sampling": {"tools": {}}, "roots": {"listChanged": true}})
    );
}

#[tokio::test]
async fn the_person_knows_who_asks_and_answers_what_fits() {
    let person = Person::who_says([
        accept(json!({"age": 1})),
        accept(json!({"name": "Ada", "age": "old"})),
        accept(json!({"name": "Ada", "pin": 7})),
    ]);
    let asks = asks(&config(), Some(person.clone()), false);
    let answer = asks.elicit(form(), &somewhere()).await.unwrap();
    assert_eq!(
        answer,
        json!({"action": "accept", "content": {"age": 36, "name": "Ada"}})
    );
    let asked = person.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|question| question.server == "crm"));
    assert_eq!(asked[0].message, "Who? ([redacted])");
    assert!(asked.iter().all(|question| question.call.is_none()));
    for (question, why) in [(&asked[1], "\"name\""), (&asked[2], "age: ")] {
        let (before, after) = question.message.split_once("\n\n").unwrap();
        assert_eq!(before, asked[0].message);
        assert!(after.contains(why), "{after}");
    }
}

#[tokio::test]
async fn an_answer_that_never_fits_is_none() {
    let wrong = || accept(json!({"name": 1}));
    let person = Person::who_says([wrong(), wrong(), wrong(), wrong()]);
    let asks = asks(&config(), Some(person.clone()), false);
    assert_eq!(
        asks.elicit(form(), &somewhere()).await.unwrap(),
        json!({"action": "cancel"})
    );
    assert_eq!(person.asked().len(), 3);
}

#[tokio::test]
async fn a_refusal_is_told_as_it_is() {
    let person = Person::who_says([ElicitationAnswer::Decline, ElicitationAnswer::Cancel]);
    let asks_one = asks(&config(), Some(person), false);
    assert_eq!(
        asks_one.elicit(form(), &somewhere()).await.unwrap(),
        json!({"action": "decline"})
    );
    assert_eq!(
        asks_one.elicit(form(), &somewhere()).await.unwrap(),
        json!({"action": "cancel"})
    );
    let nobody = asks(&config(), None, false);
    assert_eq!(
        nobody.elicit(form(), &somewhere()).await.unwrap(),
        json!({"action": "decline"})
    );
}

#[tokio::test]
async fn a_question_that_cannot_be_put_is_an_error_and_nobody_is_asked() {
    let person = Person::who_says([]);
    let asks = asks(&config(), Some(person.clone()), false);
    for question in [
        json!({"message": "?"}),
        json!({"message": "?", "requestedSchema": {"properties": {"a": {"type": "object"}}}}),
        json!({"mode": "url", "message": "?", "url": "file:///etc/passwd"}),
        json!({"mode": "telepathy", "message": "?"}),
        json!("?"),
    ] {
        let error = asks
            .elicit(question.clone(), &somewhere())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{question}");
    }
    assert!(person.asked().is_empty());
}

#[tokio::test]
async fn one_question_at_a_time_is_put_and_a_flood_is_not() {
    let person = Person::who_says([]);
    let asks = asks(&config(), Some(person.clone()), false);
    let place = somewhere();
    let mut long = form();
    long["message"] = "ä".repeat(5000).into();
    let mut questions: Vec<_> = (0..MOST_QUESTIONS)
        .map(|_| Box::pin(asks.elicit(long.clone(), &place)))
        .collect();
    for question in &mut questions {
        assert!(question.now_or_never().is_none());
    }
    assert_eq!(asks.asking().borrow().len(), MOST_QUESTIONS);
    assert_eq!(person.asked().len(), 1);
    assert_eq!(person.asked()[0].message.chars().count(), 2001);
    let too_many = asks.elicit(form(), &somewhere()).await.unwrap();
    assert_eq!(too_many, json!({"action": "cancel"}));
    // The next one is put when the first is withdrawn.
    drop(questions.remove(0));
    assert!((&mut questions[0]).now_or_never().is_none());
    assert_eq!(person.asked().len(), 2);

    let requests: serde_json::Map<String, Value> = (0..=MOST_QUESTIONS)
        .map(|n| {
            (
                n.to_string(),
                json!({"method": "elicitation/create", "params": form()}),
            )
        })
        .collect();
    let wants = json!({"resultType": "input_required", "inputRequests": requests});
    let error = asks
        .answer_json(&wants, &within("run/1/a"))
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        error.message.contains("17 things at once"),
        "{}",
        error.message
    );
    let typed: InputRequiredResult = serde_json::from_value(wants).unwrap();
    assert_eq!(asks.answer(typed, &somewhere()).await.unwrap_err(), error);
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_answer_has_gone_away() {
    let asks = asks(&config(), Some(Person::who_says([])), false);
    let begun = Instant::now();
    assert_eq!(
        asks.elicit(form(), &somewhere()).await.unwrap(),
        json!({"action": "cancel"})
    );
    assert_eq!(begun.elapsed(), Answering::default().patience);
    assert_eq!(asks.asking().borrow().len(), 0);
}

#[tokio::test]
async fn an_open_question_is_counted_until_it_is_answered_or_withdrawn() {
    let asks = asks(&config(), Some(Person::who_says([])), false);
    let (open, place) = (asks.asking(), somewhere());
    let mut question = Box::pin(asks.elicit(form(), &place));
    assert!((&mut question).now_or_never().is_none());
    assert_eq!(open.borrow().len(), 1);
    drop(question);
    assert_eq!(open.borrow().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_needs_a_visit_waits_for_the_server_to_be_done_with_it() {
    let person = Person::who_says([accept(json!({})), accept(json!({}))]);
    let asks = asks(&config(), Some(person.clone()), false);
    let mut visited = Visited::default();
    let begun = Instant::now();
    let place = somewhere();
    let mut visit = Box::pin(asks.visit(visit_first(&["a", "b"]), &mut visited, &place));
    assert!((&mut visit).now_or_never().is_none());
    assert_eq!(
        person.asked()[0].form,
        ElicitationForm::Url {
            url: "https://h/a".to_owned(),
            id: "a".to_owned()
        }
    );
    asks.done_with("b");
    asks.done_with("unknown");
    assert!((&mut visit).now_or_never().is_none());
    asks.done_with("a");
    visit.await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // The server has forgotten it, or means something else by it: it is waited for, and nobody is asked
    // again. In the end that is given up.
    let mut waits = Vec::new();
    let error = loop {
        let begun = Instant::now();
        match asks
            .visit(visit_first(&["a"]), &mut visited, &somewhere())
            .await
        {
            Ok(()) => waits.push(begun.elapsed().as_secs()),
            Err(error) => break error,
        }
    };
    assert_eq!(waits, [10, 20, 40, 60, 60, 60, 60]);
    assert_eq!(person.asked().len(), 2);
    assert_eq!(error.code, ErrorCode(-32042));
    assert!(
        error.message.starts_with("log in first (the person agreed"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_visit_that_is_declined_ends_the_call() {
    let declines = Person::who_says([ElicitationAnswer::Decline]);
    for (person, why) in [
        (Some(declines), "log in first (the person declined)"),
        (None, "log in first (nobody is there to be asked)"),
    ] {
        let asks = asks(&config(), person, false);
        let error = asks
            .visit(visit_first(&["a"]), &mut Visited::default(), &somewhere())
            .await
            .unwrap_err();
        assert_eq!(error.message, why);
    }
    let other = ErrorData::new(ErrorCode(-32042), "x", None);
    assert!(Visits::of(&ServiceError::McpError(other)).is_none());
}

#[tokio::test]
async fn a_model_is_asked_within_limits() {
    let ask = |text: &str| -> CreateMessageRequestParams {
        serde_json::from_value(json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
            "maxTokens": 10,
        }))
        .unwrap()
    };
    let mut config = config();
    let unasked = asks(&config, None, true)
        .sample(ask("?"), &somewhere())
        .await
        .unwrap_err();
    assert_eq!(unasked.code, ErrorCode::METHOD_NOT_FOUND);
    config.sampling = Some(SamplingLimits {
        calls: 2,
        max_tokens: 5,
    });
    let asks = asks(&config, None, true);
    let answer = asks.sample(ask("hello"), &somewhere()).await.unwrap();
    let answer = serde_json::to_value(answer).unwrap();
    assert_eq!(answer["content"]["text"], "hello to crm");
    let forbidden = asks
        .sample(ask("forbidden"), &somewhere())
        .await
        .unwrap_err();
    assert_eq!(
        (forbidden.code, forbidden.message.as_ref()),
        (ErrorCode(-1), "not this")
    );
    let exhausted = asks.sample(ask("hello"), &somewhere()).await.unwrap_err();
    assert_eq!(exhausted.code, ErrorCode(-1));
    assert!(
        exhausted.message.contains("all 2 answers"),
        "{}",
        exhausted.message
    );
}

#[tokio::test]
async fn what_the_protocols_types_cannot_read_is_answered_all_the_same() {
    let person = Person::who_says([accept(json!({"name": "Ada"}))]);
    let asks = asks(&config(), Some(person.clone()), false);
    let wants = json!({
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
    let known = asks
        .answer_json(&wants, &within("run/1/a"))
        .await
        .unwrap()
        .unwrap();
    let mut params = CallToolRequestParams::new("t");
    known.put_into(&mut params).await;
    assert_eq!(params.request_state.as_deref(), Some("s-1"));
    assert_eq!(
        serde_json::to_value(params.input_responses).unwrap(),
        json!({
            "who": {"action": "accept", "content": {"name": "Ada"}},
            "where": {"roots": []},
        })
    );
    assert_eq!(person.asked()[0].call.as_deref(), Some("run/1/a"));
    let unknown = json!({
        "resultType": "input_required", "inputRequests": {"x": {"method": "mind/read"}},
    });
    let error = asks
        .answer_json(&unknown, &somewhere())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
    assert!(
        asks.answer_json(&json!({"content": []}), &somewhere())
            .await
            .is_none()
    );
}

#[test]
fn roots_of_the_host_yield_to_those_of_a_server() {
    let root = |path: &str| Root::folder(std::path::Path::new(path)).unwrap();
    let answering = Answering {
        roots: Some(vec![root("/srv/a b")]),
        ..Answering::default()
    };
    let listed = |asks: &Asks| serde_json::to_value(asks.list_roots().unwrap()).unwrap();
    let of_host = Asks::new(&config(), &answering);
    assert_eq!(
        listed(&of_host),
        json!({"roots": [{"uri": "file:///srv/a%20b", "name": "a b"}]})
    );
    // Nothing was said to it yet.
    assert!(!of_host.set_roots(&[root("/srv/b")]));
    of_host.capabilities();
    assert!(!of_host.set_roots(&[root("/srv/b")]));
    assert!(of_host.set_roots(&[root("/srv/c")]));
    assert_eq!(listed(&of_host)["roots"][0]["name"], "c");
    let mut config = config();
    config.roots = Some(vec![root("/own")]);
    let own = Asks::new(&config, &answering);
    own.capabilities();
    assert!(!own.set_roots(&[root("/srv/c")]));
    assert_eq!(listed(&own)["roots"][0]["name"], "own");
    assert!(
        Asks::new(&super::tests::config(), &Answering::default())
            .list_roots()
            .is_err()
    );
    assert!(Root::folder(std::path::Path::new("relative")).is_none());
}

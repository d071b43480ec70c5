use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use switchboard_domain::{
    FinishReason, Message, ModelErrorKind, PartStart, ResponseAccumulator, ToolChoiceOutcome,
};
use tokio::time::Instant;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Result of one attempt: an error, or the events of an answer with an optional error after them.
type Script = Result<(Vec<ModelEvent>, Option<ModelErrorKind>), ModelError>;

/// A model that returns one of the given results for each attempt.
#[derive(Clone)]
struct Scripted {
    policy: RetryPolicy,
    attempts: Arc<Mutex<VecDeque<Script>>>,
}

impl Scripted {
    fn new(attempts: impl IntoIterator<Item = Script>) -> Self {
        let policy = RetryPolicy {
            min_delay: SECOND,
            max_delay: SECOND,
            ..RetryPolicy::default()
        };
        Self {
            policy,
            attempts: Arc::new(Mutex::new(attempts.into_iter().collect())),
        }
    }

    fn unused(&self) -> usize {
        self.attempts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

#[async_trait]
impl SingleAttemptModel for Scripted {
    fn retry_policy(&self) -> &RetryPolicy {
        &self.policy
    }

    async fn send_once(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let script = self
            .attempts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let (events, failure) = script.ok_or_else(|| error(ModelErrorKind::Configuration))??;
        let events = events.into_iter().map(Ok);
        let failure = failure.map(|kind| Err(error(kind)));
        Ok(Box::pin(stream::iter(events.chain(failure))))
    }
}

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new("acme", kind, "")
}

fn started() -> ModelEvent {
    ModelEvent::Started {
        response_id: None,
        model: None,
        tool_choice: ToolChoiceOutcome::default(),
    }
}

fn half_call() -> Vec<ModelEvent> {
    vec![
        started(),
        ModelEvent::PartStarted {
            index: 0,
            part: PartStart::ToolUse {
                id: "a".into(),
                name: "add".into(),
            },
        },
        ModelEvent::ToolInputDelta {
            index: 0,
            json: "{\"x\":".into(),
        },
    ]
}

fn text(text: &str) -> Vec<ModelEvent> {
    vec![
        started(),
        ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Text,
        },
        ModelEvent::TextDelta {
            index: 0,
            text: text.into(),
        },
    ]
}

fn whole(words: &str) -> Vec<ModelEvent> {
    let mut events = text(words);
    events.push(ModelEvent::Finished {
        reason: FinishReason::Stop,
        raw: None,
    });
    events
}

fn request() -> ChatRequest {
    ChatRequest::new([Message::user("Hello?")])
}

/// Returns the text of the answer or the error, and the numbers of the announced retries.
async fn outcome(model: &Scripted) -> (Result<String, ModelErrorKind>, Vec<u32>) {
    let mut announced = Vec::new();
    let mut stream = match stream_with_retry(model, &request()).await {
        Ok(stream) => stream,
        Err(error) => return (Err(error.kind), announced),
    };
    let mut answer = ResponseAccumulator::default();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                if let ModelEvent::Retrying { retry } = &event {
                    announced.push(retry.attempt);
                }
                answer.push(&event).unwrap();
            }
            Err(error) => return (Err(error.kind), announced),
        }
    }
    let answer = answer.finish().unwrap();
    assert!(answer.message.tool_uses().next().is_none());
    (Ok(answer.message.text()), announced)
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_output_is_repeated_after_any_transient_failure() {
    let stall = ModelErrorKind::Timeout {
        phase: switchboard_domain::TimeoutPhase::Idle,
        after: SECOND,
    };
    let failures: Vec<Script> = vec![
        Err(error(ModelErrorKind::Overloaded { retry_after: None })),
        Ok((Vec::new(), Some(ModelErrorKind::Interrupted))),
        Ok((vec![started()], Some(ModelErrorKind::Protocol))),
        Ok((half_call(), Some(ModelErrorKind::Interrupted))),
        Ok((half_call(), Some(stall))),
        Ok((
            text(""),
            Some(ModelErrorKind::Overloaded { retry_after: None }),
        )),
    ];
    for failure in failures {
        let name = format!("{failure:?}");
        let model = Scripted::new([failure, Ok((whole("Here."), None))]);
        let (answer, announced) = outcome(&model).await;
        assert_eq!(answer.as_deref(), Ok("Here."), "{name}");
        assert_eq!(announced, [2], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_emitted_output_is_not_repeated() {
    let failure = Ok((text("Half an ans"), Some(ModelErrorKind::Interrupted)));
    let model = Scripted::new([failure, Ok((whole("Another."), None))]);
    let (answer, announced) = outcome(&model).await;
    assert_eq!(answer, Err(ModelErrorKind::Interrupted));
    assert!(announced.is_empty());
    assert_eq!(model.unused(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_repeated() {
    let failures: Vec<Script> = vec![
        Err(error(ModelErrorKind::Authentication)),
        Err(error(ModelErrorKind::Connection).with_retry_hint(false, None)),
        Ok((half_call(), Some(ModelErrorKind::ContentFilter))),
    ];
    for failure in failures {
        let name = format!("{failure:?}");
        let model = Scripted::new([failure, Ok((whole("Another."), None))]);
        let (answer, announced) = outcome(&model).await;
        assert!(answer.is_err() && announced.is_empty(), "{name}");
        assert_eq!(model.unused(), 1, "{name}");
    }
}

/// Failures before an answer and within an answer count towards the same maximum of attempts.
#[tokio::test(start_paused = true)]
async fn all_attempts_count_as_one_request() {
    let busy = || Err(error(ModelErrorKind::Overloaded { retry_after: None }));
    let broken = || Ok((half_call(), Some(ModelErrorKind::Interrupted)));
    let model = Scripted::new([busy(), broken(), busy(), Ok((whole("Late."), None))]);
    let (answer, announced) = outcome(&model).await;
    let expected = ModelErrorKind::Overloaded { retry_after: None };
    assert_eq!(answer, Err(expected));
    assert_eq!(announced, [2, 3]);
    assert_eq!(model.unused(), 1);

    let mut once = Scripted::new([broken(), Ok((whole("Late."), None))]);
    once.policy.max_attempts = 1;
    let (answer, announced) = outcome(&once).await;
    assert_eq!(answer, Err(ModelErrorKind::Interrupted));
    assert!(announced.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_pause_is_announced_before_it_begins() {
    let retry_after = Some(30 * SECOND);
    let busy = ModelErrorKind::RateLimited { retry_after };
    let model = Scripted::new([Err(error(busy)), Ok((whole("Here."), None))]);
    let began = Instant::now();
    let mut stream = stream_with_retry(&model, &request()).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let ModelEvent::Retrying { retry } = first else {
        panic!("{first:?}");
    };
    assert_eq!((retry.attempt, retry.delay_ms), (2, 30_000));
    assert!(retry.reason.contains("rate limit"), "{}", retry.reason);
    assert!(stream.next().now_or_never().is_none());
    assert_eq!(
        model.unused(),
        1,
        "nothing is sent before the pause is over"
    );
    assert_eq!(stream.next().await.unwrap().unwrap(), started());
    assert!(began.elapsed() >= 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_longer_pause_than_the_policy_allows_ends_the_request() {
    let retry_after = Some(Duration::from_hours(1));
    let busy = ModelErrorKind::RateLimited { retry_after };
    let model = Scripted::new([Err(error(busy.clone())), Ok((whole("Late."), None))]);
    assert_eq!(outcome(&model).await.0, Err(busy));
    assert_eq!(model.unused(), 1);
}

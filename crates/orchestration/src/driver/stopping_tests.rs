//! Responses that are stopped while they stream.

use super::*;

/// A model with an endless response without output.
struct Endless(ModelId, ModelCapabilities);

#[async_trait]
impl ChatModel for Endless {
    fn id(&self) -> &ModelId {
        &self.0
    }
    fn capabilities(&self) -> &ModelCapabilities {
        &self.1
    }
    async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let usage = || ModelEvent::Usage {
            usage: Box::default(),
        };
        Ok(Box::pin(stream::repeat_with(move || Ok(usage()))))
    }
}

#[tokio::test]
async fn an_endless_answer_without_output_can_be_stopped() {
    let model = || {
        Arc::new(Endless(
            ModelId::new("t", "e"),
            ModelCapabilities::default(),
        ))
    };
    let mut options = RunOptions::default();
    options.limits.max_wall_time = Some(Duration::from_millis(20));
    let run = Agent::new(model()).with_options(options).ask("go").finish();
    assert_eq!(run.await.outcome(), Some(Outcome::Limited));

    let run = Agent::new(model()).ask("go");
    let cancel = run.cancel_handle();
    let stopper = std::thread::spawn(move || cancel.cancel());
    assert_eq!(run.finish().await.outcome(), Some(Outcome::Cancelled));
    stopper.join().unwrap();
}

#[tokio::test]
async fn a_cancellation_at_a_text_delta_precedes_an_error_after_it() {
    let mut events = text("so far");
    events.pop();
    events.push(Err(ModelError::new(
        "t",
        ModelErrorKind::Interrupted,
        "gone",
    )));
    let mut run = Agent::new(Scripted::new([events])).ask("go");
    let cancel = run.cancel_handle();
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::TextDelta { .. }) {
            cancel.cancel();
        }
    }
    assert_eq!(run.into_run().unwrap().outcome(), Some(Outcome::Cancelled));
}

/// On one thread the task that would stop the run must get its turn.
#[tokio::test]
async fn an_endless_answer_lets_other_tasks_run() {
    struct Talker(ModelId, ModelCapabilities);
    #[async_trait]
    impl ChatModel for Talker {
        fn id(&self) -> &ModelId {
            &self.0
        }
        fn capabilities(&self) -> &ModelCapabilities {
            &self.1
        }
        async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
            let word = || {
                Ok(ModelEvent::TextDelta {
                    index: 0,
                    text: "and ".into(),
                })
            };
            let begin = text("").into_iter().take(1);
            Ok(Box::pin(
                stream::iter(begin).chain(stream::repeat_with(word)),
            ))
        }
    }
    let model = Talker(ModelId::new("t", "w"), ModelCapabilities::default());
    let run = Agent::new(Arc::new(model)).ask("go");
    let cancel = run.cancel_handle();
    let other = tokio::spawn(async move { cancel.cancel() });
    assert_eq!(run.finish().await.outcome(), Some(Outcome::Cancelled));
    other.await.unwrap();
}

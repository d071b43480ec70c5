//! The spans of runs as the driver makes them.

use std::{collections::VecDeque, sync::Arc};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, MockToolHost, ModelCapabilities, ModelError, ModelEvent,
    ModelId, ModelStream, PartStart, ToolCatalog, ToolDefinition, ToolHostChanges, ToolOutput,
};

use super::{LOG, capture::CapturedTrace};
use crate::{Agent, RunEventKind};

/// A model that returns the answers of a list and then never answers.
struct Scripted {
    id: ModelId,
    capabilities: ModelCapabilities,
    answers: std::sync::Mutex<VecDeque<Vec<ModelEvent>>>,
}

#[async_trait]
impl ChatModel for Scripted {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let answer = self.answers.lock().unwrap().pop_front();
        Ok(match answer {
            Some(events) => Box::pin(stream::iter(events.into_iter().map(Ok))),
            None => Box::pin(stream::pending()),
        })
    }
}

fn agent(answers: impl IntoIterator<Item = Vec<ModelEvent>>) -> Agent {
    let mut host = MockToolHost::new();
    host.expect_tools().returning(|| {
        let tool = ToolDefinition::new("add", "", json!({"type": "object", "required": ["n"]}));
        ToolCatalog {
            tools: vec![Arc::new(tool)],
            problems: Vec::new(),
        }
    });
    host.expect_changes()
        .returning(|| Box::pin(stream::empty()) as ToolHostChanges);
    host.expect_call()
        .returning(|_| Ok(ToolOutput::text("what the tool said")));
    let model = Scripted {
        id: ModelId::new("acme", "large"),
        capabilities: ModelCapabilities::default(),
        answers: std::sync::Mutex::new(answers.into_iter().collect()),
    };
    Agent::new(Arc::new(model)).with_tools(Arc::new(host))
}

fn calls(ids: &[(&str, &str)]) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    for (index, (id, input)) in (0..).zip(ids) {
        let part = PartStart::ToolUse {
            id: (*id).into(),
            name: "add".into(),
        };
        events.push(ModelEvent::PartStarted { index, part });
        let json = (*input).into();
        events.push(ModelEvent::ToolInputDelta { index, json });
        events.push(ModelEvent::PartFinished { index });
    }
    let reason = FinishReason::ToolUse;
    events.push(ModelEvent::Finished { reason, raw: None });
    events
}

fn says(text: &str) -> Vec<ModelEvent> {
    let part = PartStart::Text;
    let (text, reason) = (text.into(), FinishReason::Stop);
    vec![
        ModelEvent::PartStarted { index: 0, part },
        ModelEvent::TextDelta { index: 0, text },
        ModelEvent::Finished { reason, raw: None },
    ]
}

/// Runs on this thread, which has the subscriber of the test.
fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work);
}

#[test]
fn parallel_calls_have_separate_spans_inside_the_run() {
    let captured = CapturedTrace::of(false, || {
        block_on(async {
            let first = calls(&[("a", r#"{"n": 1}"#), ("b", r#"{"n": 2}"#), ("c", "{}")]);
            let agent = agent([first, says("what the model said")]);
            agent.ask("what the person said").finish().await;
        });
    });
    let spans = captured.spans.lock().unwrap().clone();
    let run = spans.iter().position(|(parent, _)| parent.is_none());
    assert_eq!(
        run,
        Some(spans.len() - 1),
        "the span of the run ends last and has no parent"
    );
    let names: Vec<&str> = spans
        .iter()
        .map(|(_, fields)| fields["otel.name"].as_str())
        .collect();
    // The third call is invalid and is not executed.
    assert_eq!(
        names,
        [
            "chat large",
            "execute_tool add",
            "execute_tool add",
            "chat large",
            "invoke_agent switchboard"
        ]
    );
    for (parent, _) in &spans[..4] {
        assert_eq!(parent.as_deref(), Some("invoke_agent switchboard"));
    }
    assert!(
        spans
            .iter()
            .all(|(_, fields)| !fields.contains_key("error.type"))
    );
    assert_eq!(spans[1].1["gen_ai.tool.call.id"], "a");
    assert_eq!(spans[2].1["gen_ai.tool.call.id"], "b");
    let lines = captured.lines(LOG).join("\n");
    assert!(lines.contains("failure=invalid_input"), "{lines}");
    assert!(!format!("{captured:?}").contains(" said"), "{captured:?}");
}

#[test]
fn a_dropped_or_cancelled_run_closes_all_spans() {
    for dropped in [true, false] {
        let captured = CapturedTrace::of(false, || {
            block_on(async {
                let mut run = agent([]).ask("anybody there?");
                while let Some(event) = run.next().await {
                    if matches!(event.kind, RunEventKind::ModelCallStarted { .. }) {
                        if dropped {
                            // Once more, so that the model is being asked.
                            assert!(run.next().now_or_never().is_none());
                            break;
                        }
                        run.cancel_handle().cancel();
                    }
                }
            });
        });
        for name in ["chat large", "invoke_agent switchboard"] {
            let (_, span) = captured.span(name);
            assert_eq!(
                span["error.type"], "cancelled",
                "{name}, dropped: {dropped}"
            );
        }
    }
}

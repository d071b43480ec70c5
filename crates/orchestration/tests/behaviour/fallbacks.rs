//! Fallback models after failures.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_domain::{
    FinishReason, ModelCapabilities, ModelErrorKind, ModelEvent, ModelRetry, PartStart,
    ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges, ToolOutput,
};
use switchboard_orchestration::{
    Agent, Outcome, RunErrorKind, RunEventKind, RunOptions, strategy::formatter,
};

use crate::support::{
    Answer, Scripted, agent_with, ask, calls, echoing, gather_format, has, picked, streamed,
};

fn second(answers: impl IntoIterator<Item = Answer>) -> Arc<Scripted> {
    Scripted::named("second", ModelCapabilities::default(), answers)
}

#[tokio::test]
async fn a_fallback_model_continues_after_a_failure_without_output() {
    let first = Scripted::new([
        calls(&[("a", "srv__do", json!({"n": 1}))]),
        Answer::Fails(ModelErrorKind::Overloaded { retry_after: None }, "busy"),
    ]);
    let second = second([Answer::Says("From the second.")]);
    let tools = echoing(&["do"]);
    let agent = Agent::new(first)
        .with_fallback(second.clone())
        .with_tools(tools.clone());
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "From the second.");
    assert_eq!(&*report.model.name, "second");
    let reason = "the failed call brought nothing and does not count";
    assert_eq!(report.steps, 2, "{reason}");
    assert_eq!(tools.called().len(), 1, "no call is repeated");
    assert_eq!(
        second.request(0).messages.len(),
        3,
        "it reads the whole history"
    );
    let switched = has(&events, |kind| {
        matches!(kind, RunEventKind::ModelSwitched { to, reason, .. }
            if &*to.name == "second" && reason.contains("busy"))
    });
    assert!(switched);
}

#[tokio::test]
async fn no_call_is_repeated_after_visible_output() {
    let first = Scripted::new([Answer::Breaks("Half an ans")]);
    let second = second([]);
    let agent = Agent::new(first).with_fallback(second.clone());
    let (events, report) = ask(&agent, "go").await;
    let expected = (Outcome::Failed, "Half an ans");
    assert_eq!((report.outcome, report.answer.as_str()), expected);
    assert_eq!(streamed(&events), "Half an ans");
    assert_eq!(second.asked(), 0);
    assert_eq!(report.finish_reason, Some(FinishReason::Interrupted));
}

fn retrying(delay_ms: u64) -> ModelEvent {
    let retry = ModelRetry {
        attempt: 2,
        delay_ms,
        reason: "test: the answer was interrupted".into(),
    };
    ModelEvent::Retrying {
        retry: Box::new(retry),
    }
}

/// Returns the events of a tool call with an incomplete input.
fn half_call(name: &str, json: &str) -> Vec<ModelEvent> {
    let part = PartStart::ToolUse {
        id: "a".into(),
        name: name.into(),
    };
    let json = json.to_owned();
    vec![
        ModelEvent::PartStarted { index: 0, part },
        ModelEvent::ToolInputDelta { index: 0, json },
    ]
}

#[tokio::test]
async fn a_repeated_attempt_withdraws_the_started_call() {
    let mut events = half_call("srv__do", "{\"n\":");
    events.push(retrying(0));
    events.extend(half_call("srv__do", "{\"n\": 2}"));
    events.push(ModelEvent::PartFinished { index: 0 });
    events.push(ModelEvent::Finished {
        reason: FinishReason::ToolUse,
        raw: None,
    });
    let model = Scripted::new([Answer::Streams(events), Answer::Says("Done.")]);
    let tools = echoing(&["do"]);
    let (events, report) = ask(&Agent::new(model).with_tools(tools.clone()), "go").await;
    assert_eq!(report.answer, "Done.");
    assert_eq!(tools.called().len(), 1);
    assert_eq!(*report.tool_calls[0].input, json!({"n": 2}));
    let about_calls: Vec<String> = picked(&events, |kind| match kind {
        RunEventKind::ToolInputStarted { id, .. } => Some(format!("begun {id}")),
        RunEventKind::ModelCallRetried { step, attempt, .. } => {
            Some(format!("step {step}, attempt {attempt}"))
        }
        RunEventKind::ToolPlanned { id, .. } => Some(format!("planned {id}")),
        _ => None,
    });
    let expected = ["begun a", "step 1, attempt 2", "begun a", "planned a"];
    assert_eq!(about_calls, expected);
}

#[tokio::test]
async fn the_delay_before_another_attempt_is_emitted_at_its_start() {
    let model = Scripted::new([Answer::Waits(vec![retrying(30_000)])]);
    let agent = Agent::new(model);
    let mut events = agent.ask("go");
    let shown = loop {
        let event = events.next().await.expect("the run waits");
        if let RunEventKind::ModelCallRetried {
            delay_ms, reason, ..
        } = event.kind
        {
            break (delay_ms, reason);
        }
    };
    let expected = (30_000, "test: the answer was interrupted".to_owned());
    assert_eq!(shown, expected);
    events.cancel_handle().cancel_run();
    let last = events.map(|event| event.kind).collect::<Vec<_>>().await;
    let Some(RunEventKind::RunFinished { report }) = last.last() else {
        panic!("{last:?}");
    };
    assert_eq!(report.outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn an_incomplete_call_leads_to_the_fallback_model() {
    let first = Scripted::new([Answer::Streams(half_call("srv__do", "{\"n\":"))]);
    let second = second([Answer::Says("From the second.")]);
    let tools = echoing(&["do"]);
    let agent = Agent::new(first)
        .with_fallback(second)
        .with_tools(tools.clone());
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "From the second.");
    assert!(tools.called().is_empty() && report.tool_calls.is_empty());
    let switched = |kind: &RunEventKind| matches!(kind, RunEventKind::ModelSwitched { .. });
    assert!(has(&events, switched));
}

/// The run has already emitted the text in the input of the formatter call, but the provider treats
/// the input as incomplete.
#[tokio::test]
async fn an_emitted_answer_is_not_repeated() {
    let shown = r#"{"conversation": [{"type": "text", "content": "Half an ans"#;
    let mut form = half_call(formatter::TOOL, shown);
    form.push(retrying(0));
    let text = [
        ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Text,
        },
        ModelEvent::TextDelta {
            index: 0,
            text: "Half an ans".into(),
        },
        retrying(0),
    ];
    let formatted = gather_format();
    let capabilities = ModelCapabilities {
        structured_output: Some(false),
        forced_tool_choice: Some(true),
        tools: Some(true),
        ..ModelCapabilities::default()
    };
    let table = [
        (vec![Answer::Streams(text.to_vec())], RunOptions::default()),
        (
            vec![Answer::Says("Nothing to find."), Answer::Streams(form)],
            formatted,
        ),
    ];
    for (answers, options) in table {
        let model = Scripted::named("first", capabilities.clone(), answers);
        let tools = echoing(&["do"]);
        let agent = agent_with(&model, &tools, options).with_fallback(second([]));
        let (events, report) = ask(&agent, "go").await;
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(streamed(&events), "Half an ans");
        let error = report.error.unwrap();
        assert_eq!(error.kind, RunErrorKind::Model("interrupted".into()));
        let retried = |kind: &RunEventKind| matches!(kind, RunEventKind::ModelCallRetried { .. });
        assert!(!has(&events, retried));
    }
}

#[tokio::test]
async fn a_model_that_is_configured_twice_is_called_once() {
    let fails = |message| [Answer::Fails(ModelErrorKind::Connection, message)];
    let first = Scripted::new(fails("one"));
    let second = second(fails("two"));
    let agent = Agent::new(first.clone())
        .with_fallback(first.clone())
        .with_fallback(second.clone())
        .with_fallback(first.clone());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!((first.asked(), second.asked()), (1, 1));
    // The error of the last model ends the run.
    let error = report.error.unwrap();
    assert_eq!(error.kind, RunErrorKind::Model("connection".into()));
    assert!(error.message.contains("two"));
}

#[tokio::test]
async fn a_model_without_tool_support_is_called_without_tools() {
    for refusal in [
        "registry/model does not support tools",
        "Tools are Not Available for this model",
    ] {
        let model = Scripted::new([
            Answer::Fails(ModelErrorKind::InvalidRequest { field: None }, refusal),
            Answer::Says("Without."),
        ]);
        let agent = Agent::new(model.clone()).with_tools(echoing(&["do"]));
        let (events, report) = ask(&agent, "go").await;
        assert_eq!(report.answer, "Without.");
        assert!(model.request(1).tools.is_empty());
        let told = has(
            &events,
            |kind| matches!(kind, RunEventKind::ToolsDropped { reason } if reason.contains(refusal)),
        );
        assert!(told);
    }
}

/// A host without any available server.
struct Dead;

#[async_trait::async_trait]
impl ToolHost for Dead {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: Vec::new(),
            problems: vec![ServerProblem {
                server: "crm".into(),
                message: "it did not start".into(),
            }],
        }
    }

    async fn call_tool(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        unreachable!("there is nothing to call")
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(futures_util::stream::pending())
    }
}

#[tokio::test]
async fn unreachable_tools_are_reported_and_the_model_answers_without_them() {
    let model = Scripted::new([Answer::Says("I know that anyway.")]);
    let (events, report) = ask(&Agent::new(model).with_tools(Arc::new(Dead)), "go").await;
    assert_eq!(report.outcome, Outcome::Completed);
    assert!(has(
        &events,
        |kind| matches!(kind, RunEventKind::ToolsUnavailable { problem } if problem.server == "crm")
    ));
    assert_eq!(report.warnings.len(), 1);
}

#[tokio::test]
async fn an_empty_answer_is_requested_again_once() {
    let model = Scripted::new([Answer::Says(""), Answer::Says("Here.")]);
    let (events, report) = ask(&Agent::new(model.clone()), "go").await;
    assert_eq!(report.answer, "Here.");
    assert!(has(&events, |kind| matches!(
        kind,
        RunEventKind::AskedAgain { attempt: 1, .. }
    )));
    let last = model.request(1).messages.last().unwrap().text();
    assert!(last.contains("empty"), "{last}");

    let model = Scripted::new([Answer::Says(""), Answer::Says("")]);
    let (_, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::EmptyAnswer);
}

#[tokio::test]
async fn a_malformed_tool_call_is_requested_again_a_limited_number_of_times() {
    let malformed = || Answer::Ends("", FinishReason::MalformedToolCall);
    let model = Scripted::new([malformed(), Answer::Says("Well.")]);
    let (_, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.answer, "Well.");

    let model = Scripted::new([malformed(), malformed(), malformed()]);
    let (_, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::MalformedToolCall);
}

#[tokio::test]
async fn a_paused_answer_is_continued_and_read_as_one() {
    let model = Scripted::new([
        Answer::Ends("One, two, ", FinishReason::Length),
        Answer::Says("three."),
    ]);
    let (events, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.answer, "One, two, three.");
    assert_eq!(streamed(&events), report.answer);

    let options = RunOptions {
        max_output_tokens: Some(3),
        ..RunOptions::default()
    };
    let model = Scripted::new([Answer::Ends("One, two, ", FinishReason::Length)]);
    let (_, report) = ask(&Agent::new(model).with_options(options), "go").await;
    assert_eq!(
        report.outcome,
        Outcome::Limited,
        "a limit that was asked for is kept"
    );
}

#[tokio::test]
async fn a_refusal_before_any_output_leads_to_the_fallback_model() {
    let model = Scripted::new([Answer::Ends("", FinishReason::Refusal)]);
    let agent = Agent::new(model).with_fallback(second([Answer::Says("I can.")]));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "I can.");

    let model = Scripted::new([Answer::Ends("I won't.", FinishReason::Refusal)]);
    let agent = Agent::new(model).with_fallback(second([]));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::Refusal);
}

//! What stands in for what fails.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{
    FinishReason, ModelCapabilities, ModelErrorKind, ServerProblem, ToolCall, ToolCallError,
    ToolCatalog, ToolHost, ToolHostChanges, ToolOutput,
};
use switchboard_orchestration::{Agent, Outcome, RunErrorKind, RunEventKind, RunOptions};

use crate::support::{Answer, Scripted, Tools, ask, calls, echo, streamed, tool};

fn second(answers: impl IntoIterator<Item = Answer>) -> Arc<Scripted> {
    Scripted::named("second", ModelCapabilities::default(), answers)
}

#[tokio::test]
async fn the_next_model_goes_on_where_the_first_failed_before_it_showed_anything() {
    let first = Scripted::new([
        calls(&[("a", "srv__do", json!({"n": 1}))]),
        Answer::Fails(ModelErrorKind::Overloaded { retry_after: None }, "busy"),
    ]);
    let second = second([Answer::Says("From the second.")]);
    let tools = Arc::new(Tools::new().with(tool("do"), echo));
    let agent = Agent::new(first)
        .with_fallback(second.clone())
        .with_tools(tools.clone());
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "From the second.");
    assert_eq!(&*report.model.name, "second");
    assert_eq!(
        report.steps, 2,
        "the failed call brought nothing and does not count"
    );
    assert_eq!(tools.called().len(), 1, "what was done is not done again");
    assert_eq!(
        second.request(0).messages.len(),
        3,
        "it reads the whole history"
    );
    let switched = events.iter().any(|event| {
        matches!(&event.kind, RunEventKind::ModelSwitched { to, reason, .. }
            if &*to.name == "second" && reason.contains("busy"))
    });
    assert!(switched);
}

#[tokio::test]
async fn nothing_is_asked_again_once_output_was_shown() {
    let first = Scripted::new([Answer::Breaks("Half an ans")]);
    let second = second([]);
    let agent = Agent::new(first).with_fallback(second.clone());
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(
        (report.outcome, report.answer.as_str()),
        (Outcome::Failed, "Half an ans")
    );
    assert_eq!(streamed(&events), "Half an ans");
    assert_eq!(second.asked(), 0);
}

#[tokio::test]
async fn every_model_failing_is_the_last_ones_error() {
    let fails = |message| [Answer::Fails(ModelErrorKind::Connection, message)];
    let agent = Agent::new(Scripted::new(fails("one"))).with_fallback(second(fails("two")));
    let (_, report) = ask(&agent, "go").await;
    let error = report.error.unwrap();
    assert_eq!(error.kind, RunErrorKind::Model("connection".into()));
    assert!(error.message.contains("two"));
}

#[tokio::test]
async fn a_model_that_takes_no_tools_is_asked_without() {
    let refusal = "registry/model does not support tools";
    let model = Scripted::new([
        Answer::Fails(ModelErrorKind::InvalidRequest { field: None }, refusal),
        Answer::Says("Without."),
    ]);
    let agent = Agent::new(model.clone()).with_tools(Arc::new(Tools::new().with(tool("do"), echo)));
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "Without.");
    assert!(model.request(1).tools.is_empty());
    let told = events.iter().any(|event| {
        matches!(&event.kind, RunEventKind::ToolsDropped { reason } if reason.contains(refusal))
    });
    assert!(told);
}

/// A host none of whose servers is there.
struct Dead;

#[async_trait::async_trait]
impl ToolHost for Dead {
    async fn tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: Vec::new(),
            problems: vec![ServerProblem {
                server: "crm".into(),
                message: "it did not start".into(),
            }],
        }
    }

    async fn call(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        unreachable!("there is nothing to call")
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(futures_util::stream::pending())
    }
}

#[tokio::test]
async fn with_no_tools_reachable_the_model_answers_without_and_the_events_say_so() {
    let model = Scripted::new([Answer::Says("I know that anyway.")]);
    let (events, report) = ask(&Agent::new(model).with_tools(Arc::new(Dead)), "go").await;
    assert_eq!(report.outcome, Outcome::Completed);
    assert!(events.iter().any(|event| {
        matches!(&event.kind, RunEventKind::ToolsUnavailable { problem } if problem.server == "crm")
    }));
    assert_eq!(report.warnings.len(), 1);
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_once() {
    let model = Scripted::new([Answer::Says(""), Answer::Says("Here.")]);
    let (events, report) = ask(&Agent::new(model.clone()), "go").await;
    assert_eq!(report.answer, "Here.");
    assert!(
        events
            .iter()
            .any(|e| matches!(e.kind, RunEventKind::AskedAgain { attempt: 1, .. }))
    );
    let last = model.request(1).messages.last().unwrap().text();
    assert!(last.contains("empty"), "{last}");

    let model = Scripted::new([Answer::Says(""), Answer::Says("")]);
    let (_, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::EmptyAnswer);
}

#[tokio::test]
async fn a_tool_call_that_the_provider_could_not_read_is_asked_for_again_and_bounded() {
    let malformed = || Answer::Ends("", FinishReason::MalformedToolCall);
    let model = Scripted::new([malformed(), Answer::Says("Well.")]);
    let (_, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.answer, "Well.");

    let model = Scripted::new([malformed(), malformed(), malformed()]);
    let (_, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::MalformedToolCall);
}

#[tokio::test]
async fn an_answer_cut_off_by_the_model_is_continued_and_read_as_one() {
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
async fn a_refusal_before_any_output_is_a_matter_for_the_next_model() {
    let model = Scripted::new([Answer::Ends("", FinishReason::Refusal)]);
    let agent = Agent::new(model).with_fallback(second([Answer::Says("I can.")]));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "I can.");

    let model = Scripted::new([Answer::Ends("I won't.", FinishReason::Refusal)]);
    let agent = Agent::new(model).with_fallback(second([]));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::Refusal);
}

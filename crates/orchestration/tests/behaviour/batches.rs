//! Answers with very many calls.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{
    ChatResponse, FinishReason, Message, ModelId, Part, Role, ToolChoiceOutcome, ToolInput,
    ToolOutput, ToolUse, Usage,
};
use switchboard_orchestration::{
    Run, RunEventKind, RunOptions, Step, ToolCallOutcome, ToolFailure,
    strategy::{GatherFormat, Strategy},
};

use crate::support::{assert_whole, reading};

fn answer(calls: impl Iterator<Item = (String, u32)>) -> ChatResponse {
    let calls = calls.map(|(id, n)| {
        let input = ToolInput::parse(&json!({ "n": n }).to_string());
        Part::ToolUse(ToolUse::new(id, "srv__look", input))
    });
    let text = Part::text("NEED MORE DATA: all of it");
    ChatResponse {
        message: Message::new(Role::Assistant, std::iter::once(text).chain(calls)),
        finish: FinishReason::ToolUse,
        finish_raw: None,
        usage: Usage::default(),
        tool_choice: ToolChoiceOutcome::Native,
        warnings: Vec::new(),
        response_id: None,
        model: None,
    }
}

/// With quadratic time, this test takes minutes; with cubic time, days.
#[test]
fn the_time_for_many_calls_grows_linearly() {
    const CALLS: u32 = 20_000;
    let mut options = RunOptions {
        strategy: Strategy::GatherFormat(GatherFormat::default()),
        ..RunOptions::default()
    };
    options.limits.max_calls_per_response = None;
    let question = vec![Arc::new(Message::user("Everything?"))];
    let mut run = Run::new("run", ModelId::new("p", "m"), question, options);
    let tools = vec![Arc::new(reading("look"))];

    // Each is made twice in the answer.
    run.begin_model_call(tools.clone());
    let twice = (0..CALLS).map(|n| (format!("call-{n}"), n / 2));
    let mut events = run.model_answered(answer(twice)).unwrap();
    let Step::CallTools(calls) = run.next_step() else {
        panic!("{:?}", run.next_step())
    };
    assert_eq!(calls.len(), 10_000);
    for call in &calls {
        events.extend(run.tool_started(&call.id).unwrap());
    }
    // The last first, so that the whole batch stays open until the end.
    for call in calls.iter().rev() {
        let done = ToolCallOutcome::new(Ok(ToolOutput::text("ok")), 1);
        events.extend(run.tool_finished(&call.id, done).unwrap());
    }
    let repeated = |events: &[RunEventKind]| {
        let repeats = events.iter().filter(|event| {
            matches!(event, RunEventKind::ToolFinished { failure, .. }
                if *failure == Some(ToolFailure::Repeated))
        });
        repeats.count()
    };
    assert_eq!(repeated(&events), 10_000);

    // And all of them once more in the next one.
    run.begin_model_call(tools);
    let again = (0..CALLS / 2).map(|n| (format!("again-{n}"), n));
    let events = run.model_answered(answer(again)).unwrap();
    assert_eq!(repeated(&events), 10_000);
    assert_whole(run.messages());
}

/// Most calls exceed the limit of a response, and may be made again.
#[test]
fn the_time_for_many_calls_beyond_a_limit_grows_linearly() {
    let options = RunOptions {
        strategy: Strategy::GatherFormat(GatherFormat::default()),
        ..RunOptions::default()
    };
    let allowed = options.limits.max_calls_per_response.unwrap() as usize;
    let question = vec![Arc::new(Message::user("Everything?"))];
    let mut run = Run::new("run", ModelId::new("p", "m"), question, options);
    run.begin_model_call(vec![Arc::new(reading("look"))]);
    let calls = (0..20_000).map(|n| (format!("call-{n}"), n));
    let events = run.model_answered(answer(calls)).unwrap();
    let refused = events.iter().filter(|event| {
        matches!(event, RunEventKind::ToolFinished { failure, .. }
            if *failure == Some(ToolFailure::LimitReached))
    });
    assert_eq!(refused.count(), 20_000 - allowed);
}

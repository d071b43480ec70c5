//! Responses with very many tool calls.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{
    ChatResponse, FinishReason, Message, ModelId, Part, Role, ToolChoiceOutcome, ToolInput,
    ToolUse, Usage,
};
use switchboard_orchestration::{Run, RunEventKind, ToolFailure};

use crate::support::{gather_format, reading};

fn answer(calls: impl Iterator<Item = (String, u32)>) -> ChatResponse {
    let calls = calls.map(|(id, n)| {
        let input = ToolInput::parse_input(&json!({ "n": n }).to_string());
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

/// Most of the calls exceed the limit per response. The model may repeat them.
#[test]
fn the_time_for_many_calls_beyond_a_limit_grows_linearly() {
    let options = gather_format();
    let allowed = options.limits.max_calls_per_response.unwrap() as usize;
    let question = vec![Arc::new(Message::user("Everything?"))];
    let mut run = Run::new("run", ModelId::new("p", "m"), question, options);
    run.begin_model_call(vec![Arc::new(reading("look"))]);
    let calls = (0..20_000).map(|n| (format!("call-{n}"), n));
    let events = run.apply_model_response(answer(calls)).unwrap();
    let refused = events.iter().filter(|event| {
        matches!(event, RunEventKind::ToolFinished { failure, .. }
            if *failure == Some(ToolFailure::LimitReached))
    });
    assert_eq!(refused.count(), 20_000 - allowed);
}

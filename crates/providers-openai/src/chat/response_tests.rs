use serde_json::{Value, json};
use switchboard_domain::{ChatResponse, FinishReason, ModelErrorKind, ModelId, ToolChoiceOutcome};
use switchboard_providers_common::assemble_response;

use super::*;
use crate::chat::ToolUseIds;

fn read(body: &Value) -> Result<ChatResponse, ModelError> {
    let decoder = ChatDecoder::new(
        ModelId::new("litellm", "any"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    );
    events_from_body(decoder, &body.to_string())
        .and_then(|events| assemble_response("litellm", &events))
}

fn message(message: &Value, finish_reason: &Value) -> Value {
    json!({
        "id": "c1",
        "model": "m1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    })
}

#[test]
fn a_body_needs_no_finish_reason() {
    let said = message(&json!({"content": "hi"}), &Value::Null);
    let response = read(&said).unwrap();
    let expected = (FinishReason::Stop, None);
    assert_eq!((response.finish, response.finish_raw), expected);
    let calls = json!([{"id": "a", "function": {"name": "f", "arguments": "{}"}}]);
    let called = message(&json!({"content": null, "tool_calls": calls}), &Value::Null);
    assert_eq!(read(&called).unwrap().finish, FinishReason::ToolUse);
}

#[test]
fn a_body_without_an_answer_is_an_error() {
    let error = read(&json!({"error": {"message": "m", "code": "context_length_exceeded"}}));
    assert_eq!(error.unwrap_err().kind, ModelErrorKind::ContextOverflow);
    for nothing in [
        json!({}),
        json!({"id": "c", "choices": []}),
        json!([]),
        json!("x"),
    ] {
        let error = read(&nothing).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{nothing}");
    }
}

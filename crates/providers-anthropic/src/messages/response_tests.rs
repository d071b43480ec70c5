use switchboard_domain::{ChatResponse, FinishReason, ModelErrorKind, ModelId, ToolChoiceOutcome};
use switchboard_providers_common::assemble_response;

use super::*;
use crate::messages::ToolUseIds;

fn decoder() -> MessagesDecoder {
    MessagesDecoder::new(
        ModelId::new("anthropic", "claude-haiku-4-5"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    )
}

fn read(body: &str) -> Result<ChatResponse, ModelError> {
    events_from_body(decoder(), body).and_then(|events| assemble_response("anthropic", &events))
}

#[test]
fn a_body_without_an_answer_is_an_error() {
    let error = read(
        r#"{"type": "error", "error": {"type": "invalid_request_error",
            "message": "prompt is too long: 208310 tokens > 200000 maximum"}}"#,
    );
    assert_eq!(error.unwrap_err().kind, ModelErrorKind::ContextOverflow);
    for nothing in [
        "{}",
        r#"{"type": "message", "content": []}"#,
        r#"{"type": "ping"}"#,
        "[]",
        "\"x\"",
        "",
        "<html>",
    ] {
        let error = read(nothing).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{nothing}");
    }
    let empty = read(r#"{"content": [], "stop_reason": "end_turn"}"#).unwrap();
    assert_eq!(empty.finish, FinishReason::Stop);
}

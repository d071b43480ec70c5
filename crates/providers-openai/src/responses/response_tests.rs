use serde_json::{Value, json};
use switchboard_domain::{ChatResponse, FinishReason, ModelErrorKind, ModelId, ToolChoiceOutcome};
use switchboard_providers_common::assemble_response;

use super::*;
use crate::responses::ToolUseIds;

fn read(body: &Value) -> Result<ChatResponse, ModelError> {
    let decoder = ResponsesDecoder::new(
        ModelId::new("openai", "m"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    );
    events_from_body(decoder, &body.to_string())
        .and_then(|events| assemble_response("openai", &events))
}

#[test]
fn a_body_needs_no_status() {
    let said = json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]});
    let response = read(&said).unwrap();
    assert_eq!(
        (response.message.text().as_str(), response.finish),
        ("hi", FinishReason::Stop)
    );
}

#[test]
fn a_body_without_an_answer_is_an_error() {
    let error = read(&json!({"error": {"message": "m", "code": "context_length_exceeded"}}));
    assert_eq!(error.unwrap_err().kind, ModelErrorKind::ContextOverflow);
    let failed = json!({"status": "failed", "output": [], "error": {"code": "server_error", "message": "m"}});
    let error = read(&failed).unwrap_err();
    assert!(
        matches!(error.kind, ModelErrorKind::Overloaded { .. }),
        "{error}"
    );
    for nothing in [
        json!({}),
        json!({"id": "c", "choices": []}),
        json!([]),
        json!("x"),
        json!({"status": "queued", "output": []}),
    ] {
        let error = read(&nothing).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{nothing}");
    }
}

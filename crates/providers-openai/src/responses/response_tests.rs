use serde_json::{Value, json};
use switchboard_domain::{ChatResponse, FinishReason, ModelErrorKind, ModelId, ToolChoiceOutcome};
use switchboard_providers_common::assembled;

use super::*;
use crate::responses::LocalIds;

fn read(body: &Value) -> Result<ChatResponse, ModelError> {
    let decoder = ResponsesDecoder::new(
        ModelId::new("openai", "m"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        LocalIds::default(),
    );
    events_from_body(decoder, &body.to_string()).and_then(|events| assembled("openai", &events))
}

#[test]
fn a_whole_answer() {
    let body = json!({
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": null,
        "model": "m1",
        "output": [
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "created_by": "x", "summary": [
                {"type": "summary_text", "text": "Hm."},
            ]},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
             "content": [{"type": "output_text", "text": "Wait.", "annotations": [], "logprobs": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{\"x\":1}",
             "status": "completed", "caller": {"type": "program", "caller_id": "p_1"}},
            {"type": "file_search_call", "id": "fs_1", "queries": ["q", "r"], "status": "completed"},
        ],
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 14,
        },
    });
    insta::assert_json_snapshot!(read(&body).unwrap());
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

use serde_json::{Value, json};
use switchboard_domain::{FinishReason, ModelErrorKind, ModelId, ToolChoiceOutcome};

use super::*;
use crate::responses::LocalIds;

fn read(body: &Value) -> Result<ChatResponse, ModelError> {
    let decoder = ResponsesDecoder::new(
        ModelId::new("openai", "m"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        LocalIds::default(),
    );
    from_body("openai", decoder, &body.to_string())
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
fn the_last_call_of_an_incomplete_body_is_malformed_unless_marked_complete() {
    let call = |id: &str, status: Value| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}", "status": status});
    let cut = |last: Value| {
        let details = json!({"reason": "max_output_tokens"});
        let output = [call("a", Value::Null), call("b", last)];
        let response =
            json!({"status": "incomplete", "incomplete_details": details, "output": output});
        let calls = read(&response).unwrap().message;
        calls
            .tool_uses()
            .map(|it| it.input.as_object().is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(cut(Value::Null), [true, false]);
    assert_eq!(cut(json!("incomplete")), [true, false]);
    assert_eq!(cut(json!("completed")), [true, true]);
    assert_eq!(cut(json!("in_progress")), [true, false]);
    let whole = json!({"status": "completed", "output": [call("a", json!("in_progress"))]});
    let message = read(&whole).unwrap().message;
    assert!(message.tool_uses().all(|it| it.input.as_object().is_some()));
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

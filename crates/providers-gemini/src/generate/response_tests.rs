use switchboard_domain::{ChatResponse, FinishReason, ModelErrorKind, ModelId, ToolChoiceOutcome};
use switchboard_providers_common::assemble_response;

use super::*;
use crate::generate::ToolUseIds;

fn decoder() -> GenerateDecoder {
    GenerateDecoder::new(
        ModelId::new("gemini", "gemini-3.8-flash"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    )
}

fn read(body: &str) -> Result<ChatResponse, ModelError> {
    events_from_body(decoder(), body).and_then(|events| assemble_response("gemini", &events))
}

#[test]
fn a_whole_answer_needs_no_reason() {
    let body = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#;
    let answer = read(body).unwrap();
    let expected = (FinishReason::ToolUse, None);
    assert_eq!((answer.finish, answer.finish_raw), expected);
}

#[test]
fn what_is_no_answer_is_never_taken_for_one() {
    for body in [
        "",
        "{}",
        "[]",
        r#"{"hello":1}"#,
        r#"{"usageMetadata":{}}"#,
        "<html>",
    ] {
        let error = read(body).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{body}");
    }
    let error = read(r#"{"error":{"status":"NOT_FOUND","message":"No such model."}}"#).unwrap_err();
    assert_eq!(error.message(), "No such model.");
    assert_eq!(error.kind, ModelErrorKind::NotFound);
}

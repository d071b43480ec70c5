use switchboard_domain::{
    ChatResponse, FinishReason, ModelErrorKind, ModelId, ResponseAccumulator, ToolChoiceOutcome,
};
use switchboard_providers_common::WireDecoder as _;

use super::*;
use crate::messages::LocalIds;

fn decoder() -> MessagesDecoder {
    MessagesDecoder::new(
        ModelId::new("anthropic", "claude-haiku-4-5"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        LocalIds::default(),
    )
}

fn read(body: &str) -> Result<ChatResponse, ModelError> {
    from_body("anthropic", decoder(), body)
}

fn streamed(transcript: &str) -> ChatResponse {
    let (mut decoder, mut answer) = (decoder(), ResponseAccumulator::default());
    let mut events = Vec::new();
    for data in transcript
        .lines()
        .filter_map(|it| it.strip_prefix("data: "))
    {
        decoder.frame("", data, &mut events).unwrap();
    }
    decoder.end(&mut events).unwrap();
    for event in &events {
        answer.push(event).unwrap();
    }
    answer.finish().unwrap()
}

macro_rules! both {
    ($($name:literal),+ $(,)?) => {
        [$((
            $name,
            include_str!(concat!("../../../testkit/transcripts/anthropic/", $name, ".sse")),
            include_str!(concat!("../../../testkit/transcripts/anthropic/", $name, ".json")),
        )),+]
    };
}

#[test]
fn a_whole_answer_equals_a_streamed_one() {
    for (name, stream, body) in both![
        "text",
        "text-then-call",
        "two-calls",
        "thinking-then-call",
        "redacted-thinking",
        "refusal",
        "pause-turn",
        "web-search",
        "web-fetch",
        "empty-input",
    ] {
        let whole = read(body).unwrap();
        let streamed = streamed(stream);
        assert_eq!(whole.message, streamed.message, "{name}");
        assert_eq!(
            (whole.finish, whole.finish_raw, whole.usage),
            (streamed.finish, streamed.finish_raw, streamed.usage),
            "{name}"
        );
        assert_eq!(whole.warnings, []);
    }
}

#[test]
fn case_17_the_last_call_of_a_whole_answer_at_the_limit_is_malformed() {
    let body = include_str!("../../../testkit/transcripts/anthropic/length-inside-arguments.json");
    let response = read(body).unwrap();
    assert_eq!(response.finish, FinishReason::Length);
    let calls: Vec<_> = response.message.tool_uses().collect();
    assert!(calls[0].input.as_object().is_none(), "{calls:?}");
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

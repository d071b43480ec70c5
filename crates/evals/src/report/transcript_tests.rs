use serde_json::{Value, json};
use switchboard_domain::redact::Redactor;
use switchboard_orchestration::RunEventKind;

use super::*;

/// Returns the transcript of these events, one per millisecond.
fn of(redaction: &Redaction, events: impl IntoIterator<Item = Value>) -> Transcript {
    let mut builder = TranscriptBuilder::new(redaction);
    for (at, event) in events.into_iter().enumerate() {
        let event: RunEventKind = serde_json::from_value(event).unwrap();
        builder.add_run_event(&event, at as u64);
    }
    builder.finish_transcript(&[])
}

fn text(text: &str) -> Value {
    json!({"type": "text_delta", "text": text})
}

fn planned(id: &str, input: &Value) -> Value {
    json!({"type": "tool_planned", "id": id, "server": "shop", "tool": "look_up", "input": input})
}

fn finished(id: &str, content: &Value) -> Value {
    json!({"type": "tool_finished", "id": id, "is_error": false, "cached": false, "attempts": 2, "duration_ms": 7, "content": content})
}

#[test]
fn deltas_are_joined_and_calls_have_their_events_and_results() {
    let transcript = of(
        &Redaction::new(Redactor::default()),
        [
            json!({"type": "reasoning_delta", "text": "I think"}),
            json!({"type": "reasoning_delta", "text": " so"}),
            text("Let me "),
            text("see"),
            json!({"type": "tool_input_started", "id": "1", "name": "look_up"}),
            json!({"type": "tool_input_delta", "id": "1", "json": "{}"}),
            planned("1", &json!({"id": "7"})),
            planned("2", &json!({})),
            json!({"type": "tool_input_repaired", "id": "1", "repairs": ["`id` became a number"], "input": {"id": 7}}),
            json!({"type": "tool_awaiting_approval", "id": "2"}),
            json!({"type": "tool_denied", "id": "2", "reason": "not now"}),
            json!({"type": "tool_started", "id": "1"}),
            json!({"type": "tool_retried", "id": "1", "attempt": 2, "reason": "it broke"}),
            json!({"type": "warning", "kind": "option_dropped", "message": "no temperature"}),
            json!({"type": "question_asked", "id": "q", "question": {"server": "shop", "message": "Sure?", "form": "fields", "schema": {}}}),
            json!({"type": "question_answered", "id": "q", "action": "decline"}),
            finished("1", &json!([{"type": "text", "text": "Ann"}])),
            json!({"type": "model_call_failed", "step": 2, "error": {"kind": "overloaded", "message": "later"}}),
            text("done"),
        ],
    );
    let entries = serde_json::to_value(&transcript.entries).unwrap();
    assert_eq!(
        entries,
        json!([
            {"at_ms": 0, "type": "reasoning", "text": "I think so"},
            {"at_ms": 2, "type": "text", "text": "Let me see"},
            {"at_ms": 6, "type": "call", "id": "1", "server": "shop", "tool": "look_up", "input": {"text": "{\"id\":\"7\"}"},
                "notes": [
                    {"at_ms": 8, "kind": "tool_input_repaired", "text": "repairs: [\"`id` became a number\"]; input: {\"id\":7}"},
                    {"at_ms": 12, "kind": "tool_retried", "text": "attempt: 2; reason: it broke"},
                ],
                "result": {"at_ms": 16, "is_error": false, "cached": false, "attempts": 2, "duration_ms": 7, "content": [{"text": "Ann"}]}},
            {"at_ms": 7, "type": "call", "id": "2", "server": "shop", "tool": "look_up", "input": {"text": "{}"},
                "notes": [
                    {"at_ms": 9, "kind": "tool_awaiting_approval", "text": ""},
                    {"at_ms": 10, "kind": "tool_denied", "text": "reason: not now"},
                ]},
            {"at_ms": 13, "type": "note", "kind": "warning", "text": "kind: option_dropped; message: no temperature"},
            {"at_ms": 14, "type": "note", "kind": "question_asked", "text": r#"question: {"server":"shop","message":"Sure?","form":"fields","schema":{}}"#},
            {"at_ms": 15, "type": "note", "kind": "question_answered", "text": "action: decline"},
            {"at_ms": 17, "type": "note", "kind": "model_call_failed", "text": "step: 2; error: {\"kind\":\"overloaded\",\"message\":\"later\"}"},
            {"at_ms": 18, "type": "text", "text": "done"},
        ])
    );
    let written = serde_json::to_string(&transcript).unwrap();
    assert_eq!(
        serde_json::from_str::<Transcript>(&written).unwrap(),
        transcript
    );
}

#[test]
fn long_texts_are_shortened_and_omitted_bytes_counted() {
    let redaction = Redaction::new(Redactor::default());
    let long = "é".repeat(50_000);
    let result = json!([{"type": "text", "text": long}]);
    let transcript = of(
        &redaction,
        [
            text(&long),
            planned("1", &json!({})),
            finished("1", &result),
        ],
    );
    assert_eq!(
        transcript.entries[0],
        json!({"at_ms": 0, "type": "text", "text": long[..65_536], "omitted": 34_464})
    );
    assert_eq!(
        transcript.entries[1]["result"]["content"],
        json!([{"text": long[..16_384], "omitted": 83_616}])
    );

    // The transcript of a turn has a maximum number of entries and a maximum size.
    let warning =
        |_| json!({"type": "warning", "kind": "option_dropped", "message": &long[..1_000]});
    let transcript = of(&redaction, (0..2_005).map(warning));
    assert_eq!((transcript.entries.len(), transcript.omitted), (2_000, 5));
    let sizes = transcript.entries.iter().map(|note| {
        let text = note["text"].as_str().unwrap().len();
        let omitted = note["omitted"].as_u64().unwrap_or(0);
        assert_eq!(text as u64 + omitted, 1_031);
        text
    });
    let sizes: usize = sizes.sum();
    assert_eq!(sizes, 256 << 10);
}

#[test]
fn a_secret_that_is_split_between_deltas_is_redacted() {
    let redaction = Redaction::new(Redactor::default().with_secrets(["tango-4711-foxtrot"]));
    let transcript = of(
        &redaction,
        [
            text("It is tango-47"),
            text("11-foxtrot."),
            planned("1", &json!({"password": "x"})),
        ],
    );
    let written = serde_json::to_string(&transcript).unwrap();
    assert!(written.contains("It is [redacted]."), "{written}");
    assert!(
        written.contains(r#"{\"password\":\"[redacted]\"}"#),
        "{written}"
    );
}

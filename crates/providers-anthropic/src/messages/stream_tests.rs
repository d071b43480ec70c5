use switchboard_domain::{ChatResponse, ModelErrorKind, ResponseAccumulator};

use super::*;

pub(super) fn decoder() -> MessagesDecoder {
    MessagesDecoder::new(
        ModelId::new("anthropic", "claude-haiku-4-5"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    )
}

/// Returns the events before the end or the error, and the error.
fn run<'a>(
    frames: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    for (name, data) in frames {
        if let Err(error) = decoder.decode_frame(name, data, &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.finish_decoding(&mut events);
    (events, end)
}

pub(super) fn assemble(events: &[ModelEvent]) -> ResponseAccumulator {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer.push(event).unwrap();
    }
    answer
}

/// Decodes events without an SSE name, as some gateways send them.
pub(super) fn of(values: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let texts: Vec<String> = values.iter().map(Value::to_string).collect();
    run(texts.iter().map(|text| ("", text.as_str())))
}

pub(super) fn inputs(response: &ChatResponse) -> Vec<Option<Value>> {
    let calls = response.message.tool_uses();
    calls
        .map(|call| call.input.as_object().cloned().map(Value::Object))
        .collect()
}

#[test]
fn every_stop_reason_is_mapped() {
    for (word, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("pause_turn", FinishReason::Paused),
        ("compaction", FinishReason::Paused),
        ("refusal", FinishReason::Refusal),
        (
            "model_context_window_exceeded",
            FinishReason::ContextOverflow,
        ),
        // The answer has no tool call, so `tool_use` becomes `Stop`.
        ("tool_use", FinishReason::Stop),
    ] {
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": word}});
        let (events, end) = of(&[delta, json!({"type": "message_stop"})]);
        end.unwrap();
        let response = assemble(&events).finish().unwrap();
        assert_eq!(response.finish, expected, "{word}");
        assert_eq!(response.finish_raw.as_deref(), Some(word));
    }
}

#[test]
fn deviations_of_compatible_servers_are_accepted() {
    // The stream has no `message_start`, `content_block_start` or `content_block_stop`, and ends
    // with `[DONE]`.
    let text = json!({"type": "content_block_delta", "index": 3,
                      "delta": {"type": "text_delta", "text": "Hi."}});
    let stop = json!({"type": "message_stop"});
    let (events, end) = of(&[text, stop.clone(), json!("[DONE]")]);
    end.unwrap();
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.message.text(), "Hi.");
    let expected = (FinishReason::Stop, None);
    assert_eq!((response.finish, response.finish_raw), expected);
    assert_eq!(response.warnings.len(), 1);
    // A call has its input as text in `content_block_start` and a blank id. Two calls have the same
    // index.
    let call = |input: Value| {
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "tool_use", "id": "", "name": "f", "input": input}})
    };
    let (events, end) = of(&[call(json!({"a": 1})), call(json!("{\"a\": 2}")), stop]);
    end.unwrap();
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.finish, FinishReason::ToolUse);
    let expected = [Some(json!({"a": 1})), Some(json!({"a": 2}))];
    assert_eq!(inputs(&response), expected);
    let ids: Vec<_> = response.message.tool_uses().map(|it| &*it.id).collect();
    assert_eq!(ids, ["call_local_1", "call_local_2"]);
}

#[test]
fn an_unreadable_event_is_an_error() {
    for data in ["<html>", "[]", "[1]", "\"x\"", "3"] {
        let (_, end) = run([("message_start", data)]);
        assert_eq!(end.unwrap_err().kind, ModelErrorKind::Protocol, "{data}");
    }
    // Fields of the wrong type count as missing.
    let odd = json!({"type": "message_start", "message": {"id": 3, "content": "x", "usage": []}});
    let (events, _) = of(&[odd]);
    assert!(matches!(
        &events[..],
        [ModelEvent::Started {
            response_id: None,
            ..
        }]
    ));
}

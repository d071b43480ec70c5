use std::sync::Arc;

use switchboard_domain::{ChatResponse, Part, ResponseAccumulator};

use super::*;

macro_rules! transcript {
    ($name:literal) => {
        include_str!(concat!("../../../testkit/transcripts/anthropic/", $name))
    };
}

pub(super) fn decoder() -> MessagesDecoder {
    MessagesDecoder::new(
        ModelId::new("anthropic", "claude-haiku-4-5"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        LocalIds::default(),
    )
}

/// The names and payloads of stored server-sent events.
fn frames(transcript: &str) -> impl Iterator<Item = (&str, &str)> {
    transcript.split_terminator("\n\n").map(|frame| {
        let (name, data) = frame.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap();
        (name, data.strip_prefix("data: ").unwrap())
    })
}

/// The events before the end, and the error.
fn run<'a>(
    frames: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    for (name, data) in frames {
        if let Err(error) = decoder.frame(name, data, &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.end(&mut events);
    (events, end)
}

pub(super) fn assemble(events: &[ModelEvent]) -> ResponseAccumulator {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer.push(event).unwrap();
    }
    answer
}

pub(super) fn answer(transcript: &str) -> ChatResponse {
    let (events, end) = run(frames(transcript));
    end.unwrap();
    assemble(&events).finish().unwrap()
}

/// Events without an SSE name, as some gateways send them.
pub(super) fn of(values: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let texts: Vec<String> = values.iter().map(Value::to_string).collect();
    run(texts.iter().map(|text| ("", text.as_str())))
}

fn state(part: &Part) -> (&Option<Arc<str>>, &Value) {
    let state = part.provider_state().unwrap();
    assert_eq!(&*state.provider, "anthropic");
    (&state.model, &state.data)
}

pub(super) fn inputs(response: &ChatResponse) -> Vec<Option<Value>> {
    let calls = response.message.tool_uses();
    calls
        .map(|call| call.input.as_object().cloned().map(Value::Object))
        .collect()
}

#[test]
fn the_first_events_report_the_changes_of_the_request() {
    let warning = Warning::new(WarningKind::OptionDropped, "no seed");
    let outcome = ToolChoiceOutcome::Relaxed {
        why: "because".into(),
    };
    let model = ModelId::new("anthropic", "m");
    let mut decoder = MessagesDecoder::new(
        model,
        outcome.clone(),
        vec![warning.clone()],
        LocalIds::default(),
    );
    let mut events = Vec::new();
    for (name, data) in frames(transcript!("ping-and-unknown.sse")).take(2) {
        decoder.frame(name, data, &mut events).unwrap();
    }
    let ModelEvent::Started { tool_choice, .. } = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(*tool_choice, outcome);
    assert_eq!(events[1], ModelEvent::Warning { warning });
}

#[test]
fn redacted_thinking_is_kept() {
    let response = answer(transcript!("redacted-thinking.sse"));
    let parts = &response.message.parts;
    assert_eq!(parts.len(), 3);
    assert_eq!(
        state(&parts[0]).1,
        &json!({"redacted": "EmwKAhgBEgy3va3pzix"})
    );
    assert_eq!(response.message.text(), "42.");
}

#[test]
fn blocks_of_server_tools_become_opaque_parts() {
    let paused = answer(transcript!("pause-turn.sse"));
    assert_eq!(paused.finish, FinishReason::Paused);
    let Part::Opaque(search) = &paused.message.parts[1] else {
        panic!("{:?}", paused.message.parts);
    };
    assert_eq!(search.kind, "server_tool_use");
    let shown = search.text.as_deref();
    assert_eq!(
        shown,
        Some(r#"{"name":"web_search","input":{"query":"weather Hamburg"}}"#)
    );
    assert_eq!(
        state(&paused.message.parts[1]),
        (
            &None,
            &json!({"type": "server_tool_use", "id": "srvtoolu_01A", "name": "web_search",
                    "input": {"query": "weather Hamburg"}})
        )
    );
    insta::assert_json_snapshot!(answer(transcript!("web-search.sse")));
    insta::assert_json_snapshot!(
        "code_that_the_provider_ran",
        answer(transcript!("code-execution.sse"))
    );
    insta::assert_json_snapshot!(
        "pages_that_the_provider_fetched",
        answer(transcript!("web-fetch.sse"))
    );
}

#[test]
fn a_call_by_the_providers_code_keeps_its_caller() {
    let response = answer(transcript!("programmatic-call.sse"));
    let [_, by_code, direct, container] = &response.message.parts[..] else {
        panic!("{:?}", response.message.parts);
    };
    assert_eq!(
        state(by_code).1,
        &json!({"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_01A"}})
    );
    assert!(direct.provider_state().is_none());
    let id = &state(container).1["id"];
    assert_eq!(id, "container_01");
    assert_eq!(
        inputs(&response),
        [
            Some(json!({"city": "Hamburg"})),
            Some(json!({"city": "Kiel"}))
        ]
    );
}

#[test]
fn unknown_events_and_blocks_are_preserved() {
    let response = answer(transcript!("ping-and-unknown.sse"));
    assert_eq!(response.message.text(), "42.");
    assert_eq!(response.finish, FinishReason::Other("a_new_reason".into()));
    let warned: Vec<_> = response.warnings.iter().map(|it| &*it.message).collect();
    assert_eq!(
        warned,
        [
            "the server sent event `mood_changed`, which was not expected",
            "the server sent `sparkle_delta` in a block of another type, which was not expected",
        ]
    );
    let hologram = &response.message.parts[1];
    assert_eq!(
        state(hologram).1,
        &json!({"type": "hologram", "shape": "cube", "note": "ab", "frames": 3})
    );
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
        // There is no call.
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
    // No `message_start`, no `content_block_start` or `_stop`, and `[DONE]` at the end.
    let text = json!({"type": "content_block_delta", "index": 3,
                      "delta": {"type": "text_delta", "text": "Hi."}});
    let stop = json!({"type": "message_stop"});
    let (events, end) = of(&[text, stop.clone(), json!("[DONE]")]);
    end.unwrap();
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.message.text(), "Hi.");
    assert_eq!(
        (response.finish, response.finish_raw),
        (FinishReason::Stop, None)
    );
    assert_eq!(response.warnings.len(), 1);
    // The input as text in `content_block_start`, a blank id, and an index that is used twice.
    let call = |input: Value| {
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "tool_use", "id": "", "name": "f", "input": input}})
    };
    let (events, end) = of(&[call(json!({"a": 1})), call(json!("{\"a\": 2}")), stop]);
    end.unwrap();
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.finish, FinishReason::ToolUse);
    assert_eq!(
        inputs(&response),
        [Some(json!({"a": 1})), Some(json!({"a": 2}))]
    );
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

#[test]
fn a_fetched_page_is_shown_as_json() {
    for (source, json) in [
        (
            json!({"type": "text", "media_type": "text/plain", "data": "12 degrees, rain.\n"}),
            r#"{"media_type":"text/plain","data":"12 degrees, rain.\n"}"#,
        ),
        (
            json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}),
            r#"{"media_type":"application/pdf","data":"[data]"}"#,
        ),
    ] {
        let page = json!({"type": "web_fetch_result", "url": "https://example.org/a",
                          "content": {"type": "document", "title": "A", "source": source}});
        let block = json!({"type": "web_fetch_tool_result", "tool_use_id": "s", "content": page});
        let (events, end) = of(&[
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_stop"}),
        ]);
        end.unwrap();
        let response = assemble(&events).finish().unwrap();
        let Part::Opaque(shown) = &response.message.parts[0] else {
            panic!("{:?}", response.message.parts);
        };
        let text = format!(
            r#"{{"content":{{"url":"https://example.org/a","content":{{"title":"A","source":{json}}}}}}}"#
        );
        assert_eq!(shown.text, Some(text));
        assert_eq!(shown.provider_state.data, block);
    }
}

#[test]
fn cache_writes_are_counted_from_the_counts_by_lifetime() {
    let start = |usage: Value| json!({"type": "message_start", "message": {"usage": usage}});
    let written = |usage: Value| {
        let (events, end) = of(&[start(usage), json!({"type": "message_stop"})]);
        end.unwrap();
        let usage = assemble(&events).finish().unwrap().usage;
        (usage.input_tokens, usage.cache_write_tokens)
    };
    let split = json!({"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 200});
    let only = json!({"input_tokens": 8, "cache_creation": split});
    assert_eq!(written(only), (Some(708), Some(700)));
    let both = json!({"input_tokens": 8, "cache_creation_input_tokens": 700,
                      "cache_creation": {"ephemeral_1h_input_tokens": 9}});
    assert_eq!(written(both), (Some(708), Some(700)));
    assert_eq!(written(json!({"input_tokens": 8})), (Some(8), None));
}

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{ChatResponse, ModelErrorKind, Part, ToolDefinition};
use switchboard_providers_common::{assemble_response, schema::Dialect};

use super::*;

fn decoder() -> ChatDecoder {
    ChatDecoder::new(
        ModelId::new("openai", "gpt-6-luna"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    )
}

/// Returns a mapping in which the answer and the input of tool `f` have another shape.
fn tool_mapping() -> ToolMapping {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut mapping = ToolMapping::default();
    mapping.set_answer_schema(&schema, Dialect::OpenAiStrict);
    let tool = Arc::new(ToolDefinition::new("f", "", schema));
    mapping.add_tool(&tool, Dialect::OpenAiStrict);
    mapping
}

/// Returns the events before the end or the error, and the error.
fn run(frames: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    run_with(decoder(), frames)
}

fn run_with(
    mut decoder: ChatDecoder,
    frames: &[Value],
) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let mut events = Vec::new();
    for frame in frames {
        let data = match frame {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if let Err(error) = decoder.decode_frame("", &data, &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.finish_decoding(&mut events);
    (events, end)
}

fn answer(frames: &[Value]) -> ChatResponse {
    let (events, end) = run(frames);
    end.unwrap();
    assemble_response("openai", &events).unwrap()
}

fn failure(frames: &[Value]) -> ModelError {
    let (events, end) = run(frames);
    let is_finish = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
    assert!(!events.iter().any(is_finish), "{events:?}");
    end.unwrap_err()
}

fn delta(delta: &Value) -> Value {
    json!({"id": "c1", "model": "m1", "choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(index: u32, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
}

#[test]
fn the_answer_ends_with_the_stream_and_not_with_the_reason() {
    let mut decoder = decoder();
    let mut events = Vec::new();
    let mut said = |data: &str| {
        decoder.decode_frame("", data, &mut events).unwrap();
        events
            .iter()
            .any(|event| matches!(event, ModelEvent::Finished { .. }))
    };
    assert!(!said(&delta(&json!({"content": "a"})).to_string()));
    assert!(!said(&finish("stop").to_string()));
    assert!(!said(&delta(&json!({"content": "b"})).to_string()));
    assert!(said("[DONE]"));
    let before = events.len();
    decoder
        .decode_frame(
            "",
            &delta(&json!({"content": "c"})).to_string(),
            &mut events,
        )
        .unwrap();
    decoder.finish_decoding(&mut events).unwrap();
    assert_eq!(events.len(), before);
}

#[test]
fn finish_reasons_are_brought_in_line_with_the_output() {
    let a_call = || delta(&json!({"tool_calls": [call(0, "a", "f", "{}")]}));
    let text = || delta(&json!({"content": "hi"}));
    let cases = [
        (text(), "stop", FinishReason::Stop),
        (a_call(), "stop", FinishReason::ToolUse),
        (a_call(), "tool_calls", FinishReason::ToolUse),
        (
            delta(&json!({"tool_calls": []})),
            "tool_calls",
            FinishReason::Stop,
        ),
        (
            delta(&json!({"tool_calls": null})),
            "tool_calls",
            FinishReason::Stop,
        ),
        (text(), "length", FinishReason::Length),
        (a_call(), "length", FinishReason::Length),
        (text(), "content_filter", FinishReason::ContentFilter),
        (
            delta(&json!({"refusal": "no"})),
            "stop",
            FinishReason::Refusal,
        ),
        (text(), "eos", FinishReason::Stop),
        (text(), "model_length", FinishReason::ContextOverflow),
        (text(), "insomnia", FinishReason::Other("insomnia".into())),
    ];
    for (said, word, expected) in cases {
        let (events, end) = run(&[said, finish(word)]);
        end.unwrap();
        let last = events.last().unwrap();
        let raw = Some(word.to_owned());
        assert_eq!(
            *last,
            ModelEvent::Finished {
                reason: expected,
                raw
            }
        );
    }
}

#[test]
fn a_reason_is_not_replaced_by_a_later_stop() {
    let response = answer(&[
        delta(&json!({"content": "a"})),
        finish("length"),
        finish("stop"),
    ]);
    assert_eq!(response.finish, FinishReason::Length);
    let response = answer(&[
        delta(&json!({"content": "a"})),
        finish("stop"),
        finish("length"),
    ]);
    assert_eq!(response.finish, FinishReason::Length);
}

#[test]
fn a_frame_that_is_not_json_is_reported_with_an_excerpt() {
    let page = format!("<html>{}", "\u{e9}".repeat(500));
    let error = failure(&[json!(page)]);
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(error.message().contains("<html>") && error.message().chars().count() < 400);
    assert_eq!(failure(&[json!("[1, 2]")]).kind, ModelErrorKind::Protocol);
    let listed = failure(&[json!(r#"[{"error": {"message": "m", "code": 429}}]"#)]);
    assert!(matches!(listed.kind, ModelErrorKind::RateLimited { .. }));
}

#[test]
fn unexpected_fields_do_not_fail_the_answer() {
    let odd = json!({
        "id": 7, "model": null, "created": "now", "usage": "none",
        "choices": [
            {"index": "0", "delta": {
                "role": 5, "content": "a", "refusal": 0, "audio": {}, "annotations": [],
                "tool_calls": [null, 3, {"index": -1, "id": [], "function": {"name": "f", "arguments": "{}"}}],
                "function_call": "none",
            }, "finish_reason": null, "logprobs": 9},
            "nonsense",
        ],
    });
    let response = answer(&[odd, finish("stop")]);
    assert_eq!(response.message.text(), "a");
    assert_eq!(response.message.tool_uses().count(), 1);
}

#[test]
fn only_the_first_of_several_answers_is_read() {
    let two = json!({"id": "c", "choices": [
        {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"},
        {"index": 0, "delta": {"content": "mine"}, "finish_reason": "stop"},
    ]});
    let response = answer(&[two.clone(), two]);
    assert_eq!(response.message.text(), "minemine");
    assert_eq!(response.finish, FinishReason::Stop);
    assert_eq!(response.warnings.len(), 1);
}

#[test]
fn reasoning_tokens_outside_the_output_count_are_added() {
    let output = |usage: Value| {
        let chunk = json!({"id": "c1", "choices": [], "usage": usage});
        let answer = answer(&[delta(&json!({"content": "a"})), finish("stop"), chunk]);
        answer.usage.output_tokens
    };
    let told = |completion: u64, total: u64| json!({"prompt_tokens": 10, "completion_tokens": completion, "total_tokens": total});
    assert_eq!(output(told(9, 19)), Some(9));
    assert_eq!(output(told(9, 119)), Some(109));
    // A wrong or missing total number of tokens is ignored.
    assert_eq!(output(told(9, 0)), Some(9));
    assert_eq!(output(told(9, 12)), Some(9));
    assert_eq!(output(json!({"total_tokens": 12})), None);
    assert_eq!(output(json!({"completion_tokens": 3})), Some(3));
}

#[test]
fn reasoning_is_read_once_from_any_of_its_fields() {
    let response = answer(&[
        delta(&json!({"reasoning_content": "th", "reasoning": "th"})),
        delta(&json!({"reasoning": "ink", "reasoning_content": "ink"})),
        delta(&json!({"content": "said"})),
        finish("stop"),
    ]);
    let [Part::Reasoning(reasoning), Part::Text(text)] = response.message.parts.as_slice() else {
        panic!("{:?}", response.message);
    };
    let expected = ("think", "said");
    assert_eq!((reasoning.text.as_str(), text.text.as_str()), expected);
    let state = reasoning.provider_state.as_ref().unwrap();
    assert_eq!(state.data, json!({"field": "reasoning_content"}));
}

#[test]
fn openrouter_details_belong_to_the_reasoning_before_them() {
    let thought = |text: &str| {
        let detail = json!({"type": "reasoning.text", "text": text, "index": 0});
        delta(&json!({"reasoning": text, "reasoning_details": [detail]}))
    };
    let signature = json!({"type": "reasoning.text", "signature": "sig", "index": 0});
    let encrypted = json!({"type": "reasoning.encrypted", "data": "x", "index": 1});
    let response = answer(&[
        thought("th"),
        thought("ink"),
        delta(&json!({"reasoning_details": [signature]})),
        delta(&json!({"content": "I look."})),
        // Some models send encrypted reasoning after the text. It becomes a separate part without
        // text.
        delta(&json!({"reasoning_details": [encrypted], "tool_calls": [call(0, "a", "f", "{}")]})),
        finish("tool_calls"),
    ]);
    let [
        Part::Reasoning(first),
        Part::Text(_),
        Part::Reasoning(second),
        Part::ToolUse(_),
    ] = response.message.parts.as_slice()
    else {
        panic!("{:?}", response.message);
    };
    assert_eq!((first.text.as_str(), second.text.as_str()), ("think", ""));
    assert_eq!(
        first.provider_state.as_ref().unwrap().data,
        json!({"field": "reasoning", "details": [
            {"type": "reasoning.text", "text": "think", "index": 0, "signature": "sig"},
        ]})
    );
    let expected = json!({"field": "reasoning", "details": [encrypted]});
    assert_eq!(second.provider_state.as_ref().unwrap().data, expected);
    // A server may send only `reasoning_details`, without a field for the reasoning text.
    let detail = json!({"type": "reasoning.summary", "summary": "In short."});
    let response = answer(&[
        delta(&json!({"reasoning_details": [detail]})),
        finish("stop"),
    ]);
    let [Part::Reasoning(reasoning)] = response.message.parts.as_slice() else {
        panic!("{:?}", response.message);
    };
    assert_eq!(reasoning.text, "In short.");
}

#[path = "stream_laws_tests.rs"]
mod laws;

#[test]
fn a_frame_may_be_repeated_if_it_changes_nothing_but_the_text() {
    for (mapping, is_buffered) in [(ToolMapping::default(), false), (tool_mapping(), true)] {
        let mut decoder = decoder().with_tool_mapping(mapping);
        let mut allows = |content: Value| {
            let frame = delta(&content).to_string();
            decoder.decode_frame("", &frame, &mut Vec::new()).unwrap();
            decoder.is_decoder_state_unchanged()
        };
        assert!(allows(json!({"reasoning": "a"})));
        assert!(!allows(
            json!({"reasoning_details": [{"type": "reasoning.text", "text": "b"}]})
        ));
        assert_eq!(allows(json!({"content": "{"})), !is_buffered);
        let call = json!({"index": 0, "function": {"arguments": "1"}});
        assert!(!allows(json!({"content": "d", "tool_calls": [call]})));
        assert_eq!(allows(json!({"content": "e"})), !is_buffered);
    }
}

//! Properties of every input.

use proptest::prelude::*;

use super::{tests::assemble, *};

/// Generates events, which a server may send in any order.
fn any_event() -> impl Strategy<Value = Value> {
    let index = prop_oneof![Just(json!(null)), (0..3_u32).prop_map(|it| json!(it))];
    let text = prop_oneof![Just(""), Just("a"), Just("{\"x\":"), Just("1}"), Just("{}")];
    let kinds = [
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "odd",
    ];
    let input = prop_oneof![
        Just(json!({})),
        Just(json!({"x": 1})),
        Just(json!("{}")),
        Just(json!(null))
    ];
    let block = (prop::sample::select(kinds.to_vec()), text.clone(), input).prop_map(
        |(kind, text, input)| {
            json!({"type": kind, "text": text, "thinking": text, "signature": text, "data": text,
                   "id": text, "name": "f", "input": input})
        },
    );
    let deltas = [
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
        "citations_delta",
        "odd_delta",
    ];
    let delta = (prop::sample::select(deltas.to_vec()), text).prop_map(|(kind, text)| {
        json!({"type": kind, "text": text, "thinking": text, "signature": text,
               "partial_json": text, "citation": {"cited_text": text}})
    });
    let reasons = [
        "end_turn",
        "tool_use",
        "max_tokens",
        "refusal",
        "pause_turn",
        "odd",
    ];
    let reason = prop::sample::select(reasons.to_vec());
    prop_oneof![
        4 => (index.clone(), block.clone()).prop_map(
            |(index, block)| json!({"type": "content_block_start", "index": index, "content_block": block})
        ),
        8 => (index.clone(), delta).prop_map(
            |(index, delta)| json!({"type": "content_block_delta", "index": index, "delta": delta})
        ),
        4 => index.prop_map(|index| json!({"type": "content_block_stop", "index": index})),
        2 => prop::option::of(0..9_u64).prop_map(
            |tokens| json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": tokens}}})
        ),
        2 => reason.prop_map(
            |reason| json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}})
        ),
        1 => Just(json!({"type": "message_stop"})),
        1 => block.prop_map(|block| json!({"type": "message", "content": [block], "stop_reason": "max_tokens"})),
        1 => Just(json!({"type": "ping"})),
        1 => Just(json!({"type": "odd"})),
    ]
}

fn decoder() -> MessagesDecoder {
    MessagesDecoder::new(
        ModelId::new("anthropic", "m"),
        ToolChoiceOutcome::Native,
        vec![Warning::new(WarningKind::OptionDropped, "w")],
        ToolUseIds::default(),
    )
}

proptest! {
    #[test]
    fn any_order_of_events_produces_valid_domain_events(frames in prop::collection::vec(any_event(), 0..16)) {
        let (mut decoder, mut events) = (decoder(), Vec::new());
        for frame in &frames {
            decoder.decode_frame("", &frame.to_string(), &mut events).unwrap();
        }
        let end = decoder.finish_decoding(&mut events);
        let answer = assemble(&events);
        if let Some(first) = events.first() {
            let is_start = matches!(first, ModelEvent::Started { .. });
            prop_assert!(is_start, "the beginning comes first");
        }
        prop_assert_eq!(end.is_ok(), answer.is_finished());
        let response = answer.into_interrupted_response();
        let mut ids: Vec<_> = response.message.tool_uses().map(|it| it.id.clone()).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), count, "ids are unique");
    }

    #[test]
    fn any_text_is_read_without_a_panic(name in ".{0,8}", frames in prop::collection::vec(".{0,40}", 0..4)) {
        let (mut decoder, mut events) = (decoder(), Vec::new());
        for frame in frames {
            let _ = decoder.decode_frame(&name, &frame, &mut events);
        }
        let _ = decoder.finish_decoding(&mut events);
    }
}

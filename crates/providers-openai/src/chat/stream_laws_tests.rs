//! Properties of every input.

use proptest::prelude::*;
use switchboard_domain::ResponseAccumulator;

use super::*;

/// Generates chunks, which may be in any order.
fn any_chunk() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just(""), Just("a"), Just("{\"x\":"), Just("1}"), Just("{}")];
    let index = prop_oneof![Just(json!(null)), (0..3_u32).prop_map(|it| json!(it))];
    let id = prop_oneof![
        Just(json!(null)),
        Just(json!("")),
        Just(json!("a")),
        Just(json!("b"))
    ];
    let name = prop_oneof![Just(json!(null)), Just(json!("f")), Just(json!("g"))];
    let carried = prop_oneof![3 => Just(json!(null)), 1 => Just(json!({"signature": "s"}))];
    let call = (index, id, name, text.clone(), carried).prop_map(
        |(index, id, name, arguments, carried)| {
            json!({"index": index, "id": id, "extra_content": carried,
                   "function": {"name": name, "arguments": arguments}})
        },
    );
    let detail = prop_oneof![
        Just(json!({"type": "reasoning.text", "text": "t"})),
        Just(json!({"type": "reasoning.text", "signature": "s"})),
        Just(json!({"type": "reasoning.encrypted", "data": "x"})),
    ];
    let content = (
        text.clone(),
        text.clone(),
        text,
        prop::collection::vec(detail, 0..2),
        prop::collection::vec(call, 0..3),
    )
        .prop_map(|(content, refusal, reasoning, details, tool_calls)| {
            json!({"content": content, "refusal": refusal, "reasoning": reasoning,
                   "reasoning_details": details, "tool_calls": tool_calls})
        });
    let reasons = ["stop", "length", "tool_calls", "odd"].map(|it| json!(it));
    let reason = prop_oneof![3 => Just(json!(null)), 1 => prop::sample::select(reasons.to_vec())];
    (content, reason).prop_map(|(delta, finish_reason)| {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
    })
}

proptest! {
    #[test]
    fn any_order_of_pieces_gives_a_valid_event_sequence(
        chunks in prop::collection::vec(any_chunk(), 0..12),
        restores in any::<bool>(),
    ) {
        let mapping = if restores { tool_mapping() } else { ToolMapping::default() };
        let (events, end) = run_with(decoder().with_tool_mapping(mapping), &chunks);
        let mut answer = ResponseAccumulator::default();
        for event in &events {
            answer.push(event).unwrap();
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

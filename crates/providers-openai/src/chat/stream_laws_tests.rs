//! Laws that hold for any input.

use proptest::prelude::*;

use super::*;

/// Pieces of chunks that servers might send in any order.
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

/// A chunk such as most are: one piece of one thing, now and then with something odd about it.
fn plain_chunk() -> impl Strategy<Value = Value> {
    let text = || prop::sample::select(vec!["", "a", "\\", "\"1\"}", "{\"x\":", "\u{e9}"]);
    let text_of = move |name: &'static str| text().prop_map(move |text| json!({name: text}));
    let call = (0..2_u32, text()).prop_map(
        |(index, text)| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}),
    );
    let delta = prop_oneof![
        4 => text_of("content"),
        1 => text_of("reasoning"),
        1 => text_of("reasoning_content"),
        3 => call,
        1 => Just(json!({})),
    ];
    let odd = prop::option::weighted(
        0.2,
        prop::sample::select(vec![
            ("/choices/0/index", json!(1)),
            ("/choices/0/index", json!("0")),
            ("/choices/0/finish_reason", json!("length")),
            (
                "/choices/0/delta/content",
                json!([{"type": "text", "text": "piece"}]),
            ),
            ("/choices/0/delta/content", json!(7)),
            ("/choices/0/delta/content", json!("beside")),
            ("/choices/0/delta/refusal", json!("no")),
            ("/choices/0/delta/odd", json!({"new": true})),
            ("/choices/0/delta/tool_calls", json!(null)),
            ("/choices/0/delta/role", json!("assistant")),
            ("/choices/0/message", json!({"content": "whole"})),
            (
                "/usage",
                json!({"prompt_tokens": 3, "completion_tokens": 1}),
            ),
            ("/usage", json!(null)),
            ("/object", json!("error")),
            ("/error", json!({"message": "broken"})),
            ("/error", json!(null)),
            ("/choices", json!([])),
        ]),
    );
    (delta, odd).prop_map(|(delta, odd)| {
        let mut chunk = json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
        });
        if let Some((place, value)) = odd {
            let (within, name) = place.rsplit_once('/').unwrap();
            chunk.pointer_mut(within).unwrap()[name] = value;
        }
        chunk
    })
}

proptest! {
    #[test]
    fn plain_chunks_come_to_what_they_come_to_the_long_way(
        begins in prop::collection::vec(any_chunk(), 0..2),
        chunks in prop::collection::vec(plain_chunk(), 0..24),
        reshapes in any::<bool>(),
    ) {
        let chunks: Vec<_> = begins.into_iter().chain(chunks).collect();
        let reshaped = if reshapes { Reshaped::all_of("f") } else { Reshaped::default() };
        let (events, end) = run_with(decoder().reshaping(reshaped.clone()), &chunks);
        let long = run_with(decoder().reshaping(reshaped).the_long_way(), &chunks);
        prop_assert_eq!(&events, &long.0);
        let told = |end: &Result<(), ModelError>| end.as_ref().err().map(ToString::to_string);
        prop_assert_eq!(told(&end), told(&long.1));
    }

    #[test]
    fn any_order_of_pieces_keeps_the_grammar(
        chunks in prop::collection::vec(any_chunk(), 0..12),
        reshapes in any::<bool>(),
    ) {
        let reshaped = if reshapes { Reshaped::all_of("f") } else { Reshaped::default() };
        let (events, end) = run_with(decoder().reshaping(reshaped), &chunks);
        let mut answer = ResponseAccumulator::default();
        for event in &events {
            answer.push(event).unwrap();
        }
        prop_assert_eq!(end.is_ok(), answer.is_finished());
        let response = answer.interrupted();
        let mut ids: Vec<_> = response.message.tool_uses().map(|it| it.id.clone()).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), count, "ids are unique");
    }

    #[test]
    fn any_text_is_taken_without_a_panic(name in ".{0,8}", frames in prop::collection::vec(".{0,40}", 0..4)) {
        let (mut decoder, mut events) = (decoder(), Vec::new());
        for frame in frames {
            let _ = decoder.frame(&name, &frame, &mut events);
        }
        let _ = decoder.end(&mut events);
    }
}

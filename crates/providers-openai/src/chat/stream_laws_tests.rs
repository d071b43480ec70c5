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
    let blank_or = |word| prop::option::weighted(0.3, prop::sample::select(vec!["", word]));
    let call =
        (0..2_u32, text(), blank_or("a"), blank_or("f")).prop_map(|(index, text, id, name)| {
            let mut call = json!({"index": index, "function": {"arguments": text}});
            if let Some(id) = id {
                call["id"] = json!(id);
            }
            if let Some(name) = name {
                call["function"]["name"] = json!(name);
            }
            json!({"tool_calls": [call]})
        });
    let delta = prop_oneof![
        4 => text_of("content"),
        1 => text_of("refusal"),
        1 => (text_of("content"), text_of("reasoning")).prop_map(|(mut both, other)| {
            both["reasoning"] = other["reasoning"].clone();
            both
        }),
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

/// Where something odd is in a whole body, and what.
fn oddity() -> impl Strategy<Value = (&'static str, Value)> {
    prop::sample::select(vec![
        ("/choices/0/index", json!(1)),
        ("/choices/0/index", json!(null)),
        ("/choices/0/delta", json!(null)),
        ("/choices/0/delta", json!({"content": "new"})),
        ("/choices/0/finish_reason", json!("length")),
        ("/choices/0/finish_reason", json!("")),
        ("/choices/0/finish_reason", json!("abort")),
        ("/choices/0/message", json!(null)),
        ("/choices/0/message", json!(["listed", null, "in order"])),
        ("/choices/0/message/refusal", json!("no")),
        ("/choices/0/message/refusal", json!("")),
        (
            "/choices/0/message/function_call",
            json!({"name": "f", "arguments": "{}"}),
        ),
        ("/choices/0/message/annotations", json!([])),
        ("/choices/0/message/tool_calls", json!({})),
        ("/choices/0/message/tool_calls", json!([])),
        (
            "/choices/0/message/tool_calls",
            json!([{"id": "s", "function": {"name": "f"}, "extra_content": {"signature": "s"}}]),
        ),
        (
            "/choices/0/message/reasoning_details",
            json!([{"type": "reasoning.text", "text": "t"}]),
        ),
        ("/choices/0/message/thinking_blocks", json!(null)),
        ("/choices", json!([])),
        ("/choices", json!(null)),
        (
            "/choices",
            json!([{"message": {"content": "a"}}, {"index": 1}]),
        ),
        ("/usage", json!(null)),
        ("/usage", json!("many")),
        (
            "/usage",
            json!({"prompt_tokens": "3", "completion_tokens": 1}),
        ),
        ("/usage", json!([3, 1, 4])),
        ("/id", json!(7)),
        ("/id", json!("")),
        ("/model", json!(null)),
        ("/object", json!("error")),
        ("/object", json!(null)),
        ("/error", json!(null)),
        ("/error", json!({"message": "broken"})),
        ("/new", json!({"of": ["any", "kind"]})),
    ])
}

/// A whole body such as most are, now and then with something odd about it.
fn plain_body() -> impl Strategy<Value = String> {
    let texts = vec![
        json!(null),
        json!(""),
        json!("a"),
        json!("\\ \u{e9}\n"),
        json!("{\"x\":1}"),
        json!(7),
        json!([{"type": "text", "text": "piece"}]),
    ];
    let text = move || prop::sample::select(texts.clone());
    let call = (
        prop::option::of(0..2_u32),
        text(),
        prop::sample::select(vec![json!("f"), json!(" g "), json!(""), json!(null)]),
        text(),
    )
        .prop_map(|(index, id, name, arguments)| {
            let mut call = json!({"id": id, "function": {"name": name, "arguments": arguments}});
            if let Some(index) = index {
                call["index"] = json!(index);
            }
            call
        });
    let message = (text(), text(), text(), prop::collection::vec(call, 0..3)).prop_map(
        |(content, reasoning, field, calls)| {
            let mut message = json!({"role": "assistant", "content": content, "refusal": null});
            let field = if field.is_null() {
                "reasoning"
            } else {
                "reasoning_content"
            };
            message[field] = reasoning;
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            message
        },
    );
    let odd = prop::option::weighted(0.5, oddity());
    let cut = prop::option::weighted(0.1, 0..40_usize);
    (message, odd, cut).prop_map(|(message, odd, cut)| {
        let mut body = json!({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1},
        });
        if let Some((place, value)) = odd {
            let (within, name) = place.rsplit_once('/').unwrap();
            body.pointer_mut(within).unwrap()[name] = value;
        }
        let mut text = body.to_string();
        if let Some(cut) = cut {
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(cut)));
        }
        text
    })
}

proptest! {
    #[test]
    fn a_plain_body_comes_to_what_it_comes_to_the_long_way(
        body in plain_body(),
        reshapes in any::<bool>(),
    ) {
        let reshaped = if reshapes { Reshaped::all_of("f") } else { Reshaped::default() };
        let read = |decoder: ChatDecoder| {
            let mut events = Vec::new();
            let end = decoder.reshaping(reshaped.clone()).read_whole(&body, &mut events);
            (events, end.err().map(|error| error.to_string()))
        };
        prop_assert_eq!(read(decoder()), read(decoder().the_long_way()), "{}", body);
    }

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

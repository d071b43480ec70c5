//! Properties of every input.

use proptest::prelude::*;
use switchboard_domain::{
    ChatRequest, Message, ModelCapabilities, ResponseAccumulator, ToolResult,
};
use switchboard_providers_common::schema::ToolSchemas;

use super::*;
use crate::{GeminiOptions, generate::to_wire_request};

fn model() -> ModelId {
    ModelId::new("gemini", "gemini-2.5-flash")
}

fn decoder() -> GenerateDecoder {
    GenerateDecoder::new(
        model(),
        ToolChoiceOutcome::Native,
        vec![Warning::new(WarningKind::OptionDropped, "w")],
        ToolUseIds::default(),
    )
}

/// Generates a part of an answer.
fn any_part() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["", "a", "b c"]);
    let id = prop::sample::select(vec![json!(null), json!("x"), json!("y")]);
    let args = prop::sample::select(vec![json!({}), json!({"z": 1, "a": [null]})]);
    let data = prop_oneof![
        4 => (text, any::<bool>()).prop_map(|(text, thought)| json!({"text": text, "thought": thought})),
        4 => (id, args).prop_map(|(id, args)| {
            let mut call = json!({"name": "f", "args": args});
            if !id.is_null() {
                call["id"] = id;
            }
            json!({"functionCall": call})
        }),
        1 => Just(json!({"executableCode": {"code": "1", "language": "PYTHON"}})),
        1 => Just(json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}})),
    ];
    let signature = prop::option::weighted(0.3, prop::sample::select(vec!["c2ln", "bmF0"]));
    (data, signature).prop_map(|(mut data, signature)| {
        if let Some(signature) = signature {
            data["thoughtSignature"] = json!(signature);
        }
        data
    })
}

/// Generates chunks, which may be in any order.
fn any_chunk() -> impl Strategy<Value = Value> {
    let odd = prop::sample::select(vec![
        json!({}),
        json!(3),
        json!({"text": 3}),
        json!({"functionCall": {}}),
        json!({"functionCall": {"name": "f", "args": "x", "willContinue": true}}),
        json!({"thoughtSignature": "c2ln"}),
    ]);
    let part = prop_oneof![6 => any_part(), 1 => odd];
    let words = ["STOP", "MAX_TOKENS", "SAFETY", "CONTINUATION", "ODD", ""].map(|it| json!(it));
    let word = prop_oneof![3 => Just(json!(null)), 1 => prop::sample::select(words.to_vec())];
    let index = prop::sample::select(vec![json!(null), json!(0), json!(1)]);
    let blocked = prop::option::weighted(0.1, Just(json!({"blockReason": "SAFETY"})));
    (
        prop::collection::vec(part, 0..4),
        word,
        index,
        blocked,
        any::<u8>(),
    )
        .prop_map(|(parts, word, index, blocked, tokens)| {
            json!({
                "candidates": [{"content": {"parts": parts}, "finishReason": word, "index": index}],
                "promptFeedback": blocked, "usageMetadata": {"promptTokenCount": tokens},
            })
        })
}

/// Joins adjacent texts without a signature and removes empty texts, so that the result does not
/// depend on the division of the text.
fn essence(parts: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for mut part in parts {
        if part["thought"] == json!(false) {
            part.as_object_mut().unwrap().remove("thought");
        }
        let signed = part.get(SIGNATURE).is_some();
        if part["text"] == "" && !signed {
            continue;
        }
        if let Some(last) = out.last_mut()
            && !signed
            && last.get(SIGNATURE).is_none()
            && last["text"].is_string()
            && part["text"].is_string()
            && last.get("thought") == part.get("thought")
        {
            let text = format!(
                "{}{}",
                last["text"].as_str().unwrap(),
                part["text"].as_str().unwrap()
            );
            last["text"] = json!(text);
            continue;
        }
        out.push(part);
    }
    out
}

proptest! {
    #[test]
    fn any_order_of_pieces_keeps_the_grammar(chunks in prop::collection::vec(any_chunk(), 0..12)) {
        let (mut decoder, mut events) = (decoder(), Vec::new());
        for chunk in &chunks {
            decoder.decode_frame("", &chunk.to_string(), &mut events).unwrap();
        }
        let end = decoder.finish_decoding(&mut events);
        let mut answer = ResponseAccumulator::default();
        for event in &events {
            answer.push(event).unwrap();
        }
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
    fn any_text_is_taken_without_a_panic(name in ".{0,8}", frames in prop::collection::vec(".{0,40}", 0..4)) {
        let (mut decoder, mut events) = (decoder(), Vec::new());
        for frame in frames {
            let _ = decoder.decode_frame(&name, &frame, &mut events);
        }
        let _ = decoder.finish_decoding(&mut events);
    }

    /// The parts of an answer are sent back to their model unchanged and in order: thoughts,
    /// signatures, ids, code and images. Nothing is added.
    #[test]
    fn what_a_model_said_goes_back_to_it_as_it_came(parts in prop::collection::vec(any_part(), 1..8)) {
        let (mut decoder, mut events) = (decoder(), Vec::new());
        for part in &parts {
            let chunk = json!({"candidates": [{"content": {"parts": [part]}}]});
            decoder.decode_frame("", &chunk.to_string(), &mut events).unwrap();
        }
        decoder.decode_frame("", r#"{"candidates":[{"finishReason":"STOP"}]}"#, &mut events).unwrap();
        decoder.finish_decoding(&mut events).unwrap();
        let mut answer = ResponseAccumulator::default();
        for event in &events {
            answer.push(event).unwrap();
        }
        let message = answer.finish().unwrap().message;
        let results = message.tool_uses().map(|it| ToolResult::text(&it.id, &it.name, "ok"));
        let results = Message::from_tool_results(results);
        let request = ChatRequest::new([Message::user("?"), message, results, Message::user("!")]);
        let model = model();
        let wire = to_wire_request(&request, &model, &ModelCapabilities::default(), &GeminiOptions::default(), &ToolSchemas::default()).unwrap();
        prop_assert_eq!(&wire.warnings, &[]);
        let body = serde_json::to_value(&wire.body).unwrap();
        let expected = essence(parts);
        let contents = body["contents"].as_array().unwrap();
        let sent = contents.iter().find(|it| it["role"] == "model");
        let sent = sent.map_or_else(Vec::new, |it| it["parts"].as_array().unwrap().clone());
        prop_assert_eq!(&sent, &expected);
        // Each call has a response with the same id and name, in the same order.
        let named = |parts: &[Value], field: &str| -> Vec<(Value, Value)> {
            let found = parts.iter().filter_map(|part| part.get(field));
            found.map(|it| (it["id"].clone(), it["name"].clone())).collect()
        };
        let responses: Vec<Value> = contents.iter()
            .filter(|it| it["role"] == "user")
            .flat_map(|it| it["parts"].as_array().unwrap().clone())
            .collect();
        prop_assert_eq!(named(&responses, "functionResponse"), named(&expected, "functionCall"));
    }
}

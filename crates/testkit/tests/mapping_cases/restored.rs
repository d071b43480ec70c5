//! Schemas that strict mode changes: tool inputs and answers are converted back to the original
//! schema.

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, Message, ModelEvent, ResponseFormat, ToolDefinition, ToolInput,
};

use crate::{
    answers::{End, Said},
    wires::{Target, Wire},
};

/// The wires whose API has a strict mode that makes every property required.
const STRICT: [Wire; 2] = [Wire::Chat, Wire::Responses];

fn strict(wire: Wire) -> Target {
    let mut target = wire.target();
    target.profile.strict_tools = true;
    target
}

fn place() -> Value {
    let text = || json!({"type": "string"});
    json!({"type": "object", "properties": {"city": text(), "zip": text()}, "required": ["city"]})
}

/// Returns the answer with each kind of end, and whether it is complete.
fn answers(wire: Wire, said: &[Said<'_>]) -> [(String, bool); 4] {
    let broken = wire.answer(said, End::Missing) + &wire.error();
    [
        (wire.answer(said, End::Complete), true),
        (wire.answer(said, End::Limit), false),
        (wire.answer(said, End::Missing), false),
        (broken, false),
    ]
}

#[test]
fn a_complete_input_is_restored_and_an_incomplete_one_is_unchanged() {
    let written = r#"{"city":"Kiel","zip":null}"#;
    let said = [Said::Text("Well."), Said::Call("call_1", "t", written)];
    let request =
        ChatRequest::new([Message::user("hi")]).with_tools([ToolDefinition::new("t", "", place())]);
    for wire in STRICT {
        let target = strict(wire);
        let sent = target.send(&request).unwrap();
        assert!(sent.bytes.contains(r#""strict":true"#), "{}", sent.bytes);
        for (text, is_complete) in answers(wire, &said) {
            let replayed = target.read(&request, &text);
            let answer = replayed.response;
            assert_eq!(answer.message.text(), "Well.");
            let input = &answer.message.tool_uses().next().unwrap().input;
            match input {
                ToolInput::Malformed { raw, .. } => {
                    assert_eq!((raw.as_str(), is_complete), (written, false));
                }
                ToolInput::Object(_) => assert_eq!(
                    (input, is_complete),
                    (&ToolInput::parse_input(r#"{"city":"Kiel"}"#), true)
                ),
            }
        }
    }
}

#[test]
fn a_complete_answer_is_restored_and_an_incomplete_one_is_unchanged() {
    let schema = json!({"type": "array", "items": place()});
    let name = "n".to_owned();
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema { name, schema },
        ..ChatRequest::new([Message::user("hi")])
    };
    for wire in STRICT {
        let target = strict(wire);
        let said = [Said::Text(r#"{"value":[{"city":"Kiel","zip":null}]}"#)];
        let replayed = target.read(&request, &wire.answer(&said, End::Complete));
        assert_eq!(replayed.response.message.text(), r#"[{"city":"Kiel"}]"#);
        let deltas = replayed.events.iter();
        let deltas = deltas.filter(|it| matches!(it, ModelEvent::TextDelta { .. }));
        assert_eq!(deltas.count(), 1, "{wire:?}");
        let begun = r#"{"value":[{"city":"Ki"#;
        for (text, is_complete) in answers(wire, &[Said::Text(begun)]) {
            assert_eq!(
                target.read(&request, &text).response.message.text(),
                begun,
                "{wire:?} {is_complete}"
            );
        }
    }
}

#[test]
fn a_property_name_that_the_wire_refuses_is_restored() {
    let schema = json!({"type": "object", "properties": {"größe in m": {"type": "number"}}});
    let request = ChatRequest::new([Message::user("How large?")])
        .with_tools([ToolDefinition::new("measure", "", schema)]);
    let sent = Wire::Anthropic.send(&request).unwrap().body;
    let properties = &sent["tools"][0]["input_schema"]["properties"];
    let name = properties.as_object().unwrap().keys().next().unwrap();
    assert!(name.is_ascii(), "{name}");
    let arguments = json!({ name.as_str(): 3 }).to_string();
    let said = [Said::Call("call_1", "measure", &arguments)];
    let text = Wire::Anthropic.answer(&said, End::Complete);
    let answer = Wire::Anthropic.read_whole(&request, &text);
    let input = &answer.message.tool_uses().next().unwrap().input;
    assert_eq!(*input, ToolInput::from_json(json!({"größe in m": 3})));
}

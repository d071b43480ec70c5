//! Schemas that are sent in another shape and tools that are sent under another name, on both
//! wires: answers are restored to the original shape and names.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, ChatResponse, FinishReason, Message, ModelCapabilities, ModelError,
    ModelErrorKind, ModelEvent, ModelId, Part, ResponseAccumulator, ResponseFormat, Role,
    ToolDefinition, ToolInput, ToolResult, ToolUse,
};
use switchboard_providers_common::WireDecoder;
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_openai::{
    Profile,
    chat::{self, ChatDecoder},
    responses::{self, ResponsesDecoder, ResponsesOptions},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Chat,
    Responses,
}

const WIRES: [Wire; 2] = [Wire::Chat, Wire::Responses];

/// A sent request, with the decoder of its answer.
struct Asked {
    body: Value,
    warnings: Vec<String>,
    decoder: Box<dyn WireDecoder>,
}

fn ask(wire: Wire, request: &ChatRequest) -> Asked {
    let (model, unknown) = (ModelId::new("openai", "m"), ModelCapabilities::default());
    let profile = Profile {
        strict_tools: true,
        ..Profile::openai()
    };
    match wire {
        Wire::Chat => {
            let sent = chat::to_wire(request, &model, &unknown, &profile, &ToolSchemas::default())
                .unwrap();
            let ids = sent.local_ids;
            let decoder = ChatDecoder::new(model.clone(), sent.tool_choice, Vec::new(), ids);
            Asked {
                body: serde_json::to_value(&sent.body).unwrap(),
                warnings: sent.warnings.into_iter().map(|it| it.message).collect(),
                decoder: Box::new(decoder.with_tool_mapping(sent.tool_mapping)),
            }
        }
        Wire::Responses => {
            let options = ResponsesOptions::default();
            let sent = responses::to_wire(
                request,
                &model,
                &unknown,
                &profile,
                &options,
                &ToolSchemas::default(),
            )
            .unwrap();
            let ids = sent.local_ids;
            let decoder = ResponsesDecoder::new(model.clone(), sent.tool_choice, Vec::new(), ids);
            Asked {
                body: serde_json::to_value(&sent.body).unwrap(),
                warnings: sent.warnings.into_iter().map(|it| it.message).collect(),
                decoder: Box::new(decoder.with_tool_mapping(sent.tool_mapping)),
            }
        }
    }
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// At the output limit.
    Limit,
    /// With an error of the provider.
    Error,
    /// The connection is interrupted.
    Gone,
}

/// Returns the frames of an answer with `text`, a call of tool `t` with `arguments`, or both, a few
/// characters at a time.
fn frames(wire: Wire, text: &str, arguments: Option<&str>, end: End) -> Vec<Value> {
    let pieces = |text: &str| {
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters.chunks(3);
        pieces.map(String::from_iter).collect::<Vec<String>>()
    };
    let mut frames = Vec::new();
    match wire {
        Wire::Chat => {
            let chunk = |delta: Value, reason: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
            let call = |call: Value| chunk(json!({"tool_calls": [call]}), Value::Null);
            for piece in pieces(text) {
                frames.push(chunk(json!({"content": piece}), Value::Null));
            }
            if let Some(arguments) = arguments {
                frames.push(call(
                    json!({"index": 0, "id": "a", "function": {"name": "t"}}),
                ));
                for piece in pieces(arguments) {
                    frames.push(call(json!({"index": 0, "function": {"arguments": piece}})));
                }
            }
            match end {
                End::Whole if arguments.is_some() => {
                    frames.push(chunk(json!({}), json!("tool_calls")));
                }
                End::Whole => frames.push(chunk(json!({}), json!("stop"))),
                End::Limit => frames.push(chunk(json!({}), json!("length"))),
                End::Error => frames.push(json!({"error": {"message": "Oops", "code": 500}})),
                End::Gone => {}
            }
        }
        Wire::Responses => {
            let status = if end == End::Whole {
                "completed"
            } else {
                "incomplete"
            };
            let message = json!({"type": "message", "id": "m", "status": status, "content": [{"type": "output_text", "text": text}]});
            let call = json!({"type": "function_call", "id": "f", "call_id": "a", "name": "t", "status": status, "arguments": arguments});
            let mut item = |index: u32, item: &Value, delta: &str, text: &str| {
                let id = &item["id"];
                frames.push(json!({"type": "response.output_item.added", "output_index": index, "item": {"type": item["type"], "id": id, "call_id": item["call_id"], "name": item["name"]}}));
                for piece in pieces(text) {
                    frames.push(json!({"type": delta, "output_index": index, "item_id": id, "content_index": 0, "delta": piece}));
                }
                if matches!(end, End::Whole | End::Limit) {
                    frames.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
                }
            };
            if !text.is_empty() {
                item(0, &message, "response.output_text.delta", text);
            }
            if let Some(arguments) = arguments {
                item(
                    1,
                    &call,
                    "response.function_call_arguments.delta",
                    arguments,
                );
            }
            match end {
                End::Whole => frames.push(json!({"type": "response.completed", "response": {"id": "r", "status": "completed"}})),
                End::Limit => frames.push(json!({"type": "response.incomplete", "response": {"id": "r", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}})),
                End::Error => frames.push(json!({"type": "error", "code": "server_error", "message": "Oops"})),
                End::Gone => {}
            }
        }
    }
    frames
}

fn read(
    mut decoder: Box<dyn WireDecoder>,
    frames: &[Value],
) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut events = Vec::new();
    for frame in frames {
        if let Err(error) = decoder.frame("", &frame.to_string(), &mut events) {
            return (events, Some(error));
        }
    }
    let end = decoder.end(&mut events);
    (events, end.err())
}

fn assembled(events: &[ModelEvent]) -> ChatResponse {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer.push(event).expect("the grammar holds");
    }
    answer.interrupted()
}

fn with_tool(schema: &Value) -> ChatRequest {
    ChatRequest::new([Message::user("hi")]).with_tools([ToolDefinition::new(
        "t",
        "",
        schema.clone(),
    )])
}

fn with_format(schema: &Value) -> ChatRequest {
    ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "n".into(),
            schema: schema.clone(),
        },
        ..ChatRequest::new([Message::user("hi")])
    }
}

/// Returns the sent schema of the tool and whether it is strict.
fn declared(wire: Wire, body: &Value) -> (Value, bool) {
    let tool = &body["tools"][0];
    let function = match wire {
        Wire::Chat => &tool["function"],
        Wire::Responses => tool,
    };
    (function["parameters"].clone(), function["strict"] == true)
}

fn place() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
        "required": ["city"],
    })
}

/// A schema of a tool, whether the API enforces it, the input that a model writes for the sent
/// schema, and the restored input.
fn cases() -> Vec<(&'static str, Value, bool, Value, Value)> {
    let arm = |name: &str| json!({"properties": {name: {"type": "string"}}, "required": [name]});
    vec![
        (
            "optional fields",
            json!({"type": "object", "properties": {
                "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": ["string", "null"]},
                "d": {"enum": ["x", "y"]}, "e": {"type": "array", "items": place()},
            }, "required": ["a"]}),
            true,
            json!({"a": "x", "b": null, "c": null, "d": null, "e": [{"city": "Kiel", "zip": null}]}),
            // The original schema allows this null.
            json!({"a": "x", "c": null, "e": [{"city": "Kiel"}]}),
        ),
        (
            "$ref",
            json!({"type": "object", "properties": {
                "from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"},
            }, "required": ["from"], "$defs": {"place": place()}}),
            true,
            json!({"from": {"city": "Kiel", "zip": null}, "to": null}),
            json!({"from": {"city": "Kiel"}}),
        ),
        (
            "recursion",
            json!({"$ref": "#/definitions/node", "definitions": {"node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/definitions/node"}},
                },
                "required": ["value"],
            }}}),
            true,
            json!({"value": 1, "children": [{"value": 2, "children": null}, {"value": 3, "children": []}]}),
            json!({"value": 1, "children": [{"value": 2}, {"value": 3, "children": []}]}),
        ),
        (
            "root union",
            json!({"type": "object", "oneOf": [arm("city"), arm("zip")]}),
            false,
            json!({"zip": "24103"}),
            json!({"zip": "24103"}),
        ),
        (
            "free keys",
            json!({"type": "object", "properties": {"labels": {
                "type": "object", "additionalProperties": {"type": "string"},
            }}}),
            false,
            json!({"labels": {"a": "b"}}),
            json!({"labels": {"a": "b"}}),
        ),
    ]
}

#[test]
fn inputs_are_restored_to_the_shape_of_the_tools_schema() {
    for wire in WIRES {
        for (name, schema, strict, written, expected) in cases() {
            let asked = ask(wire, &with_tool(&schema));
            let (sent, is_strict) = declared(wire, &asked.body);
            assert_eq!(is_strict, strict, "{name}: {sent}");
            assert_eq!(asked.warnings.is_empty(), strict, "{name}");
            assert!(asked.warnings.iter().all(|it| it.contains("tool `t`")));
            let written = written.to_string();
            let (events, error) = read(
                asked.decoder,
                &frames(wire, "Well.", Some(&written), End::Whole),
            );
            assert!(error.is_none(), "{name}: {error:?}");
            let answer = assembled(&events);
            assert_eq!(answer.finish, FinishReason::ToolUse);
            assert_eq!(answer.message.text(), "Well.");
            let input = answer
                .message
                .tool_uses()
                .next()
                .expect("a call")
                .input
                .clone();
            assert_eq!(
                input,
                ToolInput::parse(&expected.to_string()),
                "{wire:?} {name}"
            );
        }
    }
}

#[test]
fn unchanged_shapes_are_streamed_without_delay() {
    let whole =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for wire in WIRES {
        let asked = ask(wire, &with_tool(&whole));
        assert!(declared(wire, &asked.body).1);
        let (events, _) = read(
            asked.decoder,
            &frames(wire, "", Some(r#"{"a":"xyz"}"#), End::Whole),
        );
        let is_delta = |it: &&ModelEvent| matches!(it, ModelEvent::ToolInputDelta { .. });
        assert_eq!(events.iter().filter(is_delta).count(), 4, "{wire:?}");
    }
}

#[test]
fn an_interrupted_input_is_malformed_and_unchanged() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for wire in WIRES {
        for end in [End::Limit, End::Error, End::Gone] {
            let asked = ask(wire, &with_tool(&schema));
            let (events, error) =
                read(asked.decoder, &frames(wire, "", Some(r#"{"a":null}"#), end));
            assert_eq!(error.is_some(), end != End::Limit);
            let answer = assembled(&events);
            let input = &answer.message.tool_uses().next().expect("a call").input;
            let ToolInput::Malformed { raw, .. } = input else {
                panic!("{wire:?} {end:?}: {input:?}");
            };
            assert_eq!(raw, r#"{"a":null}"#, "{wire:?} {end:?}");
        }
    }
}

/// Returns the streamed text of an answer to a schema.
fn texts(events: &[ModelEvent]) -> Vec<&str> {
    let mut texts = Vec::new();
    for event in events {
        if let ModelEvent::TextDelta { text, .. } = event {
            texts.push(text.as_str());
        }
    }
    texts
}

#[test]
fn answers_are_restored_to_the_shape_of_their_schema() {
    let optional = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}});
    let list = json!({"type": "array", "items": place()});
    let cases = [
        (&optional, json!({"a": null, "b": "[1]"}), json!({"b": [1]})),
        (
            &list,
            json!({"value": [{"city": "Kiel", "zip": null}]}),
            json!([{"city": "Kiel"}]),
        ),
    ];
    for wire in WIRES {
        for (schema, written, expected) in &cases {
            let asked = ask(wire, &with_format(schema));
            let format = match wire {
                Wire::Chat => &asked.body["response_format"]["json_schema"],
                Wire::Responses => &asked.body["text"]["format"],
            };
            assert_eq!(format["strict"], true);
            assert_eq!(asked.warnings, [""; 0]);
            let (events, error) = read(
                asked.decoder,
                &frames(wire, &written.to_string(), None, End::Whole),
            );
            assert!(error.is_none(), "{error:?}");
            assert_eq!(texts(&events), [expected.to_string()], "{wire:?}");
            assert_eq!(assembled(&events).finish, FinishReason::Stop);
        }
    }
}

#[test]
fn an_interrupted_answer_is_kept() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let begun = r#"{"a":"so f"#;
    for wire in WIRES {
        for end in [End::Limit, End::Error, End::Gone] {
            let asked = ask(wire, &with_format(&schema));
            let (events, error) = read(asked.decoder, &frames(wire, begun, None, end));
            assert_eq!(texts(&events), [begun], "{wire:?} {end:?}");
            let kind = error.map(|error| error.kind);
            match end {
                End::Limit => assert_eq!(assembled(&events).finish, FinishReason::Length),
                End::Gone => assert_eq!(kind, Some(ModelErrorKind::Interrupted)),
                _ => assert!(
                    matches!(kind, Some(ModelErrorKind::Overloaded { .. })),
                    "{kind:?}"
                ),
            }
        }
    }
}

#[test]
fn text_before_a_call_is_streamed_without_delay() {
    let mut request =
        with_format(&json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    request.tools = with_tool(&place()).tools;
    for wire in WIRES {
        let asked = ask(wire, &request);
        let written = r#"{"city":"Kiel","zip":null}"#;
        let (events, _) = read(
            asked.decoder,
            &frames(wire, "I look.", Some(written), End::Whole),
        );
        assert_eq!(texts(&events), ["I l", "ook", "."], "{wire:?}");
        let answer = assembled(&events);
        let input = &answer.message.tool_uses().next().expect("a call").input;
        assert_eq!(input, &ToolInput::parse(r#"{"city":"Kiel"}"#));
    }
}

/// A whole body is read like its stream.
#[test]
fn a_whole_body_is_restored_to_the_same_shape() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut request = with_format(&schema);
    request.tools = with_tool(&schema).tools;
    let (model, unknown) = (ModelId::new("openai", "m"), ModelCapabilities::default());
    let profile = Profile {
        strict_tools: true,
        ..Profile::openai()
    };
    let sent = chat::to_wire(
        &request,
        &model,
        &unknown,
        &profile,
        &ToolSchemas::default(),
    )
    .unwrap();
    let decoder = ChatDecoder::new(model.clone(), sent.tool_choice, Vec::new(), sent.local_ids);
    let written = r#"{"a":null}"#;
    let body = json!({"id": "c", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "content": written,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": written}}],
    }}]});
    let whole = chat::events_from_body(
        decoder.with_tool_mapping(sent.tool_mapping),
        &body.to_string(),
    )
    .map(|events| assembled(&events))
    .unwrap();

    let options = ResponsesOptions::default();
    let sent = responses::to_wire(
        &request,
        &model,
        &unknown,
        &profile,
        &options,
        &ToolSchemas::default(),
    )
    .unwrap();
    let decoder =
        ResponsesDecoder::new(model.clone(), sent.tool_choice, Vec::new(), sent.local_ids);
    let body = json!({"id": "r", "status": "completed", "output": [
        {"type": "message", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": written}]},
        {"type": "function_call", "id": "f", "call_id": "a", "name": "t", "status": "completed", "arguments": written},
    ]});
    let decoder = decoder.with_tool_mapping(sent.tool_mapping);
    let other = responses::events_from_body(decoder, &body.to_string())
        .map(|events| assembled(&events))
        .unwrap();
    for answer in [whole, other] {
        assert_eq!(answer.message.text(), "{}");
        let input = &answer.message.tool_uses().next().expect("a call").input;
        assert_eq!(input, &ToolInput::parse("{}"));
    }
}

/// Mapping case 16.
#[test]
fn calls_have_the_declared_names_of_their_tools() {
    let long = "x".repeat(70);
    let names = ["a/b", "a_b", "caf\u{e9}", "", "9 lives", &long];
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tools = names.map(|name| ToolDefinition::new(name, "", schema.clone()));
    let call = ToolUse::new("call_1", "gone.tool", ToolInput::parse("{}"));
    let history = [
        Message::user("hi"),
        Message::new(Role::Assistant, [Part::ToolUse(call)]),
        Message::tool_results([ToolResult::text("call_1", "gone.tool", "12")]),
    ];
    let request = ChatRequest::new(history).with_tools(tools);
    let is_legal = |name: &str| {
        let mut bytes = name.bytes();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=64).contains(&name.len()) && bytes.all(legal)
    };
    for wire in WIRES {
        let body = ask(wire, &request).body;
        let function = |tool: &Value| match wire {
            Wire::Chat => tool["function"]["name"].as_str().unwrap().to_owned(),
            Wire::Responses => tool["name"].as_str().unwrap().to_owned(),
        };
        let sent: Vec<_> = body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(function)
            .collect();
        assert!(sent.iter().all(|name| is_legal(name)), "{sent:?}");
        let distinct: BTreeSet<_> = sent.iter().collect();
        assert_eq!((distinct.len(), &*sent[1]), (names.len(), "a_b"));
        let called = match wire {
            Wire::Chat => function(&body["messages"][1]["tool_calls"][0]),
            Wire::Responses => function(&body["input"][1]),
        };
        assert!(
            is_legal(&called) && called.starts_with("gone_tool"),
            "{called}"
        );
        for (name, alias) in names.iter().zip(&sent) {
            let asked = ask(wire, &request);
            assert_eq!(asked.warnings, [""; 0]);
            // The shape is found by the declared name.
            let frames = frames(wire, "", Some(r#"{"a":null}"#), End::Whole);
            let renamed = serde_json::to_string(&frames).unwrap();
            let renamed = renamed.replace(r#""name":"t""#, &format!("\"name\":\"{alias}\""));
            let frames: Vec<Value> = serde_json::from_str(&renamed).unwrap();
            let (events, error) = read(asked.decoder, &frames);
            assert!(error.is_none(), "{error:?}");
            let answer = assembled(&events);
            let call = answer.message.tool_uses().next().expect("a call");
            assert_eq!((&*call.name, &call.input), (*name, &ToolInput::parse("{}")));
        }
    }
}

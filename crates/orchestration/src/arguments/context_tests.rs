use super::*;
use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{Media, ToolContent};

use crate::arguments::{tests_support::json_object, validators::compile};

const TOKEN: &str = "tok-\"1/2+3\"=secret";

fn context() -> ContextInjection {
    ContextInjection::new().with(
        "databaseContext",
        json!({
            "conversationId": "conversation-17",
            "apiBaseUrl": "http://localhost:3001",
            "accessToken": TOKEN,
            "retries": 3,
        }),
    )
}

fn tool(schema: Value) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition::new("t", "", schema))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

fn injected(schema: Value) -> Value {
    let input = object(json!({"nodes": [1]}));
    Value::Object(context().inject(&tool(schema), input))
}

#[test]
fn the_model_sees_the_same_tool_without_the_property() {
    let schema = json!({
        "type": "object",
        "properties": {
            "nodes": {"type": "array"},
            "databaseContext": {"$ref": "#/$defs/DatabaseContext"},
            "limit": {"$ref": "#/$defs/Limit"},
        },
        "required": ["databaseContext", "nodes"],
        "minProperties": 2,
        "dependentRequired": {"limit": ["databaseContext", "nodes"]},
        "examples": [{"nodes": [], "databaseContext": {"accessToken": "x"}}],
        "$defs": {
            "DatabaseContext": {"type": "object", "properties": {"token": {"$ref": "#/$defs/Token"}}},
            "Token": {"type": "string"},
            "Limit": {"type": "integer"},
            "Unused": {"type": "null"},
        },
    });
    let (context, tool) = (context(), tool(schema));
    let visible = context.visible(&tool);
    assert_eq!(
        visible.input_schema.to_string(),
        json!({
            "type": "object",
            "properties": {"nodes": {"type": "array"}, "limit": {"$ref": "#/$defs/Limit"}},
            "required": ["nodes"],
            "minProperties": 1,
            "dependentRequired": {"limit": ["nodes"]},
            "examples": [{"nodes": []}],
            "$defs": {"Limit": {"type": "integer"}, "Unused": {"type": "null"}},
        })
        .to_string()
    );
    assert!(
        Arc::ptr_eq(&visible, &context.clone().visible(&tool)),
        "built once"
    );
    assert_eq!(visible.name, tool.name);
}

#[test]
fn it_is_hidden_behind_references_and_in_alternatives() {
    let schema = json!({
        "$ref": "#/definitions/Args",
        "definitions": {"Args": {
            "allOf": [
                {"properties": {"databaseContext": {"type": "object"}}, "required": ["databaseContext"]},
                {"properties": {"nodes": {"type": "array"}}},
            ],
            "oneOf": [{"required": ["databaseContext", "a"]}, {"required": ["b"]}],
        }},
    });
    let tool = tool(schema);
    let visible = context().visible(&tool).input_schema.to_string();
    assert!(!visible.contains("databaseContext"), "{visible}");
    assert!(
        visible.contains("nodes") && visible.contains(r#"{"required":["a"]}"#),
        "{visible}"
    );
}

#[test]
fn a_tool_that_does_not_ask_is_left_alone() {
    let context = context();
    // The name deeper down is a property of the model's own.
    let tool = tool(json!({"properties": {"a": {"properties": {"databaseContext": {}}}}}));
    assert!(Arc::ptr_eq(&context.visible(&tool), &tool));
    let input = object(json!({"databaseContext": "the model's own", "a": 1}));
    assert_eq!(context.inject(&tool, input.clone()), input);
    assert_eq!(context.without(&tool, input.clone()), input);
    assert!(Arc::ptr_eq(&ContextInjection::new().visible(&tool), &tool));
}

#[test]
fn a_tool_gets_the_parts_that_it_names() {
    let nothing = json!({});
    let named = json!({"conversationId": "conversation-17"});
    let all = json!({
        "conversationId": "conversation-17",
        "apiBaseUrl": "http://localhost:3001",
        "accessToken": TOKEN,
        "retries": 3,
    });
    let id = json!({"type": "string"});
    let cases = [
        (
            json!({"type": "object", "properties": {"conversationId": id}}),
            &named,
        ),
        (
            json!({"properties": {"conversationId": id}, "additionalProperties": false}),
            &named,
        ),
        (
            json!({"properties": {"conversationId": id}, "additionalProperties": true}),
            &all,
        ),
        (
            json!({"properties": {"conversationId": id}, "additionalProperties": {}}),
            &all,
        ),
        (json!({"type": "object"}), &all),
        (json!(true), &all),
        (
            json!({"type": "object", "additionalProperties": false}),
            &nothing,
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}]}),
            &named,
        ),
        (json!({"allOf": [{"$ref": "#/$defs/C"}]}), &named),
    ];
    for (property, wanted) in cases {
        let schema = json!({
            "properties": {"databaseContext": property},
            "$defs": {"C": {"properties": {"conversationId": id}}},
        });
        let shown = schema.to_string();
        assert_eq!(injected(schema)["databaseContext"], *wanted, "{shown}");
    }
    assert_eq!(
        injected(json!({"required": ["databaseContext"]}))["databaseContext"],
        all
    );
}

#[test]
fn nested_parts_are_chosen_too() {
    let context = ContextInjection::new().with(
        "ctx",
        json!({"user": {"name": "Ada", "token": "t"}, "hosts": [{"url": "u", "key": "k"}]}),
    );
    let tool = tool(json!({"properties": {"ctx": {"properties": {
        "user": {"properties": {"name": {}}},
        "hosts": {"items": {"properties": {"url": {}}}},
    }}}}));
    let given = context.inject(&tool, JsonObject::new());
    assert_eq!(
        Value::Object(given),
        json!({"ctx": {"user": {"name": "Ada"}, "hosts": [{"url": "u"}]}})
    );
}

#[test]
fn what_the_model_wrote_there_never_reaches_the_tool() {
    let (context, tool) = (
        context(),
        tool(
            json!({"properties": {"databaseContext": {"type": "object", "properties": {"conversationId": {}}}}}),
        ),
    );
    let forged = object(json!({"databaseContext": {"conversationId": "another", "x": 1}, "a": 1}));
    let without = context.without(&tool, forged.clone());
    assert_eq!(Value::Object(without), json!({"a": 1}));
    let given = context.inject(&tool, forged);
    assert_eq!(
        given["databaseContext"],
        json!({"conversationId": "conversation-17"})
    );
}

#[test]
fn another_value_makes_another_plan() {
    let tool = tool(json!({"properties": {"a": {}, "b": {}}}));
    let one = ContextInjection::new().with("a", json!(1));
    assert_eq!(one.inject(&tool, JsonObject::new()).len(), 1);
    let two = one.clone().with("b", json!(2));
    assert_eq!(two.inject(&tool, JsonObject::new()).len(), 2);
    assert_eq!(one.inject(&tool, JsonObject::new()).len(), 1);
}

#[test]
fn nothing_of_it_is_printed() {
    let context = context();
    let tool = tool(json!({"properties": {"databaseContext": {}}}));
    let _ = context.inject(&tool, JsonObject::new());
    let printed = format!(
        "{context:?} {context:#?} {:?} {}",
        Hidden::new(TOKEN),
        Hidden::new(TOKEN)
    );
    for part in ["tok-", "conversation-17", "localhost"] {
        assert!(!printed.contains(part), "{printed}");
    }
    assert!(
        printed.contains("databaseContext") && printed.contains("[hidden]"),
        "{printed}"
    );
}

#[test]
fn a_tool_that_echoes_its_input_gives_nothing_away() {
    let context = context();
    let tool = tool(json!({"properties": {"databaseContext": {}}}));
    let given = Value::Object(context.inject(&tool, JsonObject::new()));
    let address = "tok-%221%2F2%2B3%22%3Dsecret";
    let mut output = ToolOutput::text(format!(
        "{given} at http://localhost:3001/x?t={address}, 3 times"
    ));
    output.content.extend([
        ToolContent::Resource {
            uri: format!("db://{TOKEN}"),
            media_type: None,
            text: Some(TOKEN.into()),
            blob: None,
        },
        ToolContent::ResourceLink {
            uri: "http://localhost:3001/a".into(),
            name: TOKEN.into(),
            media_type: None,
            description: Some(format!("for {TOKEN}")),
        },
        ToolContent::Image(Media::url("image/png", "http://localhost:3001/a.png")),
        ToolContent::Unknown {
            value: given.clone(),
        },
    ]);
    output.structured = Some(json!({"echo": given, TOKEN: [TOKEN], "count": 3}));
    assert!(context.scrub(&mut output));
    let told = format!("{output:?} {}", serde_json::to_string(&output).unwrap());
    for part in ["tok-", "secret", "conversation-17", "localhost:3001"] {
        assert!(!told.contains(part), "{part} in {told}");
    }
    assert_eq!(
        output.structured.as_ref().unwrap()["[hidden]"],
        json!(["[hidden]"])
    );
    assert!(told.contains("3 times"), "{told}");
    assert_eq!(
        context.scrub_text(&format!("401: bad token {TOKEN}")),
        "401: bad token [hidden]"
    );
    assert!(matches!(
        context.scrub_text("all is well"),
        Cow::Borrowed(_)
    ));
}

#[test]
fn ordinary_words_are_not_struck_out_and_schemes_are_seen_through() {
    let context = ContextInjection::new()
        .with("branch", json!("main"))
        .with("authorization", json!("Bearer abc1"))
        .with("pin_key", json!("123"));
    assert_eq!(
        context.scrub_text("main: token abc1 of 123"),
        "main: token [hidden] of 123"
    );
    let mut output = ToolOutput::text("main");
    assert!(!context.scrub(&mut output));
}

proptest! {
    #[test]
    fn what_is_valid_for_the_model_is_valid_for_the_tool_with_the_value(
        input in json_object(),
        required in prop::collection::vec("[a-e]", 0..2),
        behind_reference in any::<bool>(),
    ) {
        let mut names: Vec<Value> = required.into_iter().map(Value::from).collect();
        names.push("ctx".into());
        let args = json!({
            "type": "object",
            "properties": {"a": {"type": ["integer", "null"]}, "ctx": {
                "type": "object", "properties": {"id": {"const": 7}}, "required": ["id"],
                "additionalProperties": false,
            }},
            "required": names,
        });
        let schema = if behind_reference {
            json!({"$ref": "#/$defs/Args", "$defs": {"Args": args}})
        } else {
            args
        };
        let context = ContextInjection::new().with("ctx", json!({"id": 7, "token": "x"}));
        let tool = tool(schema);
        let visible = compile(&context.visible(&tool).input_schema).unwrap();
        let original = compile(&tool.input_schema).unwrap();
        let input = context.without(&tool, input);
        let given = context.inject(&tool, input.clone());
        prop_assert_eq!(
            visible.is_valid(&Value::Object(input)),
            original.is_valid(&Value::Object(given))
        );
    }

    #[test]
    fn no_secret_survives(before in ".{0,20}", secret in "[!-~é]{4,20}", after in ".{0,20}") {
        let context = ContextInjection::new().with("token", json!(secret.clone()));
        let text = format!("{before}{secret}{after}");
        let mut output = ToolOutput::text(Value::from(text.as_str()).to_string());
        output.structured = Some(json!([{"deep": text}]));
        prop_assert!(context.scrub(&mut output));
        prop_assume!(!"[hidden]".contains(&secret));
        let structured = output.structured.unwrap();
        prop_assert!(!structured[0]["deep"].as_str().unwrap().contains(&secret));
    }
}

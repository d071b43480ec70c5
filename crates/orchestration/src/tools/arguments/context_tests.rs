use super::*;
use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{Media, ToolContent};

use crate::tools::arguments::{test_support::json_object, validators::compile};

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
    Value::Object(context().inject(&tool(schema), input).unwrap())
}

#[test]
fn the_model_sees_the_tool_without_the_property() {
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
fn the_property_is_hidden_behind_references_and_in_branches() {
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
fn a_tool_that_does_not_request_the_value_is_unchanged() {
    let context = context();
    // A nested property with the same name belongs to the model.
    let tool = tool(json!({"properties": {"a": {"properties": {"databaseContext": {}}}}}));
    assert!(Arc::ptr_eq(&context.visible(&tool), &tool));
    let input = object(json!({"databaseContext": "the model's own", "a": 1}));
    assert_eq!(context.inject(&tool, input.clone()).unwrap(), input);
    assert_eq!(context.without(&tool, input.clone()), input);
    assert_eq!(Value::Object(context.without_any(input)), json!({"a": 1}));
    assert!(Arc::ptr_eq(&ContextInjection::new().visible(&tool), &tool));
}

#[test]
fn a_tool_gets_the_properties_that_its_schema_names() {
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
fn nested_properties_are_selected() {
    let context = ContextInjection::new().with(
        "ctx",
        json!({"user": {"name": "Ada", "token": "t"}, "hosts": [{"url": "u", "key": "k"}]}),
    );
    let tool = tool(json!({"properties": {"ctx": {"properties": {
        "user": {"properties": {"name": {}}},
        "hosts": {"items": {"properties": {"url": {}}}},
    }}}}));
    let given = context.inject(&tool, JsonObject::new()).unwrap();
    assert_eq!(
        Value::Object(given),
        json!({"ctx": {"user": {"name": "Ada"}, "hosts": [{"url": "u"}]}})
    );
}

#[test]
fn values_of_the_model_never_replace_values_of_the_host() {
    let (context, tool) = (
        context(),
        tool(
            json!({"properties": {"databaseContext": {"type": "object", "properties": {"conversationId": {}}}}}),
        ),
    );
    let forged = object(json!({"databaseContext": {"conversationId": "another", "x": 1}, "a": 1}));
    let without = context.without(&tool, forged.clone());
    assert_eq!(Value::Object(without), json!({"a": 1}));
    let given = context.inject(&tool, forged).unwrap();
    assert_eq!(
        given["databaseContext"],
        json!({"conversationId": "conversation-17"})
    );
}

#[test]
fn a_changed_value_is_injected() {
    let tool = tool(json!({"properties": {"a": {}, "b": {}}}));
    let one = ContextInjection::new().with("a", json!(1));
    assert_eq!(one.inject(&tool, JsonObject::new()).unwrap().len(), 1);
    let two = one.clone().with("b", json!(2));
    assert_eq!(two.inject(&tool, JsonObject::new()).unwrap().len(), 2);
    assert_eq!(one.inject(&tool, JsonObject::new()).unwrap().len(), 1);
}

#[test]
fn values_are_not_formatted() {
    let context = context();
    let tool = tool(json!({"properties": {"databaseContext": {}}}));
    let _ = context.inject(&tool, JsonObject::new()).unwrap();
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
fn values_are_redacted_from_the_result() {
    let context = context();
    let tool = tool(json!({"properties": {"databaseContext": {}}}));
    let given = Value::Object(context.inject(&tool, JsonObject::new()).unwrap());
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
    assert!(context.redact_output(&mut output));
    let told = format!("{output:?} {}", serde_json::to_string(&output).unwrap());
    for part in ["tok-", "secret", "conversation-17", "localhost:3001"] {
        assert!(!told.contains(part), "{part} in {told}");
    }
    assert_eq!(
        output.structured.as_ref().unwrap()["[redacted]"],
        json!(["[redacted]"])
    );
    assert!(told.contains("3 times"), "{told}");
    assert_eq!(
        context.redact_text(&format!("401: bad token {TOKEN}")),
        "401: bad token [redacted]"
    );
    assert!(matches!(
        context.redact_text("all is well"),
        Cow::Borrowed(_)
    ));
}

#[test]
fn short_values_are_not_redacted_and_schemes_are_ignored() {
    let context = ContextInjection::new()
        .with("branch", json!("main"))
        .with("authorization", json!("Bearer abc1"))
        .with("pin_key", json!("123"));
    assert_eq!(
        context.redact_text("main: token abc1 of 123"),
        "main: token [redacted] of 123"
    );
    let mut output = ToolOutput::text("main");
    assert!(!context.redact_output(&mut output));
}

proptest! {
    #[test]
    fn input_that_is_valid_for_the_model_is_valid_for_the_tool(
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
        let given = context.inject(&tool, input.clone()).unwrap();
        prop_assert_eq!(
            visible.is_valid(&Value::Object(input)),
            original.is_valid(&Value::Object(given))
        );
    }

    #[test]
    fn no_secret_remains(before in ".{0,20}", secret in "[!-~é]{4,20}", after in ".{0,20}") {
        let context = ContextInjection::new().with("token", json!(secret.clone()));
        let text = format!("{before}{secret}{after}");
        let mut output = ToolOutput::text(Value::from(text.as_str()).to_string());
        output.structured = Some(json!([{"deep": text}]));
        prop_assert!(context.redact_output(&mut output));
        prop_assume!(!"[redacted]".contains(&secret));
        let structured = output.structured.unwrap();
        prop_assert!(!structured[0]["deep"].as_str().unwrap().contains(&secret));
    }
}

fn template(value: &Value) -> ContextTemplate {
    ContextTemplate::parse(value).unwrap()
}

fn of_client(values: Value) -> ClientContext {
    ClientContext::new(object(values))
}

fn of_server(server: &str, schema: Value) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new("t", "", schema);
    tool.origin = Some(switchboard_domain::ToolOrigin {
        server: server.to_owned(),
        tool: "t".to_owned(),
    });
    Arc::new(tool)
}

fn principal(user: &str) -> Principal {
    Principal {
        tenant: "acme".to_owned(),
        user: user.to_owned(),
    }
}

#[test]
fn each_run_gets_the_values_of_its_session_and_principal() {
    let context = ContextInjection::new().with_template(
        "databaseContext",
        template(&json!({"conversationId": "${session.id}", "owner": "${principal.tenant}/${principal.user}"})),
    );
    let tool = tool(json!({"properties": {"databaseContext": {"type": "object"}}}));
    let visible = context.visible(&tool);
    let cases = [
        (
            Some("s-1"),
            "ann",
            json!({"conversationId": "s-1", "owner": "acme/ann"}),
        ),
        (
            Some("s-2"),
            "bob",
            json!({"conversationId": "s-2", "owner": "acme/bob"}),
        ),
        // A run without a session has its own conversation.
        (
            None,
            "ann",
            json!({"conversationId": "run-1", "owner": "acme/ann"}),
        ),
    ];
    for (session, user, expected) in &cases {
        let of_run = context.for_run("run-1", *session, &principal(user));
        let given = of_run.inject(&tool, JsonObject::new()).unwrap();
        assert_eq!(given["databaseContext"], *expected);
        // The visible tool does not depend on the run.
        assert!(Arc::ptr_eq(&of_run.visible(&tool), &visible));
    }
    let shared = context.in_conversation("c-1");
    let of_run = shared.for_run("run-1", None, &principal("ann"));
    let given = of_run.inject(&tool, JsonObject::new()).unwrap();
    assert_eq!(given["databaseContext"]["conversationId"], "c-1");
}

#[test]
fn secrets_of_templates_are_redacted_and_ids_are_not() {
    let context = ContextInjection::new()
        .with_template(
            "a",
            template(&json!("https://graph.internal/${session.id}")),
        )
        .with_template("tenant", template(&json!("${principal.tenant}")))
        .with_template("authorization", template(&json!("Bearer ${client.pin}")))
        .with_client(of_client(json!({"pin": "p1n4"})))
        .unwrap();
    let of_run = context.for_run("r", Some("session-0001"), &principal("somebody-else"));
    assert_eq!(
        of_run
            .redact_text("https://graph.internal/session-0001 of acme, somebody-else: Bearer p1n4"),
        "[redacted]session-0001 of acme, somebody-else: Bearer [redacted]"
    );
}

#[test]
fn a_client_can_send_only_configured_values() {
    let context = ContextInjection::new()
        .with("branch", json!("main"))
        .with_template(
            "databaseContext",
            template(&json!({"conversationId": "${session.id}", "accessToken": "${client.access_token}"})),
        );
    assert_eq!(context.client_names(), BTreeSet::from(["access_token"]));
    for name in ["branch", "databaseContext", "session.id", "accessToken"] {
        let error = context
            .clone()
            .with_client(of_client(json!({name: "x"})))
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(name) && text.contains("may send: access_token"),
            "{text}"
        );
    }
    for value in [json!({"a": 1}), json!(["a"])] {
        let error = context
            .clone()
            .with_client(of_client(json!({"access_token": value})))
            .unwrap_err();
        assert!(error.to_string().contains("is not a text"), "{error}");
    }
    let too_long = of_client(json!({"access_token": "x".repeat(8193)}));
    let error = context.clone().with_client(too_long).unwrap_err();
    assert_eq!(
        (error.name(), error.to_string().contains("8192 bytes")),
        ("access_token", true)
    );
    let none = ContextInjection::new().with_client(of_client(json!({"x": 1})));
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("clients may send none")
    );
    // Null counts as not sent.
    let sent = of_client(json!({"x": null}));
    assert!(sent.is_empty());
    ContextInjection::new().with_client(sent).unwrap();
    let printed = format!("{:?}", of_client(json!({"access_token": "very-secret"})));
    assert_eq!(printed, r#"{"access_token": [hidden]}"#);
}

#[test]
fn a_reserved_argument_is_hidden_and_required() {
    let context = ContextInjection::new().reserving("databaseContext");
    let optional = tool(json!({"properties": {"databaseContext": {"type": "object"}, "a": {}}}));
    assert_eq!(
        context.visible(&optional).input_schema,
        json!({"properties": {"a": {}}})
    );
    let forged = object(json!({"a": 1, "databaseContext": {"conversationId": "another"}}));
    let given = context.inject(&optional, forged).unwrap();
    assert_eq!(Value::Object(given), json!({"a": 1}));
    let required = tool(json!({
        "properties": {"databaseContext": {"type": "object"}},
        "required": ["databaseContext"],
    }));
    assert_eq!(
        context.visible(&required).input_schema,
        json!({"properties": {}})
    );
    let missing = context.inject(&required, JsonObject::new()).unwrap_err();
    assert_eq!(missing.argument, "databaseContext");
    let text = missing.to_string();
    assert!(text.contains("set `context.databaseContext`"), "{text}");
    // Other servers get no value, neither from the host nor from the model.
    let context = context
        .with("databaseContext", json!({"conversationId": "c"}))
        .only_for(["graph".to_owned()]);
    let schema = json!({"properties": {"databaseContext": {}}, "required": ["databaseContext"]});
    let (theirs, graph) = (
        of_server("other", schema.clone()),
        of_server("graph", schema),
    );
    assert_eq!(
        context.visible(&theirs).input_schema,
        json!({"properties": {}})
    );
    context.inject(&theirs, JsonObject::new()).unwrap_err();
    context.inject(&graph, JsonObject::new()).unwrap();
}

#[test]
fn a_missing_client_value_is_named() {
    let context = ContextInjection::new().with_template(
        "databaseContext",
        template(
            &json!({"conversationId": "${session.id}", "accessToken": "${client.access_token}"}),
        ),
    );
    let needs = |required: Value| {
        tool(json!({"properties": {"databaseContext": {
            "type": "object",
            "properties": {"conversationId": {}, "accessToken": {}},
            "required": required,
        }}}))
    };
    let of_run = context.for_run("r", Some("s-1"), &principal("ann"));
    let optional = needs(json!(["conversationId"]));
    let given = of_run.inject(&optional, JsonObject::new()).unwrap();
    assert_eq!(given["databaseContext"], json!({"conversationId": "s-1"}));
    let required = needs(json!(["conversationId", "accessToken"]));
    let missing = of_run.inject(&required, JsonObject::new()).unwrap_err();
    assert_eq!(missing.client, ["access_token"]);
    let text = missing.to_string();
    assert!(text.contains("did not send `access_token`"), "{text}");
    let sent = context
        .with_client(of_client(json!({"access_token": "t"})))
        .unwrap();
    let of_run = sent.for_run("r", Some("s-1"), &principal("ann"));
    let given = of_run.inject(&required, JsonObject::new()).unwrap();
    let expected = json!({"conversationId": "s-1", "accessToken": "t"});
    assert_eq!(given["databaseContext"], expected);
}

#[test]
fn a_default_applies_to_one_server() {
    let default = template(&json!({"conversationId": "${session.id}"}));
    let context = ContextInjection::new()
        .reserving("databaseContext")
        .with_default("graph", "databaseContext", default);
    let schema = json!({"properties": {"databaseContext": {"type": "object"}}});
    let (graph, other) = (
        of_server("graph", schema.clone()),
        of_server("other", schema),
    );
    let given = |context: &ContextInjection, tool| {
        let of_run = context.for_run("r", Some("s-1"), &principal("ann"));
        Value::Object(of_run.inject(tool, JsonObject::new()).unwrap())
    };
    let own = json!({"databaseContext": {"conversationId": "s-1"}});
    assert_eq!(given(&context, &graph), own);
    assert_eq!(given(&context, &other), json!({}));
    let partly = context
        .clone()
        .with("databaseContext", json!({"apiBaseUrl": "http://graph"}));
    assert_eq!(
        given(&partly, &graph)["databaseContext"],
        json!({"apiBaseUrl": "http://graph", "conversationId": "s-1"})
    );
    let configured = context
        .with("databaseContext", json!({"conversationId": "shared"}))
        .only_for(["graph".to_owned()]);
    assert_eq!(
        given(&configured, &graph)["databaseContext"]["conversationId"],
        "shared"
    );
    let elsewhere = configured.only_for(["other".to_owned()]);
    assert_eq!(given(&elsewhere, &graph), own);
}

#[test]
fn tools_of_an_excluded_server_are_unchanged() {
    let context = context().without_server("the client");
    let schema = json!({"properties": {"databaseContext": {"type": "object"}}});
    let tool = of_server("the client", schema.clone());
    assert!(Arc::ptr_eq(&context.visible(&tool), &tool));
    let input = object(json!({"databaseContext": {"conversationId": "its own"}}));
    assert_eq!(context.inject(&tool, input.clone()).unwrap(), input);
    assert_ne!(
        context
            .visible(&of_server("graph", schema.clone()))
            .input_schema,
        schema
    );
}

use super::*;
use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{ToolContent, json_schema::SchemaValidator};

use crate::tools::arguments::test_support::json_object;

const TOKEN: &str = "tok-\"1/2+3\"=secret";

fn context() -> ContextInjection {
    let values = json!({
        "conversationId": "conversation-17",
        "apiBaseUrl": "http://localhost:3001",
        "accessToken": TOKEN,
        "retries": 3,
    });
    ContextInjection::new().with_template("databaseContext", template(&values))
}

fn tool(schema: Value) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition::new("t", "", schema))
}

fn of_server(server: &str, schema: Value) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new("t", "", schema);
    tool.origin = Some(switchboard_domain::ToolOrigin {
        server: server.to_owned(),
        tool: "t".to_owned(),
    });
    Arc::new(tool)
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).unwrap()
}

fn injected(context: &ContextInjection, tool: &Arc<ToolDefinition>) -> Value {
    Value::Object(context.inject_values(tool, JsonObject::new()).unwrap())
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
        "$defs": {
            "DatabaseContext": {"type": "object", "properties": {"token": {"$ref": "#/$defs/Token"}}},
            "Token": {"type": "string"},
            "Limit": {"type": "integer"},
        },
    });
    let (context, tool) = (context(), tool(schema));
    let visible = context.hide_arguments(&tool);
    assert_eq!(
        visible.input_schema.to_string(),
        json!({
            "type": "object",
            "properties": {"nodes": {"type": "array"}, "limit": {"$ref": "#/$defs/Limit"}},
            "required": ["nodes"],
            "$defs": {"Limit": {"type": "integer"}},
        })
        .to_string()
    );
    assert!(Arc::ptr_eq(
        &visible,
        &context.clone().hide_arguments(&tool)
    ));
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
    let visible = context()
        .hide_arguments(&tool(schema))
        .input_schema
        .to_string();
    assert!(!visible.contains("databaseContext"), "{visible}");
    assert!(
        visible.contains("nodes") && visible.contains(r#"{"required":["a"]}"#),
        "{visible}"
    );
}

#[test]
fn tools_that_do_not_request_the_value_and_excluded_servers_are_unchanged() {
    let context = context().with_excluded_server("the client");
    let input = object(json!({"databaseContext": "the model's own", "a": 1}));
    for tool in [
        // A nested property with the same name is not hidden.
        tool(json!({"properties": {"a": {"properties": {"databaseContext": {}}}}})),
        of_server("the client", json!({"properties": {"databaseContext": {}}})),
    ] {
        assert!(Arc::ptr_eq(&context.hide_arguments(&tool), &tool));
        assert_eq!(context.inject_values(&tool, input.clone()).unwrap(), input);
        assert_eq!(context.remove_hidden_arguments(&tool, input.clone()), input);
    }
    assert_eq!(
        Value::Object(context.remove_all_hidden_arguments(input)),
        json!({"a": 1})
    );
}

#[test]
fn a_tool_gets_the_properties_that_its_schema_names() {
    let named = json!({"conversationId": "conversation-17"});
    let all = json!({
        "conversationId": "conversation-17",
        "apiBaseUrl": "http://localhost:3001",
        "accessToken": TOKEN,
        "retries": 3,
    });
    let id = json!({"type": "string"});
    for (property, expected) in [
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
        (json!({"type": "object"}), &all),
        (json!(true), &all),
        (
            json!({"type": "object", "additionalProperties": false}),
            &json!({}),
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}]}),
            &named,
        ),
    ] {
        let schema = json!({
            "properties": {"databaseContext": property},
            "$defs": {"C": {"properties": {"conversationId": id}}},
        });
        let value = injected(&context(), &tool(schema));
        assert_eq!(value["databaseContext"], *expected, "{property}");
    }
}

#[test]
fn values_are_neither_formatted_nor_returned_in_results() {
    let context = context();
    let tool = tool(json!({"properties": {"databaseContext": {}}}));
    let given = injected(&context, &tool);
    let printed = format!("{context:?} {context:#?}");
    for part in ["tok-", "conversation-17", "localhost"] {
        assert!(!printed.contains(part), "{printed}");
    }
    assert!(printed.contains("databaseContext") && printed.contains("[hidden]"));

    let address = "tok-%221%2F2%2B3%22%3Dsecret";
    let mut output = ToolOutput::text(format!(
        "{given} at http://localhost:3001/x?t={address}, 3 times"
    ));
    output.content.push(ToolContent::Unknown {
        value: given.clone(),
    });
    output.structured = Some(json!({"echo": given, TOKEN: [TOKEN], "count": 3}));
    context.redact_output(&mut output);
    let shown = format!("{output:?} {}", serde_json::to_string(&output).unwrap());
    for part in ["tok-", "secret", "conversation-17", "localhost:3001"] {
        assert!(!shown.contains(part), "{part} in {shown}");
    }
    assert!(shown.contains("3 times"), "{shown}");
    let error = context.redact_text("401: bad token");
    assert!(matches!(error, Cow::Borrowed(_)));
}

#[test]
fn short_values_are_not_redacted_and_schemes_are_ignored() {
    let context = ContextInjection::new()
        .with_template("branch", template(&json!("main")))
        .with_template("authorization", template(&json!("Bearer abc1")))
        .with_template("pin_key", template(&json!("123")));
    let expected = "main: token [redacted] of 123";
    assert_eq!(context.redact_text("main: token abc1 of 123"), expected);
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
        let context = ContextInjection::new().with_template("ctx", template(&json!({"id": 7, "token": "x"})));
        let tool = tool(schema);
        let visible = SchemaValidator::compile(&context.hide_arguments(&tool).input_schema).unwrap();
        let original = SchemaValidator::compile(&tool.input_schema).unwrap();
        let input = context.remove_hidden_arguments(&tool, input);
        let given = context.inject_values(&tool, input.clone()).unwrap();
        prop_assert_eq!(
            visible.is_valid(&Value::Object(input)),
            original.is_valid(&Value::Object(given))
        );
    }
}

fn template(value: &Value) -> ContextTemplate {
    ContextTemplate::parse(value).unwrap()
}

fn of_client(values: Value) -> ClientContext {
    ClientContext::new(object(values))
}

fn principal() -> Principal {
    Principal {
        tenant: "acme".to_owned(),
        user: "ann".to_owned(),
    }
}

fn of_run(context: &ContextInjection) -> ContextInjection {
    context.scope_to_run("run-1", Some("s-1"), &principal())
}

#[test]
fn a_run_without_a_session_has_its_own_conversation() {
    let tool = tool(json!({"properties": {"id": {}}}));
    let context = ContextInjection::new().with_template("id", template(&json!("${session.id}")));
    let own = context.scope_to_run("run-1", None, &principal());
    assert_eq!(injected(&own, &tool), json!({"id": "run-1"}));
    let shared = context
        .with_default_session("c-1")
        .scope_to_run("run-1", None, &principal());
    assert_eq!(injected(&shared, &tool), json!({"id": "c-1"}));
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
    let of_run = context.scope_to_run("r", Some("session-0001"), &principal());
    assert_eq!(
        of_run.redact_text("https://graph.internal/session-0001 of acme: Bearer p1n4"),
        "[redacted]session-0001 of acme: Bearer [redacted]"
    );
}

#[test]
fn a_client_can_send_only_configured_values() {
    let context = ContextInjection::new()
        .with_template("branch", template(&json!("main")))
        .with_template(
            "databaseContext",
            template(&json!({"accessToken": "${client.access_token}"})),
        );
    let refused = |values| {
        let error = context.clone().with_client(of_client(values)).unwrap_err();
        format!("{} {error}", error.value_name())
    };
    for name in ["branch", "databaseContext", "accessToken"] {
        let error = refused(json!({name: "x"}));
        assert!(
            error.contains(name) && error.contains("can send: access_token"),
            "{error}"
        );
    }
    assert!(refused(json!({"access_token": {"a": 1}})).contains("must be a string"));
    assert!(refused(json!({"access_token": "x".repeat(8193)})).contains("8192 bytes"));
    let none = ContextInjection::new().with_client(of_client(json!({"x": 1})));
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("clients cannot send any")
    );
    // A null value counts as missing.
    let sent = of_client(json!({"x": null}));
    assert!(sent.is_empty());
    ContextInjection::new().with_client(sent).unwrap();
    let printed = format!("{:?}", of_client(json!({"access_token": "very-secret"})));
    assert_eq!(printed, r#"{"access_token": [hidden]}"#);
}

#[test]
fn a_reserved_argument_is_hidden_and_required() {
    let schema =
        json!({"properties": {"databaseContext": {}, "a": {}}, "required": ["databaseContext"]});
    let context = ContextInjection::new().with_hidden_argument("databaseContext");
    let required = tool(schema.clone());
    let expected = json!({"properties": {"a": {}}});
    assert_eq!(context.hide_arguments(&required).input_schema, expected);
    let missing = context
        .inject_values(&required, JsonObject::new())
        .unwrap_err();
    assert!(
        missing
            .to_string()
            .contains("set `context.databaseContext`"),
        "{missing}"
    );
    // Servers that are not allowed get no value, neither from the host nor from the model.
    let context = context
        .with_template("databaseContext", template(&json!({"conversationId": "c"})))
        .with_allowed_servers(["graph".to_owned()]);
    let other = of_server("other", schema.clone());
    let expected = json!({"properties": {"a": {}}});
    assert_eq!(context.hide_arguments(&other).input_schema, expected);
    context
        .inject_values(&other, JsonObject::new())
        .unwrap_err();
    context
        .inject_values(&of_server("graph", schema), JsonObject::new())
        .unwrap();
}

#[test]
fn a_missing_client_value_is_named() {
    let values =
        json!({"conversationId": "${session.id}", "accessToken": "${client.access_token}"});
    let context = ContextInjection::new().with_template("databaseContext", template(&values));
    let needs = |required: Value| {
        tool(json!({"properties": {"databaseContext": {
            "type": "object",
            "properties": {"conversationId": {}, "accessToken": {}},
            "required": required,
        }}}))
    };
    let value = injected(&of_run(&context), &needs(json!(["conversationId"])));
    assert_eq!(value, json!({"databaseContext": {"conversationId": "s-1"}}));
    let required = needs(json!(["conversationId", "accessToken"]));
    let missing = of_run(&context)
        .inject_values(&required, JsonObject::new())
        .unwrap_err();
    assert!(
        missing.to_string().contains("did not send `access_token`"),
        "{missing}"
    );
    let sent = context
        .with_client(of_client(json!({"access_token": "t"})))
        .unwrap();
    let value = injected(&of_run(&sent), &required);
    let expected = json!({"conversationId": "s-1", "accessToken": "t"});
    assert_eq!(value["databaseContext"], expected);
}

#[test]
fn a_default_applies_to_one_server() {
    let default = template(&json!({"conversationId": "${session.id}"}));
    let context = ContextInjection::new()
        .with_hidden_argument("databaseContext")
        .with_default("graph", "databaseContext", default);
    let schema = json!({"properties": {"databaseContext": {"type": "object"}}});
    let graph = of_server("graph", schema.clone());
    let own = json!({"databaseContext": {"conversationId": "s-1"}});
    assert_eq!(injected(&of_run(&context), &graph), own);
    assert_eq!(
        injected(&of_run(&context), &of_server("other", schema)),
        json!({})
    );
    let merged = context.clone().with_template(
        "databaseContext",
        template(&json!({"apiBaseUrl": "http://graph"})),
    );
    assert_eq!(
        injected(&of_run(&merged), &graph)["databaseContext"],
        json!({"apiBaseUrl": "http://graph", "conversationId": "s-1"})
    );
    let elsewhere = context
        .with_template(
            "databaseContext",
            template(&json!({"conversationId": "shared"})),
        )
        .with_allowed_servers(["other".to_owned()]);
    assert_eq!(injected(&of_run(&elsewhere), &graph), own);
}

#[test]
fn a_client_can_send_the_values_of_defaults() {
    let context = ContextInjection::new()
        .with_default("graph", "pin", template(&json!("${client.pin}")))
        .with_client(of_client(json!({"pin": "p1n4"})))
        .unwrap();
    let graph = of_server("graph", json!({"properties": {"pin": {}}}));
    assert_eq!(injected(&of_run(&context), &graph), json!({"pin": "p1n4"}));
}

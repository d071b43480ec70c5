//! Properties of every answer to any question with any tools.

mod support;

use std::{collections::BTreeSet, sync::Arc};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::{answer, calls, model, request};
use switchboard_domain::{Message, ToolDefinition, ToolResult, json_schema::SchemaValidator};

/// Generates schemas of one tool parameter.
fn value_schema() -> impl Strategy<Value = Value> {
    let formats = vec!["date", "date-time", "email", "uri", "uuid"];
    let single = prop_oneof![
        (-5..20i64, 20..200i64)
            .prop_map(|(low, high)| json!({"type": "integer", "minimum": low, "maximum": high})),
        Just(json!({"type": "number"})),
        (prop::sample::select(formats), 1..40u64).prop_map(|(format, longest)| {
            json!({"type": "string", "format": format, "maxLength": longest})
        }),
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "enum": ["low", "normal", "New York"]})),
        Just(json!({"enum": ["low", "high"], "default": "low"})),
        Just(json!({"type": "boolean"})),
    ]
    .boxed();
    prop_oneof![
        5 => single.clone(),
        1 => single.clone().prop_map(|items| json!({"type": "array", "items": items})),
        1 => single.prop_map(|schema| json!({"anyOf": [{"type": "null"}, schema]})),
    ]
}

fn tool() -> impl Strategy<Value = ToolDefinition> {
    let names = vec![
        "customer_id",
        "limit",
        "subject",
        "query",
        "path",
        "city",
        "since",
        "priority",
        "a",
        "b",
        "includeImage",
        "email",
        "url",
        "id",
        "count",
        "tags",
    ];
    let properties = prop::collection::btree_map(
        prop::sample::select(names),
        (value_schema(), any::<bool>()),
        0..5,
    );
    let name = prop::sample::select(vec![
        "list_customers",
        "echo",
        "createOrder",
        "get-sum",
        "delete_file",
        "weather",
    ]);
    (name, "[A-Za-z ]{0,30}", properties).prop_map(|(name, description, properties)| {
        let is_required = |(_, (_, required)): &(&&str, &(Value, bool))| *required;
        let required: Vec<&&str> = properties
            .iter()
            .filter(is_required)
            .map(|(name, _)| name)
            .collect();
        let schemas: Map<String, Value> = properties
            .iter()
            .map(|(name, (schema, _))| ((*name).to_owned(), schema.clone()))
            .collect();
        let schema = json!({"type": "object", "properties": schemas, "required": required});
        ToolDefinition::new(name, description, schema)
    })
}

/// Generates lists of tools with different names.
fn tools() -> impl Strategy<Value = Vec<Arc<ToolDefinition>>> {
    prop::collection::vec(tool(), 0..5).prop_map(|tools| {
        let mut names = BTreeSet::new();
        let different = tools
            .into_iter()
            .filter(|tool| names.insert(tool.name.clone()));
        different.map(Arc::new).collect()
    })
}

fn question() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "list",
        "the",
        "5",
        "recent",
        "customers",
        "customer",
        "42",
        "#7",
        "and",
        "create",
        "order",
        "echo",
        "\"late delivery\"",
        "about",
        "sum",
        "19",
        "2.5",
        "-3",
        "in",
        "New York",
        "2026-10-01",
        "yesterday",
        "high",
        "priority",
        "ada@example.org",
        "Ada",
        "/etc/hosts",
        "https://example.org/x",
        "AB-12",
        "{\"limit\": 3}",
        ",",
        "?",
        "seven",
        "’",
        "日本",
        "weather",
        "delete",
        "file",
        "limit",
        "id",
    ]);
    let sentence = prop::collection::vec(words, 0..14).prop_map(|words| words.join(" "));
    prop_oneof![4 => sentence, 1 => "\\PC{0,80}", 1 => "[ -~\\n“”’`'\"{}:=#]{0,60}"]
}

/// Generates JSON that is rarely a valid schema.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["#", "object", "string", "array", "integer", "["])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let keys = vec![
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "$ref",
            "anyOf",
            "a",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(keys), inner, 0..5)
                .prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #[test]
    fn inputs_fit_their_schemas_and_ids_are_unique(question in question(), tools in tools()) {
        let response = answer(&request(vec![Message::user(question)], &tools));
        for (name, input) in calls(&response) {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            let validator = SchemaValidator::compile(&tool.input_schema).unwrap();
            prop_assert!(validator.is_valid(&input).unwrap(), "{name} {input}");
        }
        let ids: BTreeSet<&String> = response.message.tool_uses().map(|tool_use| &tool_use.id).collect();
        prop_assert_eq!(ids.len(), response.message.tool_uses().count());
        prop_assert!(!response.message.parts.is_empty());
    }

    #[test]
    fn every_turn_ends(question in question(), tools in tools(), result in any_json(), fails: bool) {
        let mut messages = vec![Message::user(question)];
        for _ in 0..10 {
            let response = answer(&request(messages.clone(), &tools));
            let results: Vec<ToolResult> = response
                .message
                .tool_uses()
                .map(|tool_use| {
                    let mut given =
                        ToolResult::text(&tool_use.id, &tool_use.name, result.to_string());
                    given.is_error = fails;
                    given
                })
                .collect();
            if results.is_empty() {
                return Ok(());
            }
            messages.push(response.message);
            messages.push(Message::from_tool_results(results));
        }
        prop_assert!(false, "the turn does not end");
    }

    #[test]
    fn any_schema_is_accepted(question in question(), schema in any_json()) {
        let tool = Arc::new(ToolDefinition::new("list_customers", "Lists customers", schema));
        answer(&request(vec![Message::user(question)], &[tool]));
    }

    #[test]
    fn equal_requests_have_equal_plans(question in question(), tools in tools()) {
        let request = request(vec![Message::user(question)], &tools);
        prop_assert_eq!(model().plan(&request), model().plan(&request));
    }
}

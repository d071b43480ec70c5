//! Whatever a model sends, the schema and the types agree on it.

use proptest::prelude::*;
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use switchboard_domain::json_schema::SchemaValidator;

use super::*;
use crate::{arguments, tool::ServedTool};

/// Values at the borders of what the tools take, and far beyond.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..60).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2_i32..60).prop_map(|whole| Value::from(f64::from(whole))),
        ".{0,8}".prop_map(Value::from),
        Just(json!("x".repeat(200))),
        Just(json!("x".repeat(201))),
        Just(json!("\u{0}")),
        "[0-9]{4}-[0-1][0-9]-[0-3][0-9]".prop_map(Value::from),
        prop_oneof!["low", "normal", "high", "urgent"].prop_map(Value::from),
        Just(json!([])),
        Just(json!({"customer_id": 42})),
    ]
}

fn object() -> impl Strategy<Value = JsonObject> {
    let name = prop::sample::select(vec![
        "limit",
        "since",
        "customer_id",
        "subject",
        "description",
        "priority",
        "x",
    ]);
    prop::collection::vec((name, value()), 0..5).prop_map(|pairs| {
        pairs
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    })
}

fn text(result: &rmcp::model::CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// The three tools with their validators, of input and of output.
fn tools(store: &Store) -> Vec<(ServedTool, SchemaValidator, SchemaValidator)> {
    let tools = [
        ServedTool::new(GetRecentCustomers {
            store: store.clone(),
        }),
        ServedTool::new(CreateSupportTicket {
            store: store.clone(),
        }),
        ServedTool::new(CalculateAccountValue {
            store: store.clone(),
        }),
    ];
    let compile = |tool: ServedTool| {
        let input = arguments::validator(&tool.definition().input_schema).unwrap();
        let output = tool.definition().output_schema.clone().unwrap();
        let output = arguments::validator(&output).unwrap();
        (tool, input, output)
    };
    tools.into_iter().map(compile).collect()
}

#[test]
fn the_schema_and_the_types_agree_on_any_arguments() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tools = runtime.block_on(async { tools(&Store::open(None).await.unwrap()) });
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(600)
    };
    proptest!(config, |(which in 0..tools.len(), given in object())| {
        let (tool, input, output) = &tools[which];
        let result = runtime.block_on(tool.call(given.clone()));
        let said = text(&result).to_owned();
        // What the schema allows the types can read: the last resort is never needed.
        prop_assert!(!said.starts_with("The arguments are invalid"), "{said}");
        let schema = &tool.definition().input_schema;
        let normal = Value::Object(arguments::normalize(schema, given));
        if result.is_error == Some(true) {
            prop_assert!(said.ends_with('.'), "{said}");
            prop_assert!(result.structured_content.is_none());
        } else {
            prop_assert_eq!(input.is_valid(&normal), Ok(true), "accepted {}", normal);
            prop_assert_eq!(output.is_valid(&result.structured_content.unwrap()), Ok(true));
        }
    });
}

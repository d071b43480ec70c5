//! Generated arguments: the input schema of a tool and its Rust type accept the same arguments, and
//! each result matches the output schema.

use std::cell::Cell;

use proptest::{option, prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use super::super::arguments;
use crate::{BteOptions, ServerOptions, catalogue};

/// Returns values that often match a schema.
fn matching(schema: &Value) -> BoxedStrategy<Value> {
    let other = prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(2.0),
        json!("b"),
        json!("x".repeat(201)),
        json!([]),
        json!({"x": 1}),
    ]);
    let texts = [
        "a",
        "b",
        "NCBIGene:4353",
        "biolink:Gene",
        "",
        "\u{0}",
        "2026-01-31",
        "'; --",
    ];
    let expected = match schema["type"].as_str() {
        _ if schema["enum"].is_array() => {
            prop::sample::select(schema["enum"].as_array().unwrap().clone()).boxed()
        }
        Some("string") => prop::sample::select(texts.map(Value::from).to_vec()).boxed(),
        Some("integer") => (-1_i64..60).prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => prop::collection::vec(matching(&schema["items"]), 0..3)
            .prop_map(Value::from)
            .boxed(),
        Some("object") => object(schema).boxed(),
        _ => any::<f64>().prop_map(Value::from).boxed(),
    };
    prop_oneof![9 => expected, 1 => other].boxed()
}

fn object(schema: &Value) -> impl Strategy<Value = Value> + use<> {
    let mut members = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array().into_iter().flatten();
        let weight = if required.into_iter().any(|it| it == name) {
            0.95
        } else {
            0.4
        };
        let name = name.clone();
        let value = matching(property).prop_map(move |value| (name.clone(), value));
        members.push(option::weighted(weight, value).boxed());
    }
    if schema["additionalProperties"].is_object() {
        for name in ["n0", "n1"] {
            let value = matching(&schema["additionalProperties"]);
            let member = value.prop_map(move |value| (name.to_owned(), value));
            members.push(option::weighted(0.8, member).boxed());
        }
    }
    members.push(option::weighted(0.05, Just(("x".to_owned(), json!(1)))).boxed());
    members.prop_map(|members| Value::Object(members.into_iter().flatten().collect()))
}

fn accepts_the_same_as_its_schema(server: &str, options: &ServerOptions) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = runtime
        .block_on(catalogue::open_server(server, options))
        .unwrap();
    for tool in &server.inner.tools {
        let definition = tool.definition();
        let schema = Value::Object(definition.input_schema.as_ref().clone());
        let input = arguments::compile_validator(&schema).unwrap();
        let output = definition.output_schema.as_deref().unwrap().clone();
        let output = arguments::compile_validator(&Value::Object(output)).unwrap();
        let valid = Cell::new(0);
        let mut runner = TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(150)
        });
        let outcome = runner.run(&object(&schema), |given| {
            let given = given.as_object().unwrap().clone();
            let result = runtime.block_on(tool.call(given.clone()));
            let text = &result.content[0].as_text().unwrap().text;
            prop_assert!(!text.starts_with("The arguments are invalid"), "{text}");
            prop_assert!(!text.contains("database failed"), "{text}");
            let given = arguments::normalize_arguments(&schema, given);
            let is_valid = input.is_valid(&Value::Object(given)) == Ok(true);
            valid.set(valid.get() + usize::from(is_valid));
            if let Some(content) = result.structured_content {
                prop_assert!(is_valid);
                prop_assert_eq!(output.is_valid(&content), Ok(true));
            }
            Ok(())
        });
        outcome.unwrap();
        assert!(
            valid.get() > 10,
            "{}: {} of 150",
            definition.name,
            valid.get()
        );
    }
}

#[test]
fn the_tools_of_customer_service_accept_the_same_as_their_schemas() {
    accepts_the_same_as_its_schema("customer-service", &ServerOptions::new());
}

#[test]
fn the_tools_of_graph_accept_the_same_as_their_schemas() {
    accepts_the_same_as_its_schema("graph", &ServerOptions::new());
}

#[test]
fn the_tools_of_bte_accept_the_same_as_their_schemas() {
    let url = "http://127.0.0.1:1";
    let bte = BteOptions {
        name_resolver: Some(url.to_owned()),
        timeout: std::time::Duration::from_millis(1),
        ..BteOptions::new(url)
    };
    accepts_the_same_as_its_schema("bte", &ServerOptions::new().with_bte(bte));
}

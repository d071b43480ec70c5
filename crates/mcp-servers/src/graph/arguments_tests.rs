//! Whatever a model sends, the schema and the types agree on it, and no call breaks the graph.

use std::cell::Cell;

use proptest::prelude::*;
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use switchboard_domain::json_schema::SchemaValidator;

use super::*;
use crate::{arguments, tool::ServedTool};

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c", "NCBIGene:4353", "biolink:Gene", "affects"])
            .prop_map(Value::from),
        1 => prop::sample::select(vec!["", " ", "a b", "\u{0}", "|", "%", "'; DROP TABLE nodes; --"])
            .prop_map(Value::from),
        1 => ".{0,6}".prop_map(Value::from),
        1 => (-2_i64..9).prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn object(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::vec(argument(keys.to_vec()), 0..4).prop_map(|pairs| {
        let pairs = pairs.into_iter();
        Value::Object(pairs.map(|(key, value)| (key.to_owned(), value)).collect())
    })
}

fn data() -> impl Strategy<Value = Value> {
    let lists = || prop::collection::vec(leaf(), 0..4).prop_map(Value::from);
    let keys = prop::sample::select(vec![
        "publications",
        "primary_source",
        "qualifiers",
        "provenance",
        "xrefs",
        "conversationId",
        "accessToken",
        "nodeIds",
        "note",
    ]);
    let inner = prop_oneof![leaf(), lists()];
    let objects = prop::collection::vec((keys, inner), 0..4).prop_map(|pairs| {
        Value::Object(
            pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    });
    prop_oneof![6 => leaf(), 1 => lists(), 1 => objects]
}

/// A good object with some of it replaced.
fn nearly(base: Value, keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    object(keys).prop_map(move |changes| {
        let mut base = base.clone();
        for (key, value) in changes.as_object().unwrap() {
            base[key.as_str()] = value.clone();
        }
        base
    })
}

/// What an argument may be.
fn good(key: &str) -> Value {
    match key {
        "filter" => json!({"nodeType": "Gene", "nodeIds": ["a", "b"]}),
        "limit" | "maxLength" => json!(2.0),
        "offset" => json!(0),
        "details" | "directed" => json!(true),
        "nodeIds" | "labels" => json!(["a", "affects"]),
        "edgeIds" => json!(["|a|affects|b"]),
        "databaseContext" => json!({"conversationId": "default", "accessToken": null}),
        "data" => json!({"note": [1], "publications": ["PMID:1"]}),
        _ => json!("b"),
    }
}

/// An argument with a value that may be right.
fn argument(keys: Vec<&'static str>) -> impl Strategy<Value = (&'static str, Value)> {
    (prop::sample::select(keys), prop::option::of(data()))
        .prop_map(|(key, value)| (key, value.unwrap_or_else(|| good(key))))
}

/// Arguments for one of the tools, in the order of [`tools`].
fn given(which: usize) -> impl Strategy<Value = JsonObject> {
    let node = nearly(json!({"id": "d"}), &["id", "label", "type", "data"]);
    let edge = nearly(
        json!({"source": "a", "target": "b", "label": "affects"}),
        &["id", "source", "target", "label", "data"],
    );
    let nodes = prop::collection::vec(node, 0..3).prop_map(|it| ("nodes", Value::from(it)));
    let edges = prop::collection::vec(edge, 0..3).prop_map(|it| ("edges", Value::from(it)));
    let from = leaf().prop_map(|it| ("from", it));
    let node_id = leaf().prop_map(|it| ("nodeId", it));
    let main = match which {
        1 => nodes.boxed(),
        2 => edges.boxed(),
        4 => from.boxed(),
        5 => node_id.boxed(),
        _ => Just(("limit", json!(3))).boxed(),
    };
    let keys: &[&str] = match which {
        0 => &["filter", "limit", "offset", "details"],
        3 => &["nodeIds", "edgeIds"],
        4 => &["to", "maxLength", "limit", "directed", "labels"],
        5 => &["limit"],
        _ => &["x"],
    };
    let mut keys = keys.to_vec();
    keys.push("databaseContext");
    let others = prop::collection::vec(argument(keys), 0..3);
    (main, others).prop_map(move |(main, others)| {
        let main = Some(main).filter(|_| which != 3);
        main.into_iter()
            .chain(others)
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    })
}

fn text(result: &rmcp::model::CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// The tools with their validators, of input and of output.
fn tools(store: &GraphStore) -> Vec<(ServedTool, SchemaValidator, SchemaValidator)> {
    let tools = [
        ServedTool::new(GetGraphState {
            store: store.clone(),
        }),
        ServedTool::new(AddNodes {
            store: store.clone(),
        }),
        ServedTool::new(AddEdges {
            store: store.clone(),
        }),
        ServedTool::new(RemoveFromGraph {
            store: store.clone(),
        }),
        ServedTool::new(FindConnections {
            store: store.clone(),
        }),
        ServedTool::new(AnalyzeNodeRelationships {
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
    let store = runtime.block_on(GraphStore::open(None)).unwrap();
    let tools = tools(&store);
    // Something to find, to change and to remove.
    let nodes = ["a", "b", "c"].map(|id| json!({"id": id, "label": id.to_uppercase()}));
    let seed = |tool: usize, arguments: Value| {
        let arguments = serde_json::from_value(arguments).unwrap();
        let result = runtime.block_on(tools[tool].0.call(arguments));
        assert_eq!(result.is_error, Some(false), "{}", text(&result));
    };
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(600)
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let good_calls = Cell::new(0);
    let calls = (0..tools.len()).prop_flat_map(|which| (Just(which), given(which)));
    let outcome = runner.run(&calls, |(which, given)| {
        seed(1, json!({"nodes": nodes}));
        seed(
            2,
            json!({"edges": [{"source": "a", "target": "b", "label": "affects"}]}),
        );
        let (tool, input, output) = &tools[which];
        let result = runtime.block_on(tool.call(given.clone()));
        let said = text(&result).to_owned();
        // What the schema allows the types can read: the last resort is never needed.
        prop_assert!(!said.starts_with("The arguments are invalid"), "{said}");
        prop_assert!(!said.contains("database failed"), "{said}");
        let schema = &tool.definition().input_schema;
        let normal = Value::Object(arguments::normalize(schema, given));
        if result.is_error == Some(true) {
            prop_assert!(result.structured_content.is_none());
        } else {
            good_calls.set(good_calls.get() + 1);
            prop_assert_eq!(input.is_valid(&normal), Ok(true), "accepted {}", normal);
            prop_assert_eq!(
                output.is_valid(&result.structured_content.unwrap()),
                Ok(true)
            );
        }
        Ok(())
    });
    outcome.unwrap();
    let good = good_calls.get();
    assert!(good > 100, "only {good} calls of 600 did anything");
}

//! Schemas that would take very much time or memory without the limits of the compiler.

use serde_json::{Map, Value, json};
use switchboard_providers_common::schema::{ChangeKind, Dialect, compile, restore_answer};

use crate::checker::problems;

/// Compiles a schema twice for every dialect. Asserts that the results are valid and not too large.
fn survives(schema: &Value) {
    for dialect in Dialect::ALL {
        let compiled = compile(schema, dialect);
        let name = dialect.name();
        assert_eq!(
            problems(&compiled.schema, dialect),
            Vec::<String>::new(),
            "{name}"
        );
        let again = compile(&compiled.schema, dialect);
        assert!(
            again.changes.is_empty(),
            "{name}: {:?}",
            again.changes.first()
        );
        assert!(compiled.schema.to_string().len() < 8_000_000, "{name}");
        restore_answer(schema, dialect, json!({"a": {"a": "{}"}}));
    }
}

fn is_truncated(schema: &Value, dialect: Dialect) -> bool {
    let compiled = compile(schema, dialect);
    compiled
        .changes
        .iter()
        .any(|change| change.kind == ChangeKind::Truncated)
}

/// Returns a schema in which `a0` has two properties with the schema `a1`, which has two properties
/// with the schema `a2`, and so on.
fn doubling(levels: usize, keyword: &str) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        let both = if keyword == "properties" {
            json!({"type": "object", "properties": {"a": next, "b": next}})
        } else {
            json!({keyword: [next, next, {"minimum": level}]})
        };
        defs.insert(format!("a{level}"), both);
    }
    defs.insert(format!("a{levels}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": defs})
}

#[test]
fn what_doubles_with_every_reference_is_cut_off() {
    let schema = doubling(40, "properties");
    survives(&schema);
    assert!(is_truncated(&schema, Dialect::GeminiOpenApi));
    // A dialect that keeps references copies nothing, so the schema is not truncated.
    assert!(!is_truncated(&schema, Dialect::Anthropic));
}

#[test]
fn alternatives_of_alternatives_come_to_an_end() {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let mut schema = doubling(24, keyword);
        survives(&schema);
        schema["$ref"] = json!("#/$defs/a0");
        survives(&schema);
    }
}

#[test]
fn circles_of_references_come_to_an_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {
            "a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#/$defs/a"},
        }}),
        json!({"allOf": [{"$ref": "#"}], "properties": {"a": {"not": {"$ref": "#"}}}}),
        json!({"$dynamicRef": "#meta", "$dynamicAnchor": "meta"}),
        json!({"$ref": "#/$ref"}),
        json!({"properties": {"$ref": {"$ref": "#/properties/$ref"}}}),
        json!({"items": {"$ref": "#/items"}, "anyOf": [{"$ref": "#/items"}, {"$ref": "#/anyOf"}]}),
        json!({"properties": {"a": {"allOf": [
            {"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"},
        ]}}, "$defs": {
            "x": {"properties": {"p": {"$ref": "#/$defs/y"}, "q": {"$ref": "#/$defs/x"}}},
            "y": {"properties": {"p": {"$ref": "#/$defs/x"}, "q": {"$ref": "#/$defs/y"}}},
        }}),
    ] {
        survives(&schema);
    }
}

#[test]
fn what_is_deep_is_cut_off() {
    for keyword in [
        "items",
        "not",
        "additionalProperties",
        "anyOf",
        "allOf",
        "properties",
    ] {
        let mut schema = json!({"type": "string"});
        for _ in 0..400 {
            schema = match keyword {
                "anyOf" | "allOf" => json!({keyword: [schema]}),
                "properties" => json!({"type": "object", "properties": {"a": schema}}),
                _ => json!({keyword: schema}),
            };
        }
        survives(&json!({"type": "object", "properties": {"a": schema}}));
        assert!(is_truncated(&schema, Dialect::Anthropic), "{keyword}");
    }
}

#[test]
fn what_is_wide_is_cut_off() {
    let properties: Map<String, Value> = (0..25_000)
        .map(|index| (format!("p{index}"), json!({"type": "string"})))
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    survives(&schema);
    assert!(is_truncated(&schema, Dialect::OpenAiStrict));
    assert!(is_truncated(&schema, Dialect::OpenAiLoose));
    let within = json!({"type": "object", "properties": {"a": schema, "b": {"type": "string"}}});
    survives(&within);
    let compiled = compile(&within, Dialect::OpenAiStrict);
    let expected = json!(["string", "null"]);
    assert_eq!(compiled.schema["properties"]["b"]["type"], expected);
}

#[test]
fn openais_limits_are_kept() {
    let many: Vec<String> = (0..1_200).map(|index| format!("value {index}")).collect();
    let schema =
        json!({"type": "object", "properties": {"a": {"enum": many}, "b": {"enum": ["x"]}}});
    let compiled = compile(&schema, Dialect::OpenAiStrict);
    let property = &compiled.schema["properties"]["a"];
    assert_eq!(property["type"], json!(["string", "null"]));
    let said = property["description"].as_str().unwrap();
    assert!(
        said.starts_with("One of: \"value 0\", \"value 1\","),
        "{said}"
    );
    assert!(said.ends_with("more."), "{said}");
    let expected = json!(["x", null]);
    assert_eq!(compiled.schema["properties"]["b"]["enum"], expected);

    let mut deep = json!({"type": "object", "properties": {"z": {"type": "string"}}});
    for _ in 0..14 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let compiled = compile(&deep, Dialect::OpenAiStrict);
    assert_eq!(
        problems(&compiled.schema, Dialect::OpenAiStrict),
        Vec::<String>::new()
    );
}

#[test]
fn many_references_to_one_large_definition_do_not_take_long() {
    let large: Map<String, Value> = (0..2_000)
        .map(|index| (format!("p{index}"), json!({"type": "string"})))
        .collect();
    let uses: Map<String, Value> = (0..2_000)
        .map(|index| (format!("u{index}"), json!({"$ref": "#/$defs/large"})))
        .collect();
    survives(&json!({
        "type": "object",
        "properties": uses,
        "$defs": {"large": {"type": "object", "properties": large}},
    }));
}

/// The fuzzer found this schema: restoring it as an answer for itself took seconds.
#[test]
fn an_answer_that_nearly_fits_in_many_ways_does_not_take_long() {
    let found = include_str!("found/nested-alternatives.json");
    let schema: Value = serde_json::from_str(found).unwrap();
    survives(&schema);
    for dialect in Dialect::ALL {
        let restored = restore_answer(&schema, dialect, schema.clone());
        assert!(restored.is_object(), "{}", dialect.name());
    }
}

//! Answers for a compiled schema, restored to answers for the original schema.

use serde_json::{Value, json};
use switchboard_providers_common::schema::{Dialect, compile, measure_schema, restore_answer};

fn strict(schema: &Value, answer: Value) -> Value {
    restore_answer(schema, Dialect::OpenAiStrict, answer)
}

fn object(properties: impl Into<Value>) -> Value {
    json!({"type": "object", "properties": properties.into()})
}

#[test]
fn nulls_that_mean_absent_are_removed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "note": {"type": ["string", "null"]},
            "inner": {"type": "object", "properties": {"a": {"type": "string"}}},
            "list": {"type": "array", "items": object(json!({"b": {"type": "boolean"}}))},
            "needed": {"type": ["string", "null"]},
        },
        "required": ["city", "needed"],
    });
    let answer = json!({
        "city": "Kiel", "days": null, "note": null, "inner": {"a": null},
        "list": [{"b": null}, {"b": true}], "needed": null,
    });
    let expected = json!({
        "city": "Kiel", "note": null, "inner": {}, "list": [{}, {"b": true}], "needed": null,
    });
    assert_eq!(strict(&schema, answer.clone()), expected);
    // In this dialect, the compiler adds no null, so a null of the model is kept.
    assert_eq!(
        restore_answer(&schema, Dialect::OpenAiLoose, answer.clone()),
        answer
    );
    assert_eq!(
        restore_answer(&schema, Dialect::AnthropicStrict, answer.clone()),
        answer
    );
}

#[test]
fn nulls_are_removed_behind_references_and_in_the_matching_alternative() {
    let schema = json!({
        "type": "object",
        "properties": {"shape": {"oneOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/box"}]}},
        "$defs": {
            "circle": {
                "type": "object",
                "properties": {"kind": {"const": "circle"}, "label": {"type": "string"}},
                "required": ["kind"],
            },
            "box": {
                "type": "object",
                "properties": {
                    "kind": {"const": "box"},
                    "label": {"type": ["string", "null"]},
                    "parts": {"type": "array", "items": {"$ref": "#/$defs/box"}},
                },
                "required": ["kind"],
            },
        },
    });
    assert_eq!(
        strict(&schema, json!({"shape": {"kind": "circle", "label": null}})),
        json!({"shape": {"kind": "circle"}})
    );
    let boxes = json!({"kind": "box", "label": null, "parts": [
        {"kind": "box", "label": "a", "parts": null},
    ]});
    assert_eq!(
        strict(&schema, json!({"shape": boxes})),
        json!({"shape": {"kind": "box", "label": null, "parts": [{"kind": "box", "label": "a"}]}})
    );
}

#[test]
fn alternatives_of_the_root_lose_the_keys_of_the_others() {
    let schema = json!({"oneOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "at"}, "at": {"type": "string"}},
            "required": ["kind", "at"],
            "additionalProperties": false,
        },
        {
            "type": "object",
            "properties": {"kind": {"const": "every"}, "minutes": {"type": "integer"}},
            "required": ["kind", "minutes"],
            "additionalProperties": false,
        },
    ]});
    let answer = json!({"kind": "every", "at": null, "minutes": 5});
    let expected = json!({"kind": "every", "minutes": 5});
    assert_eq!(strict(&schema, answer), expected);
}

#[test]
fn json_text_is_read_where_the_schema_has_no_string() {
    let schema = object(json!({
        "payload": {"type": "object"},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {},
        "text": {"type": "string"},
        "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "list": {"type": "array"},
    }));
    let answer = json!({
        "payload": "{\"a\": [1, null]}",
        "map": "{\"x\": 1}",
        "any": "[true]",
        "text": "{\"a\": 1}",
        "either": "{\"b\": 2}",
        "list": ["1", "\"one\"", "no JSON"],
    });
    let expected = json!({
        "payload": {"a": [1, null]},
        "map": {"x": 1},
        "any": [true],
        "text": "{\"a\": 1}",
        "either": {"b": 2},
        "list": [1, "one", "no JSON"],
    });
    for dialect in [
        Dialect::OpenAiStrict,
        Dialect::AnthropicStrict,
        Dialect::GeminiOpenApi,
    ] {
        assert_eq!(
            restore_answer(&schema, dialect, answer.clone()),
            expected,
            "{}",
            dialect.name()
        );
    }
    // These dialects can express any value, so the answer contains no JSON text.
    for dialect in [
        Dialect::GeminiJsonSchema,
        Dialect::OllamaFormat,
        Dialect::Anthropic,
    ] {
        assert_eq!(
            restore_answer(&schema, dialect, answer.clone()),
            answer,
            "{}",
            dialect.name()
        );
    }
    // Invalid JSON text, and JSON text of another type, stay unchanged for the validator.
    for odd in [
        json!({"payload": "{oops"}),
        json!({"payload": "[1]"}),
        json!({"map": "7"}),
    ] {
        assert_eq!(strict(&schema, odd.clone()), odd);
    }
}

#[test]
fn truncated_recursion_is_read_from_json_text() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "required": ["tree"],
        "$defs": {"node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }},
    });
    let answer = json!({"tree": {"children": ["{\"children\": [{\"children\": []}]}"]}});
    assert_eq!(
        restore_answer(&schema, Dialect::AnthropicStrict, answer),
        json!({"tree": {"children": [{"children": [{"children": []}]}]}})
    );
}

#[test]
fn a_wrapped_root_is_unwrapped() {
    let schema = json!({"type": "array", "items": object(json!({"a": {"type": "string"}}))});
    let expected = json!([{}]);
    assert_eq!(strict(&schema, json!({"value": [{"a": null}]})), expected);
    assert_eq!(strict(&schema, json!([{"a": "x"}])), json!([{"a": "x"}]));
    // A declared object with a property `value` is not the added root object.
    let own = object(json!({"value": {"type": "integer"}}));
    assert_eq!(strict(&own, json!({"value": 1})), json!({"value": 1}));
}

#[test]
fn renamed_keys_are_restored() {
    let schema = object(json!({
        "filter[name]": {"type": "string"}, "filter_name": {"type": "string"}, "$top": {"type": "integer"},
    }));
    let compiled = compile(&schema, Dialect::Anthropic);
    let names: Vec<_> = compiled.schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["filter_name_2", "filter_name", "top"]);
    for dialect in [Dialect::Anthropic, Dialect::AnthropicStrict] {
        assert_eq!(
            restore_answer(
                &schema,
                dialect,
                json!({"filter_name_2": "a", "filter_name": "b", "top": 3})
            ),
            json!({"filter[name]": "a", "filter_name": "b", "$top": 3})
        );
    }
}

#[test]
fn invalid_answers_and_schemas_are_tolerated() {
    for schema in [
        json!(null),
        json!(true),
        json!({"$ref": "#"}),
        json!({"anyOf": [1, {}]}),
    ] {
        for answer in [json!(null), json!("x"), json!([1]), json!({"a": null})] {
            for dialect in Dialect::ALL {
                restore_answer(&schema, dialect, answer.clone());
            }
        }
    }
}

#[test]
fn a_schema_is_measured() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/c"}]},
            "d": {"type": "array", "items": {"type": "object", "properties": {"e": {"enum": [1, 2]}}}},
        },
        "required": ["a", "b"],
        "$defs": {"c": {"type": "object", "properties": {"f": {"type": "string"}}}},
    });
    let measure = measure_schema(&schema);
    assert_eq!((measure.optional, measure.unions), (3, 2));
}

#[test]
fn a_large_answer_for_a_large_schema_is_restored_to_its_end() {
    let properties: serde_json::Map<String, Value> = (0..5_000)
        .map(|number| (format!("p{number}"), json!({"type": "string"})))
        .collect();
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "$defs": {"item": object(properties)},
    });
    let items = |item: Value| json!({"a": vec![item; 100]});
    let answer = items(json!({"p7": null, "p9": "9", "n": 1}));
    assert_eq!(strict(&schema, answer), items(json!({"p9": "9", "n": 1})));
}

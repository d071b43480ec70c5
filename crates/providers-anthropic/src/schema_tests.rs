use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn an_input_schema_is_sent_as_it_is_where_that_is_lawful() {
    let plain = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}});
    assert!(matches!(input_schema(&plain), (Cow::Borrowed(_), None)));
    for (odd, expected) in [
        (json!(null), json!({"type": "object"})),
        (json!({}), json!({"type": "object"})),
        (
            json!({"properties": {}, "type": ["object", "null"]}),
            json!({"type": "object", "properties": {}}),
        ),
    ] {
        assert_eq!(input_schema(&odd).0.into_owned(), expected, "{odd}");
        assert_eq!(input_schema(&odd).1, None);
    }
}

#[test]
fn what_the_root_may_not_combine_is_handed_back_to_be_told() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    let (sent, told) = input_schema(&schema);
    assert_eq!(
        sent.into_owned(),
        json!({"type": "object", "properties": {"a": {}, "b": {}}})
    );
    assert_eq!(
        told,
        Some(json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}))
    );
}

#[test]
fn a_strict_schema_is_closed_and_counted() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "city": {"type": ["string", "null"], "examples": ["Kiel"]},
            "at": {"type": "string", "format": "date-time"},
            "days": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/day"}},
        },
        "required": ["city"],
        "$defs": {
            "day": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
                ],
            },
        },
    });
    let strict = strict(&schema).unwrap();
    assert_eq!(
        strict.schema,
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "city": {"type": ["string", "null"]},
                "at": {"type": "string", "format": "date-time"},
                "days": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/day"}},
            },
            "required": ["city"],
            "$defs": {
                "day": {
                    "anyOf": [
                        {"type": "string"},
                        {
                            "type": "object",
                            "properties": {"n": {"type": "integer"}},
                            "required": ["n"],
                            "additionalProperties": false,
                        },
                    ],
                },
            },
            "additionalProperties": false,
        })
    );
    assert_eq!(strict.unenforced, Vec::<String>::new());
    assert_eq!((strict.optional, strict.unions), (2, 2));
}

#[test]
fn what_cannot_be_enforced_is_left_out_and_named_once() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 1},
            "b": {"type": "integer", "minimum": 2},
            "c": {"type": "string", "pattern": "^x", "format": "iri"},
            "d": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
    });
    let strict = strict(&schema).unwrap();
    assert_eq!(
        strict.unenforced,
        ["minimum", "pattern", "format", "minItems"]
    );
    assert_eq!(strict.schema["properties"]["a"], json!({"type": "integer"}));
}

#[test]
fn what_has_no_strict_form_is_none() {
    let object = |value: Value| json!({"type": "object", "properties": {"a": value}});
    for schema in [
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "object"}),
        json!(true),
        object(json!({})),
        object(json!(true)),
        object(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        object(
            json!({"type": "object", "properties": {"b": {"type": "null"}}, "additionalProperties": true}),
        ),
        object(json!({"$ref": "#"})),
        object(json!({"$ref": "https://example.org/schema"})),
        object(json!({"$ref": "#/$defs/missing"})),
    ] {
        assert_eq!(strict(&schema), None, "{schema}");
    }
    let tree = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }},
    });
    assert_eq!(strict(&tree), None);
    // Used twice is not used by itself.
    let twice = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/leaf"}, "b": {"$ref": "#/$defs/leaf"}},
        "$defs": {"leaf": {"type": "string"}},
    });
    assert!(strict(&twice).is_some());
}

/// JSON that is a schema here and there.
fn any_schema() -> impl Strategy<Value = Value> {
    let types = ["object", "string", "integer", "array", "null"];
    let leaf = prop_oneof![
        prop::sample::select(types.to_vec()).prop_map(|name| json!({"type": name})),
        Just(json!({"$ref": "#/$defs/a"})),
        Just(json!({"$ref": "#"})),
        Just(json!({"enum": [1, "x"]})),
        Just(json!({})),
        Just(json!(true)),
        Just(json!("odd")),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let keywords = [
            "properties",
            "$defs",
            "items",
            "anyOf",
            "oneOf",
            "allOf",
            "required",
            "additionalProperties",
            "minimum",
            "format",
            "not",
            "type",
        ];
        let form = (any::<bool>(), inner.clone(), inner).prop_map(|(listed, a, b)| {
            if listed {
                json!([a, b])
            } else {
                json!({"a": a, "b": b})
            }
        });
        let fields = prop::collection::vec((prop::sample::select(keywords.to_vec()), form), 0..4);
        (fields, any::<bool>()).prop_map(|(fields, is_object)| {
            let mut map = Map::new();
            if is_object {
                map.insert("type".to_owned(), json!("object"));
            }
            map.extend(
                fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value)),
            );
            Value::Object(map)
        })
    })
}

proptest! {
    #[test]
    fn what_is_strict_once_stays_so(schema in any_schema()) {
        let (sent, _) = input_schema(&schema);
        prop_assert_eq!(&sent["type"], "object");
        prop_assert!(COMBINATIONS.iter().all(|it| sent.get(*it).is_none()));
        if let Some(first) = strict(&schema) {
            let again = strict(&first.schema).unwrap();
            prop_assert_eq!(again.schema, first.schema);
            prop_assert!(again.unenforced.is_empty());
        }
    }
}

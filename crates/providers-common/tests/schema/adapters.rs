//! What the adapters count on, each with the schemas that their own first versions were tested
//! with.

use std::borrow::Cow;

use serde_json::{Value, json};
use switchboard_providers_common::schema::{ChangeKind, Dialect, compile, measure};

fn made(schema: &Value, dialect: Dialect) -> Value {
    compile(schema, dialect).into_owned()
}

fn is_unchanged(schema: &Value, dialect: Dialect) -> bool {
    let compiled = compile(schema, dialect);
    assert!(compiled.is_faithful() || !compiled.changes.is_empty());
    matches!(compiled.schema, Cow::Borrowed(_))
}

#[test]
fn an_accepted_schema_is_borrowed() {
    let plain = json!({
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string"}]}, "b": {"oneOf": [{"type": "null"}]}},
        "additionalProperties": false,
    });
    assert!(is_unchanged(&plain, Dialect::Anthropic));
    assert!(is_unchanged(&plain, Dialect::OpenAiLoose));
    let strict = json!({
        "type": "object",
        "properties": {
            "city": {"type": ["string", "null"]},
            "days": {"type": "array", "items": {"$ref": "#/$defs/day"}},
        },
        "required": ["city", "days"],
        "additionalProperties": false,
        "$defs": {"day": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
    });
    for dialect in Dialect::ALL {
        let keeps = !matches!(dialect, Dialect::GeminiOpenApi | Dialect::OllamaTools);
        assert_eq!(is_unchanged(&strict, dialect), keeps, "{}", dialect.name());
    }
}

#[test]
fn schemas_that_openai_refuses_are_changed() {
    let closed = |properties: Value| {
        let names: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": names,
            "additionalProperties": false,
        })
    };
    assert!(is_unchanged(
        &closed(json!({"a": {"type": "string"}})),
        Dialect::OpenAiStrict
    ));
    for refused in [
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "additionalProperties": false}),
        closed(json!({"a": {"type": "object", "properties": {}}})),
        closed(json!({"a": {"allOf": [{"type": "string"}]}})),
        closed(json!({"a": {"type": "array", "items": {"not": {}}}})),
        closed(json!({"a": true})),
    ] {
        assert!(!is_unchanged(&refused, Dialect::OpenAiStrict), "{refused}");
    }
}

#[test]
fn every_root_becomes_an_object() {
    for odd in [
        json!(null),
        json!(true),
        json!({}),
        json!({"type": ["object", "null"]}),
    ] {
        assert_eq!(
            made(&odd, Dialect::Anthropic),
            json!({"type": "object"}),
            "{odd}"
        );
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(made(&odd, Dialect::OpenAiLoose), empty, "{odd}");
        assert_eq!(made(&odd, Dialect::OllamaTools), empty, "{odd}");
        assert_eq!(
            made(&odd, Dialect::GeminiOpenApi),
            json!({"type": "OBJECT"}),
            "{odd}"
        );
    }
}

#[test]
fn alternatives_at_the_root_become_one_object() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "oneOf": [
            {"properties": {"kind": {"const": "now"}}, "required": ["kind"]},
            {"$ref": "#/$defs/later"},
        ],
        "allOf": [{"properties": {"unit": {"type": "string"}}, "required": ["unit"]}],
        "$defs": {"later": {"type": "object", "properties": {
            "kind": {"const": "later"}, "day": {"type": "string"}, "city": {"type": "string"},
        }}},
    });
    for dialect in [Dialect::Anthropic, Dialect::OpenAiLoose] {
        assert_eq!(
            made(&schema, dialect),
            json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "unit": {"type": "string"},
                    "kind": {"enum": ["now", "later"]},
                    "day": {"type": "string"},
                },
                "required": ["city", "unit"],
                "description": "One of these forms: {kind: \"now\"} | {kind: \"later\", day?, city?}.",
            })
        );
        let compiled = compile(&schema, dialect);
        assert!(
            compiled
                .lost()
                .all(|change| change.kind == ChangeKind::Widened)
        );
        assert!(!compiled.is_exact());
    }
}

#[test]
fn a_reference_at_the_root_is_inlined() {
    let input = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}});
    let schema = json!({"$ref": "#/$defs/input", "$defs": {"input": input, "b": {"type": "null"}}});
    assert_eq!(
        made(&schema, Dialect::OpenAiLoose),
        json!({"type": "object", "properties": input["properties"], "$defs": {"b": {"type": "null"}}})
    );
}

#[test]
fn the_sizes_that_anthropic_limits_are_measured() {
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
    let compiled = compile(&schema, Dialect::AnthropicStrict);
    assert!(compiled.is_faithful(), "{:#?}", compiled.changes);
    assert_eq!(
        compiled.schema["properties"]["days"],
        schema["properties"]["days"]
    );
    let measure = measure(&compiled.schema);
    assert_eq!((measure.optional, measure.unions), (2, 2));
    assert_eq!(
        compiled.schema["properties"]["city"]["description"],
        "Examples: \"Kiel\"."
    );
}

#[test]
fn schemas_without_a_strict_form_are_not_exact() {
    let object = |value: Value| json!({"type": "object", "properties": {"a": value}, "additionalProperties": false});
    for (schema, kind) in [
        (object(json!({})), ChangeKind::Encoded),
        (object(json!({"type": "object"})), ChangeKind::Encoded),
        (
            object(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            ChangeKind::Encoded,
        ),
        (object(json!({"$ref": "#"})), ChangeKind::Truncated),
        (
            object(json!({"$ref": "https://example.org/schema"})),
            ChangeKind::Widened,
        ),
        (
            object(json!({"$ref": "#/$defs/missing"})),
            ChangeKind::Invalid,
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "null"}}, "additionalProperties": true}),
            ChangeKind::Narrowed,
        ),
        (
            object(json!({"type": "integer", "minimum": 1})),
            ChangeKind::Described,
        ),
    ] {
        let compiled = compile(&schema, Dialect::AnthropicStrict);
        assert!(!compiled.is_faithful(), "{schema}");
        let kinds: Vec<_> = compiled.changes.iter().map(|change| change.kind).collect();
        assert!(kinds.contains(&kind), "{schema}: {kinds:?}");
    }
}

#[test]
fn a_change_displays_its_place_and_message() {
    let schema =
        json!({"type": "object", "properties": {"a/b": {"type": "string", "minLength": 2}}});
    let compiled = compile(&schema, Dialect::OllamaTools);
    let changes: Vec<String> = compiled.changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        ["/properties/a~1b: `minLength` moved to the description"]
    );
    assert_eq!(compiled.root_description, None);
}

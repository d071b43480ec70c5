//! What the adapters count on, each with the schemas that their own first versions were tested
//! with.

use std::borrow::Cow;

use serde_json::{Value, json};
use switchboard_providers_common::schema::{Dialect, compile, measure};

fn is_unchanged(schema: &Value, dialect: Dialect) -> bool {
    let compiled = compile(schema, dialect);
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

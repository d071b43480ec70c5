//! Snapshots of each rule in all dialects.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use switchboard_providers_common::schema::{Dialect, compile};

use crate::checker::problems;

/// Returns the compiled schema of one property and the reported changes, for every dialect.
fn of_property(schema: &Value) -> Value {
    of_schema(&json!({
        "type": "object",
        "properties": {"it": schema},
        "required": ["it"],
        "additionalProperties": false,
    }))
}

/// Returns the compiled schema and the reported changes for every dialect. Dialects with the same
/// result form one group.
fn of_schema(schema: &Value) -> Value {
    let mut groups: Vec<(String, Value)> = Vec::new();
    for dialect in Dialect::ALL {
        let compiled = compile(schema, dialect);
        assert_eq!(
            problems(&compiled.schema, dialect),
            Vec::<String>::new(),
            "{}: {}",
            dialect.name(),
            compiled.schema
        );
        let changes = compiled.changes.iter();
        let changes: Vec<String> = changes
            .map(|change| format!("{:?}: {change}", change.kind))
            .collect();
        let mut made = Map::new();
        if matches!(compiled.schema, Cow::Borrowed(_)) {
            made.insert("unchanged".to_owned(), json!(true));
        } else {
            made.insert("schema".to_owned(), compiled.schema.into_owned());
            made.insert("changes".to_owned(), json!(changes));
        }
        if let Some(description) = compiled.root_description {
            made.insert("told".to_owned(), json!(description));
        }
        let made = Value::Object(made);
        match groups.iter_mut().find(|(_, known)| *known == made) {
            Some((names, _)) => {
                names.push_str(" = ");
                names.push_str(dialect.name());
            }
            None => groups.push((dialect.name().to_owned(), made)),
        }
    }
    let groups: Map<String, Value> = groups.into_iter().collect();
    json!({"given": schema, "made": groups})
}

/// Creates a test with a snapshot for each rule.
macro_rules! rules {
    ($($name:ident: $of:ident($schema:tt);)*) => {
        $(
            #[test]
            fn $name() {
                insta::assert_json_snapshot!(stringify!($name), $of(&json!($schema)));
            }
        )*
    };
}

rules! {
    plain: of_property({"type": "string", "description": "A city."});
    bounds: of_property({
        "type": "integer", "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 2,
        "description": "How many",
    });
    lengths_and_pattern: of_property({
        "type": "string", "minLength": 1, "maxLength": 40, "pattern": "^[a-z]+$",
    });
    pattern_that_looks_ahead: of_property({"type": "string", "pattern": "^(?=.*a)b$"});
    formats: of_schema({
        "type": "object",
        "properties": {
            "at": {"type": "string", "format": "date-time"},
            "url": {"type": "string", "format": "uri"},
            "path": {"type": "string", "format": "file-path"},
            "count": {"type": "integer", "format": "int64"},
        },
        "required": ["at", "url", "path", "count"],
    });
    constant: of_property({"const": "now"});
    constant_that_is_listed: of_property({"const": true, "enum": ["", true, {}]});
    constant_that_is_not_listed: of_property({"const": 1, "enum": ["", {}]});
    values_of_several_types: of_property({"enum": ["auto", 0, null]});
    values_of_numbers: of_property({"type": "integer", "enum": [1, 2, 3], "default": 2});
    values_that_are_compound: of_property({"enum": [{"a": 1}, [2]]});
    null_by_type: of_property({"type": ["string", "null"]});
    null_by_alternative: of_property({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null});
    null_by_openapi: of_property({"type": "string", "nullable": true});
    several_types: of_property({"type": ["string", "integer"], "description": "Id."});
    several_types_with_an_object: of_property({
        "type": ["string", "object"], "properties": {"a": {"type": "string"}}, "minLength": 1,
    });
    one_of: of_property({
        "description": "When.",
        "oneOf": [
            {"type": "string", "format": "date"},
            {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]},
        ],
    });
    alternatives_with_a_shared_part: of_property({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "anyOf": [
            {"properties": {"url": {"type": "string"}}, "required": ["url"]},
            {"properties": {"path": {"type": "string"}}, "required": ["path"]},
        ],
    });
    all_of: of_schema({
        "type": "object",
        "properties": {"it": {
            "allOf": [
                {"$ref": "#/$defs/named"},
                {"type": "object", "properties": {"n": {"type": "integer", "minimum": 2}}},
                {"properties": {"n": {"maximum": 5}}, "required": ["n"]},
            ],
        }},
        "required": ["it"],
        "$defs": {"named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    });
    one_of_that_overlap: of_property({"oneOf": [{"type": "integer"}, {"type": "number"}]});
    negation_and_condition: of_property({
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "not": {"required": ["b"]},
        "if": {"required": ["a"]},
        "then": {"properties": {"a": {"const": "x"}}},
        "dependentRequired": {"a": ["c"]},
    });
    optional_properties: of_schema({
        "type": "object",
        "properties": {
            "plain": {"type": "string"},
            "listed": {"enum": ["a", "b"]},
            "constant": {"const": 1},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "referred": {"$ref": "#/$defs/x"},
        },
        "$defs": {"x": {"type": "object", "properties": {"a": {"type": "string"}}}},
    });
    free_object: of_property({"type": "object", "description": "Any payload."});
    map: of_property({"type": "object", "additionalProperties": {"type": "integer"}});
    keys_by_pattern: of_property({
        "type": "object",
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": false,
    });
    object_with_further_keys: of_property({
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": true,
    });
    empty_closed_object: of_property({
        "type": "object", "properties": {}, "additionalProperties": false,
    });
    any_value: of_property({"description": "Whatever."});
    boolean_schemas: of_schema({
        "type": "object",
        "properties": {"any": true, "none": false, "list": {"type": "array", "items": false}},
    });
    tuple_of_draft_7: of_property({
        "type": "array",
        "items": [{"type": "string", "description": "Name"}, {"type": "integer"}],
        "additionalItems": false,
    });
    array_without_items: of_property({"type": "array", "minItems": 2, "uniqueItems": true});
    definitions_of_draft_7: of_schema({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.org/tool.json",
        "$comment": "made by hand",
        "type": "object",
        "properties": {
            "a": {"$ref": "#/definitions/Level"},
            "b": {"$ref": "tool.json#/definitions/Level", "description": "Another."},
        },
        "required": ["a", "b"],
        "additionalProperties": false,
        "definitions": {"Level": {"enum": ["low", "high"]}, "unused": {"type": "null"}},
    });
    references_elsewhere: of_schema({
        "type": "object",
        "properties": {
            "by_path": {"$ref": "#/properties/named/properties/a"},
            "by_anchor": {"$ref": "#spot"},
            "named": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "anchored": {"$anchor": "spot", "type": "integer"},
        },
        "required": ["by_path", "by_anchor", "named", "anchored"],
    });
    references_to_nowhere: of_schema({
        "type": "object",
        "properties": {
            "network": {"$ref": "https://example.org/schema.json"},
            "gone": {"$ref": "#/$defs/gone"},
        },
    });
    recursion: of_schema({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "required": ["tree"],
        "$defs": {"node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }},
    });
    recursion_of_the_root: of_schema({
        "type": "object",
        "properties": {"part": {"$ref": "#"}},
        "additionalProperties": false,
    });
    recursion_without_an_end: of_schema({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "required": ["a"],
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}},
    });
    root_of_alternatives: of_schema({
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": "at"}, "at": {"type": "string"}},
                "required": ["kind", "at"],
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "every"}, "minutes": {"type": "integer"}},
                "required": ["kind", "minutes"],
            },
        ],
    });
    root_that_needs_one_of_two_keys: of_schema({
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    });
    root_that_is_a_reference: of_schema({
        "$ref": "#/$defs/input",
        "$defs": {"input": {
            "type": "object",
            "properties": {"q": {"type": "string"}},
            "required": ["q"],
            "additionalProperties": false,
        }},
    });
    root_of_alternatives_with_shared_parts: of_schema({
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
    root_that_is_no_object: of_schema({"type": "array", "items": {"type": "string"}});
    root_that_is_no_schema: of_schema(null);
    root_without_a_type: of_schema({"properties": {"q": {"type": "string"}}, "required": ["q"]});
    root_with_a_description: of_schema({
        "type": "object",
        "description": "What to look for.",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
    });
    keys_with_odd_letters: of_schema({
        "type": "object",
        "properties": {"$filter": {"type": "string"}, "filter": {"type": "string"}, "a b": {"type": "integer"}},
        "required": ["$filter", "filter", "a b"],
        "additionalProperties": false,
    });
    older_drafts: of_schema({
        "type": "object",
        "properties": {
            "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "count": {"type": "int", "required": true},
            "when": {"type": "date"},
            "x": {"type": "OBJECT", "properties": {"y": {"type": "STRING"}}},
        },
        "dependencies": {"ratio": ["count"]},
    });
    what_is_no_keyword: of_property({
        "type": "string", "minLength": "2", "enum": [], "x-order": 3, "example": "Kiel",
        "examples": ["Kiel", "Rom"], "deprecated": true, "title": "It",
    });
    keywords_of_other_types: of_property({
        "type": "string", "properties": {"a": {"type": "string"}}, "required": ["a"], "minimum": 3,
    });
    required_without_a_schema: of_property({
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"],
    });
}

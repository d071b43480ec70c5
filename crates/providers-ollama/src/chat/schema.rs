//! Schemas in the forms that the server takes, by the compiler that all providers share.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};
use switchboard_domain::{ToolDefinition, Warning, WarningKind};
use switchboard_providers_common::schema::{
    Change, ChangeKind, Dialect, ToolSchemas, compile, list_changes,
};

use super::wire;

/// Returns the declaration of a tool.
///
/// The server decodes the schema into its own types, drops unknown keywords, and refuses a
/// request with another form. The description states the dropped constraints. The wire does not
/// enforce schemas, so the input is validated when it arrives.
pub(crate) fn declared<'a>(
    tool: &'a Arc<ToolDefinition>,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> wire::Function<'a> {
    let parameters = schemas.compiled(tool, Dialect::OllamaTools);
    let grave = |change: &&Change| {
        matches!(
            change.kind,
            ChangeKind::Widened | ChangeKind::Invalid | ChangeKind::Truncated
        )
    };
    let of = format!("tool `{}`", tool.name);
    warn(&of, parameters.changes.iter().filter(grave), warnings);
    let own = tool.description.as_str();
    wire::Function {
        name: &tool.name,
        description: match &parameters.root_description {
            None => Cow::Borrowed(own),
            Some(constraint_text) if own.is_empty() => Cow::Owned(constraint_text.clone()),
            Some(constraint_text) => Cow::Owned(format!("{own}\n\n{constraint_text}")),
        },
        parameters,
    }
}

/// Returns the schema that constrains an answer. The description states constraints that the
/// server's grammar does not support.
pub(crate) fn held<'a>(
    name: &str,
    schema: &'a Value,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, Value> {
    let compiled = compile(schema, Dialect::OllamaFormat);
    let of = format!("schema `{name}`");
    warn(&of, compiled.lost(), warnings);
    compiled.schema
}

/// The schema of a call's input within a form. The input is checked when it comes.
pub(crate) fn held_input(schema: &Value) -> Value {
    let schema = object_schema(schema);
    let mut schema = compile(&schema, Dialect::OllamaFormat).into_owned();
    if let Value::Object(map) = &mut schema
        && !SAYS_MORE.iter().any(|keyword| map.contains_key(*keyword))
    {
        // A tool without parameters. The grammar accepts any object if `properties` is missing, and
        // models use that freedom.
        map.insert("properties".to_owned(), json!({}));
    }
    schema
}

/// Keywords that say more of an object than that it is one.
const SAYS_MORE: [&str; 6] = [
    "properties",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
];

/// A tool's schema, or that of any object where it is none: its input is an object in any case.
pub(crate) fn object_schema(schema: &Value) -> Cow<'_, Value> {
    match schema {
        Value::Object(map) if !map.is_empty() => Cow::Borrowed(schema),
        _ => Cow::Owned(json!({"type": "object"})),
    }
}

fn warn<'c>(of: &str, changes: impl Iterator<Item = &'c Change>, warnings: &mut Vec<Warning>) {
    if let Some(changes) = list_changes(changes) {
        let message = format!("{of} was sent as far as the server reads it: {changes}");
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint_text(schema: Value) -> (Value, String, Vec<String>) {
        let tool = Arc::new(ToolDefinition::new("t", "Does it.", schema));
        let mut warnings = Vec::new();
        let function = declared(&tool, &ToolSchemas::default(), &mut warnings);
        let warnings = warnings.into_iter().map(|it| it.message);
        (
            function.parameters.schema.clone().into_owned(),
            function.description.into_owned(),
            warnings.collect(),
        )
    }

    #[test]
    fn a_schema_of_supported_keywords_is_unchanged() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where."},
                "days": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["city"],
        });
        let (sent, description, warnings) = constraint_text(schema.clone());
        assert_eq!(sent, schema);
        assert_eq!(description, "Does it.");
        assert_eq!(warnings, [""; 0]);
    }

    #[test]
    fn unsupported_keywords_are_rewritten() {
        let (sent, _, warnings) = constraint_text(json!({
            "type": "object",
            "properties": {
                "day": {"$ref": "#/$defs/day"},
                "any": true,
                "count": {"type": "integer", "minimum": 1},
            },
            "$defs": {"day": {"type": "string", "enum": ["today", "tomorrow"]}},
        }));
        assert_eq!(
            sent["properties"]["day"],
            json!({"type": "string", "enum": ["today", "tomorrow"]})
        );
        // Go reads a property into a struct, and no boolean fits that.
        assert!(sent["properties"]["any"].is_object());
        let count = sent["properties"]["count"]["description"].as_str().unwrap();
        assert!(count.contains('1'), "{count}");
        assert_eq!(warnings, [""; 0]);
        for odd in [json!(true), json!({}), json!({"type": ["object", "null"]})] {
            let (sent, ..) = constraint_text(odd);
            assert_eq!(sent["type"], "object");
            assert!(sent["properties"].is_object());
        }
    }

    #[test]
    fn the_input_of_a_tool_without_parameters_is_empty() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!({"type": "object"}), json!({}), json!(true)] {
            assert_eq!(held_input(&schema), empty, "{schema}");
        }
        let free = json!({"type": "object", "additionalProperties": true});
        assert_eq!(held_input(&free).get("properties"), None);
    }

    #[test]
    fn unenforced_parts_of_an_answer_schema_have_a_warning() {
        let mut warnings = Vec::new();
        let exact = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
        assert_eq!(*held("answer", &exact, &mut warnings), exact);
        assert!(warnings.is_empty());
        let properties: serde_json::Map<_, _> = (0..5)
            .map(|it| {
                (
                    format!("p{it}"),
                    json!({"type": "array", "uniqueItems": true}),
                )
            })
            .collect();
        let wide =
            json!({"type": "object", "properties": properties, "additionalProperties": false});
        held("answer", &wide, &mut warnings);
        let message = &warnings[0].message;
        assert!(message.starts_with("schema `answer`"), "{message}");
        assert!(message.contains("/properties/p0"), "{message}");
        assert!(message.ends_with("; and 2 more"), "{message}");
    }
}

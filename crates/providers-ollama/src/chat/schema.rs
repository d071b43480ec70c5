//! Compiles schemas to the subsets that the server accepts, with the compiler of all providers.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};
use switchboard_domain::{ToolDefinition, Warning};
use switchboard_providers_common::schema::{
    Change, ChangeKind, Dialect, ToolSchemas, compile, list_changes, warn_schema_changes,
};

use super::wire;

/// Returns the declaration of a tool for the request field `tools`.
///
/// The server decodes the input schema into its own types, drops unknown keywords, and refuses a
/// schema that does not fit these types. The tool's description states the dropped constraints. The
/// server does not enforce the schema, so the input is validated before the call.
pub(crate) fn declare_function<'a>(
    tool: &'a Arc<ToolDefinition>,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> wire::Function<'a> {
    let parameters = schemas.compiled_schema(tool, Dialect::OllamaTools);
    let grave = |change: &&Change| {
        matches!(
            change.kind,
            ChangeKind::Widened | ChangeKind::Invalid | ChangeKind::Truncated
        )
    };
    let changes = list_changes(parameters.changes.iter().filter(grave));
    let what = format!("the input schema of tool `{}` was changed", tool.name);
    warn_schema_changes(&what, changes, warnings);
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

/// Compiles the schema `name` of a structured answer for the request field `format`. Constraints
/// that the server's grammar does not support are stated in the descriptions and reported in
/// `warnings`.
pub(crate) fn compile_answer_schema<'a>(
    name: &str,
    schema: &'a Value,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, Value> {
    let compiled = compile(schema, Dialect::OllamaFormat);
    let changes = list_changes(compiled.lossy_schema_changes());
    let what = format!("schema `{name}` was changed");
    warn_schema_changes(&what, changes, warnings);
    compiled.schema
}

/// Compiles the input schema of a tool for use in `format`, without warnings about constraints that
/// the grammar does not support: the input is validated before the call.
pub(crate) fn compile_input_schema(schema: &Value) -> Value {
    let schema = to_object_schema(schema);
    let mut schema = compile(&schema, Dialect::OllamaFormat).into_owned();
    if let Value::Object(map) = &mut schema
        && !CONSTRAINING_KEYWORDS
            .iter()
            .any(|keyword| map.contains_key(*keyword))
    {
        // The tool has no parameters. Without `properties`, the grammar would accept any object,
        // and models would invent parameters.
        map.insert("properties".to_owned(), json!({}));
    }
    schema
}

/// Keywords that constrain an object's keys or values beyond `type`.
const CONSTRAINING_KEYWORDS: [&str; 6] = [
    "properties",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
];

/// Returns the schema of a tool's input. An empty schema, or one that is not a JSON object, becomes
/// `{"type": "object"}`, because an input is always an object.
pub(crate) fn to_object_schema(schema: &Value) -> Cow<'_, Value> {
    match schema {
        Value::Object(map) if !map.is_empty() => Cow::Borrowed(schema),
        _ => Cow::Owned(json!({"type": "object"})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_of_a_tool_without_parameters_is_empty() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!({"type": "object"}), json!({}), json!(true)] {
            assert_eq!(compile_input_schema(&schema), empty, "{schema}");
        }
        let free = json!({"type": "object", "additionalProperties": true});
        assert_eq!(compile_input_schema(&free).get("properties"), None);
    }
}

//! Compiles the schemas of tools and answers.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};
use switchboard_domain::{ToolDefinition, Warning, WarningKind};
use switchboard_providers_common::schema::{
    ChangeKind, Dialect, ToolSchema, ToolSchemas, compile, list_changes, warn_schema_changes,
};

use crate::options::SchemaLanguage;

/// Returns the schema compiler's dialect for a schema language of the Gemini API.
pub(crate) fn schema_dialect(form: SchemaLanguage) -> Dialect {
    match form {
        SchemaLanguage::JsonSchema => Dialect::GeminiJsonSchema,
        SchemaLanguage::OpenApi => Dialect::GeminiOpenApi,
    }
}

/// Compiles the input schema of a tool for the API. With [`SchemaLanguage::OpenApi`], returns
/// `None` for a tool without parameters.
///
/// Adds a warning if the API enforces less than the original schema. The warning omits constraints
/// that were removed or became description text, because the program validates tool inputs before a
/// call. A schema whose root is not an object is replaced, with a warning.
pub(crate) fn compile_parameters(
    tool: &Arc<ToolDefinition>,
    form: SchemaLanguage,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> Option<ToolSchema> {
    let mut compiled = schemas.compiled_schema(tool, schema_dialect(form));
    let changes = list_changes(compiled.lossy_input_changes());
    let what = format!("the input schema of tool `{}` was changed", tool.name);
    warn_schema_changes(&what, changes, warnings);
    if !accepts_only_objects(&compiled.schema) {
        let message = format!(
            "the input schema of tool `{}` was replaced: the root must be an object",
            tool.name
        );
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
        compiled = json!({"type": "object"}).into();
    }
    let properties = compiled.schema.get("properties").and_then(Value::as_object);
    let is_empty = properties.is_none_or(serde_json::Map::is_empty);
    (form == SchemaLanguage::JsonSchema || !is_empty).then_some(compiled)
}

/// Returns whether a compiled schema accepts only objects.
fn accepts_only_objects(schema: &Value) -> bool {
    let name = schema.get("type").and_then(Value::as_str);
    name.is_some_and(|name| name.eq_ignore_ascii_case("object"))
}

/// Compiles a response schema for the API. Adds a warning if the answer may differ from the
/// original schema in its shape or may violate its constraints, because the caller receives the
/// answer as it is.
pub(crate) fn compile_answer_schema<'a>(
    schema: &'a Value,
    form: SchemaLanguage,
    name: &str,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, Value> {
    let compiled = compile(schema, schema_dialect(form));
    let differs = compiled.changes.iter().filter(|change| {
        let other_form = matches!(
            change.kind,
            ChangeKind::Encoded | ChangeKind::Wrapped | ChangeKind::Renamed
        );
        other_form || change.kind.loses_enforcement()
    });
    let what = format!("schema `{name}` was changed");
    warn_schema_changes(&what, list_changes(differs), warnings);
    compiled.schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(schema: &Value, form: SchemaLanguage, warnings: &mut Vec<Warning>) -> Option<Value> {
        let tool = Arc::new(ToolDefinition::new("t", "", schema.clone()));
        let sent = compile_parameters(&tool, form, &ToolSchemas::default(), warnings)?;
        Some(sent.schema.clone().into_owned())
    }

    #[test]
    fn a_tool_is_declared_in_either_form() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"city": {"type": ["string", "null"]}},
        });
        let mut warnings = Vec::new();
        let plain = sent(&schema, SchemaLanguage::JsonSchema, &mut warnings).unwrap();
        assert_eq!(plain["type"], "object");
        assert_eq!(plain.get("$schema"), None);
        let old = sent(&schema, SchemaLanguage::OpenApi, &mut warnings).unwrap();
        assert_eq!(
            (&old["type"], &old["properties"]["city"]),
            (
                &json!("OBJECT"),
                &json!({"type": "STRING", "nullable": true})
            )
        );
        assert_eq!(warnings, []);
    }

    #[test]
    fn a_tool_without_parameters_has_none_in_the_older_form() {
        for schema in [
            json!({"type": "object"}),
            json!({}),
            json!({"type": "object", "properties": {}}),
        ] {
            let mut warnings = Vec::new();
            let mut sent = |form| sent(&schema, form, &mut warnings);
            assert_eq!(sent(SchemaLanguage::OpenApi), None, "{schema}");
            let plain = sent(SchemaLanguage::JsonSchema).unwrap();
            assert_eq!(plain["type"], "object", "{schema}");
        }
    }

    #[test]
    fn arguments_are_an_object_whatever_the_schema_says() {
        for schema in [
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "string"}),
            json!({"type": ["object", "array"], "properties": {"a": {"type": "string"}}}),
        ] {
            for form in [SchemaLanguage::JsonSchema, SchemaLanguage::OpenApi] {
                let mut warnings = Vec::new();
                let sent = sent(&schema, form, &mut warnings);
                let expected = json!({"type": "object"});
                let expected = Some(expected).filter(|_| form == SchemaLanguage::JsonSchema);
                assert_eq!(sent, expected, "{schema}");
                assert!(
                    warnings
                        .iter()
                        .any(|it| it.message.contains("the root must be an object")),
                    "{schema}: {warnings:?}"
                );
            }
        }
        // An answer need not be an object.
        let list = json!({"type": "array", "items": {"type": "string"}});
        let sent = compile_answer_schema(&list, SchemaLanguage::JsonSchema, "a", &mut Vec::new());
        assert_eq!(sent["type"], "array");
    }

    #[test]
    fn an_answer_that_is_not_held_to_its_schema_is_told() {
        let exact =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let loose = json!({"type": "object", "properties": {"n": {"not": {"type": "string"}}}});
        let mut warnings = Vec::new();
        compile_answer_schema(&exact, SchemaLanguage::JsonSchema, "exact", &mut warnings);
        assert_eq!(warnings, []);
        compile_answer_schema(&loose, SchemaLanguage::JsonSchema, "loose", &mut warnings);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].message.contains("`loose`"),
            "{}",
            warnings[0].message
        );
    }
}

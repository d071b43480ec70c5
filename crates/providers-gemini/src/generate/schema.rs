//! Mapping of the schemas of tools and answers.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use serde_json::{Value, json};
use switchboard_domain::{ToolDefinition, Warning, WarningKind};
use switchboard_providers_common::schema::{
    Change, ChangeKind, Dialect, PerTool, Written, compile,
};

use crate::options::SchemaForm;

/// Returns the dialect of a form.
pub(crate) fn dialect(form: SchemaForm) -> Dialect {
    match form {
        SchemaForm::JsonSchema => Dialect::GeminiJsonSchema,
        SchemaForm::OpenApi => Dialect::GeminiOpenApi,
    }
}

/// The compiled schema of a tool's input.
#[derive(Debug)]
pub(crate) struct Parameters {
    /// `None` if it is omitted.
    pub(crate) schema: Option<Written>,
    pub(crate) warnings: Vec<Warning>,
}

/// The compiled definitions. Every step of a run sends the same ones.
static PARAMETERS: LazyLock<PerTool<SchemaForm, Parameters>> = LazyLock::new(PerTool::default);

/// Returns the compiled schema of a tool, compiled once per definition.
pub(crate) fn kept_parameters(tool: &Arc<ToolDefinition>, form: SchemaForm) -> Arc<Parameters> {
    PARAMETERS.of(tool, form, |tool| {
        let mut warnings = Vec::new();
        let schema = parameters(&tool.input_schema, form, &tool.name, &mut warnings);
        Parameters {
            schema: schema.map(|schema| schema.into_owned().into()),
            warnings,
        }
    })
}

/// Compiles the schema of a tool's input. Returns `None` for a tool without parameters in the older
/// form.
///
/// Inputs are validated before a call, so that weaker enforcement on the wire needs no warning.
/// Other changes of the schema do.
pub(crate) fn parameters<'a>(
    schema: &'a Value,
    form: SchemaForm,
    tool: &str,
    warnings: &mut Vec<Warning>,
) -> Option<Cow<'a, Value>> {
    let compiled = compile(schema, dialect(form));
    let other = compiled.lost().filter(|change| {
        let same = matches!(change.kind, ChangeKind::Described | ChangeKind::Dropped);
        !same
    });
    warn(&format!("the schema of tool `{tool}`"), other, warnings);
    let mut schema = compiled.schema;
    if !is_of_objects(&schema) {
        let message = format!(
            "the schema of tool `{tool}` is replaced: arguments are an object, and the root \
             is not"
        );
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
        schema = Cow::Owned(json!({"type": "object"}));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_empty = properties.is_none_or(serde_json::Map::is_empty);
    (form == SchemaForm::JsonSchema || !is_empty).then_some(schema)
}

/// Whether a compiled schema allows only objects.
fn is_of_objects(schema: &Value) -> bool {
    let name = schema.get("type").and_then(Value::as_str);
    name.is_some_and(|name| name.eq_ignore_ascii_case("object"))
}

/// Compiles the schema of an answer, which the caller reads unchanged.
pub(crate) fn answer<'a>(
    schema: &'a Value,
    form: SchemaForm,
    name: &str,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, Value> {
    let compiled = compile(schema, dialect(form));
    let differs = compiled.changes.iter().filter(|change| {
        let other_form = matches!(
            change.kind,
            ChangeKind::Encoded | ChangeKind::Wrapped | ChangeKind::Renamed
        );
        other_form || change.kind.loses_enforcement()
    });
    warn(&format!("schema `{name}`"), differs, warnings);
    compiled.schema
}

fn warn<'c>(what: &str, changes: impl Iterator<Item = &'c Change>, warnings: &mut Vec<Warning>) {
    let changes: Vec<String> = changes.map(ToString::to_string).collect();
    if !changes.is_empty() {
        let message = format!("{what} is changed: {}", changes.join("; "));
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_declared_in_either_form() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"city": {"type": ["string", "null"]}},
        });
        let mut warnings = Vec::new();
        let sent = |form, warnings: &mut Vec<Warning>| {
            parameters(&schema, form, "t", warnings)
                .unwrap()
                .into_owned()
        };
        let plain = sent(SchemaForm::JsonSchema, &mut warnings);
        assert_eq!(plain["type"], "object");
        assert_eq!(plain.get("$schema"), None);
        let old = sent(SchemaForm::OpenApi, &mut warnings);
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
            let mut sent =
                |form| parameters(&schema, form, "t", &mut warnings).map(Cow::into_owned);
            assert_eq!(sent(SchemaForm::OpenApi), None, "{schema}");
            assert_eq!(
                sent(SchemaForm::JsonSchema).unwrap()["type"],
                "object",
                "{schema}"
            );
        }
    }

    #[test]
    fn arguments_are_an_object_whatever_the_schema_says() {
        for schema in [
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "string"}),
            json!({"type": ["object", "array"], "properties": {"a": {"type": "string"}}}),
        ] {
            for form in [SchemaForm::JsonSchema, SchemaForm::OpenApi] {
                let mut warnings = Vec::new();
                let sent = parameters(&schema, form, "t", &mut warnings);
                let sent = sent.map(Cow::into_owned);
                let expected = json!({"type": "object"});
                let expected = Some(expected).filter(|_| form == SchemaForm::JsonSchema);
                assert_eq!(sent, expected, "{schema}");
                assert!(
                    warnings
                        .iter()
                        .any(|it| it.message.contains("and the root is not")),
                    "{schema}: {warnings:?}"
                );
            }
        }
        // An answer may be anything.
        let list = json!({"type": "array", "items": {"type": "string"}});
        let sent = answer(&list, SchemaForm::JsonSchema, "a", &mut Vec::new());
        assert_eq!(sent["type"], "array");
    }

    #[test]
    fn an_answer_that_is_not_held_to_its_schema_is_told() {
        let exact =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let loose = json!({"type": "object", "properties": {"n": {"not": {"type": "string"}}}});
        let mut warnings = Vec::new();
        answer(&exact, SchemaForm::JsonSchema, "exact", &mut warnings);
        assert_eq!(warnings, []);
        answer(&loose, SchemaForm::JsonSchema, "loose", &mut warnings);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].message.contains("`loose`"),
            "{}",
            warnings[0].message
        );
    }
}

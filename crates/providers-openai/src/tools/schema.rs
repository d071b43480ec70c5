//! Compiles the schemas of tools and answers for OpenAI's APIs. A strict schema (`strict: true`) is
//! enforced by the API. A loose schema only describes the output to the model.
//!
//! Source: the Structured Outputs guide, developers.openai.com/api/docs/guides/structured-outputs.
//! The dialects in [`switchboard_providers_common::schema`] contain the rules.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value, json};
use switchboard_domain::{JsonObject, ToolDefinition, Warning};
use switchboard_providers_common::schema::{
    Change, ChangeKind, CompiledSchema, Dialect, ToolSchema, ToolSchemas, compile, list_changes,
    warn_schema_changes,
};

use crate::server_profile::Profile;

/// Keywords that OpenAI refuses at the root: "schema must have type 'object' and not have
/// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (langchainjs#9804).
const REFUSED_AT_ROOT: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

/// Schema of a structured answer, as the request contains it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentSchema<'a> {
    pub(crate) schema: Cow<'a, Value>,
    /// Whether the API enforces the schema.
    pub(crate) strict: bool,
    /// Whether an answer that matches the sent schema has another shape than the declared schema,
    /// such as an added root object. The decoder must then restore the declared shape.
    pub(crate) needs_restore: bool,
}

/// Input schema of a tool, converted to the subset of JSON Schema that the API supports.
#[derive(Debug)]
pub(crate) struct CompiledParameters {
    pub(crate) schema: ToolSchema,
    /// Whether the API enforces the schema.
    pub(crate) strict: bool,
}

/// Compiles the input schema of a tool. The result is a strict schema, which the API enforces, if
/// [`Profile::strict_tools`] is set and the strict schema keeps all constraints. Otherwise it is a
/// loose schema, which only describes the input to the model.
///
/// The input of a call is validated before the call is executed, so constraints that a loose schema
/// states only in descriptions need no warning.
pub(crate) fn compile_parameters(
    tool: &Arc<ToolDefinition>,
    profile: &Profile,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> CompiledParameters {
    let schema = &tool.input_schema;
    if profile.strict_tools {
        let strict = schemas.compiled_schema(tool, Dialect::OpenAiStrict);
        let wrapped = strict.has_any_change(&[ChangeKind::Wrapped]);
        if strict.accepts_same_values() && !wrapped && !strict_root_forbids_keys(schema, &strict) {
            return CompiledParameters {
                schema: strict,
                strict: true,
            };
        }
        let what = format!(
            "the API does not enforce the input schema of tool `{}`",
            tool.name
        );
        let is_other = |it: &&Change| matches!(it.kind, ChangeKind::Narrowed | ChangeKind::Wrapped);
        let why = strict.changes.iter().filter(is_other);
        let why = list_changes(why.chain(strict.lossy_schema_changes()));
        warn_schema_changes(
            &what,
            why.or_else(|| Some(OPEN_OBJECT.to_owned())),
            warnings,
        );
    }
    let loose = |schema| CompiledParameters {
        schema,
        strict: false,
    };
    if let Some(schema) = complete_combinator_schema(schema).filter(|_| profile.root_combinators) {
        return loose(schema.into_owned().into());
    }
    let compiled = schemas.compiled_schema(tool, Dialect::OpenAiLoose);
    let changes = list_changes(compiled.lossy_input_changes());
    let what = format!("the input schema of tool `{}` was changed", tool.name);
    warn_schema_changes(&what, changes, warnings);
    loose(compiled)
}

/// Compiles the schema of a structured answer. The result is a strict schema, which the API
/// enforces, unless the strict schema excludes answers that `schema` allows. In that case it is a
/// loose schema, which only describes the answer to the model, and a warning is added.
///
/// A server that allows combinators at the root supports all of JSON Schema and gets the schema
/// unchanged.
pub(crate) fn compile_answer_schema<'a>(
    name: &str,
    schema: &'a Value,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> SentSchema<'a> {
    if profile.root_combinators {
        return SentSchema {
            schema: Cow::Borrowed(schema),
            strict: true,
            needs_restore: false,
        };
    }
    let strict = compile(schema, Dialect::OpenAiStrict);
    let is_narrower = strict.has_any_change(&[ChangeKind::Narrowed, ChangeKind::Truncated]);
    // If the answer is not an object, the strict schema makes it a property of an object
    // (`Wrapped`). The schema is then always sent as a strict schema.
    let wrapped = strict.has_any_change(&[ChangeKind::Wrapped]);
    if (is_narrower || strict_root_forbids_keys(schema, &strict)) && !wrapped {
        let narrowing = strict.changes.iter();
        let narrowing =
            narrowing.filter(|it| matches!(it.kind, ChangeKind::Narrowed | ChangeKind::Truncated));
        let why = list_changes(narrowing).unwrap_or_else(|| OPEN_OBJECT.to_owned());
        let what =
            format!("the API does not enforce schema `{name}`, and the answer may differ from it");
        warn_schema_changes(&what, Some(why), warnings);
        return SentSchema {
            schema: compile(schema, Dialect::OpenAiLoose).schema,
            strict: false,
            needs_restore: false,
        };
    }
    let changes = list_changes(strict.lossy_changes_after_restore());
    let what = format!("the API does not enforce all of schema `{name}`");
    warn_schema_changes(&what, changes, warnings);
    SentSchema {
        needs_restore: strict.needs_restore(),
        schema: strict.schema,
        strict: true,
    }
}

/// Text of a warning: why the API does not enforce a schema whose root object allows any keys.
const OPEN_OBJECT: &str = "root: strict mode does not support objects with arbitrary keys";

/// Returns whether the root object of the strict schema allows no keys, although the root object of
/// the declared `schema` allows any keys.
fn strict_root_forbids_keys(schema: &Value, strict: &CompiledSchema<'_>) -> bool {
    let properties = strict.schema.get("properties").and_then(Value::as_object);
    let allows_no_key = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let is_intended = allows_no_key || schema.get("properties").is_some_and(Value::is_object);
    properties.is_none_or(Map::is_empty) && !is_intended
}

/// Returns `schema` with a missing `type` or `properties` added, if it is an object schema with
/// combinators such as `oneOf` at its root. Returns `None` for other schemas and for a root with
/// `$ref`.
fn complete_combinator_schema(schema: &Value) -> Option<Cow<'_, Value>> {
    let root = schema.as_object()?;
    let has_combinator = REFUSED_AT_ROOT.iter().any(|it| root.contains_key(*it));
    let is_object = root.get("type").is_none_or(|it| it == "object");
    if !has_combinator || !is_object || root.contains_key("$ref") {
        return None;
    }
    let has_properties = root.get("properties").is_some_and(Value::is_object);
    if root.contains_key("type") && has_properties {
        return Some(Cow::Borrowed(schema));
    }
    let mut object: JsonObject = root.clone();
    object.insert("type".to_owned(), json!("object"));
    if !has_properties {
        object.insert("properties".to_owned(), json!({}));
    }
    Some(Cow::Owned(Value::Object(object)))
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

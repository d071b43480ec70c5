//! Schemas of tools and answers. The API enforces the strict form (`strict` tools,
//! `output_config.format`). The other form only describes a tool's input.

use std::borrow::Cow;

use serde_json::{Map, Value};
use switchboard_providers_common::schema::{ChangeKind, Compiled, Dialect, compile, measure};

/// Compiles a schema for a tool whose input the API does not enforce.
pub(crate) fn input_schema(schema: &Value) -> Compiled<'_> {
    compile(schema, Dialect::Anthropic)
}

/// A schema that the API enforces.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Strict<'a> {
    /// The schema in the API's subset.
    pub(crate) schema: Cow<'a, Value>,
    /// The parts of the original schema that the API does not enforce.
    pub(crate) unenforced: Vec<String>,
    /// Whether the original schema allows more: objects of other keys, or recursion.
    pub(crate) narrows: bool,
    /// Whether an output has another shape than the original schema requires.
    pub(crate) changes_shape: bool,
    /// The number of optional properties, which the API limits per request.
    pub(crate) optional: usize,
    /// The number of unions, which the API limits per request.
    pub(crate) unions: usize,
}

/// Compiles a schema that the API enforces.
pub(crate) fn strict(schema: &Value) -> Strict<'_> {
    let compiled = compile(schema, Dialect::AnthropicStrict);
    // Encoded values are decoded again.
    let lost = compiled.lost().filter(|it| it.kind != ChangeKind::Encoded);
    let unenforced = lost.map(ToString::to_string).collect();
    let mut kinds = compiled.changes.iter().map(|change| change.kind);
    let is_narrower =
        kinds.any(|kind| matches!(kind, ChangeKind::Narrowed | ChangeKind::Truncated));
    let properties = compiled.schema.get("properties").and_then(Value::as_object);
    let allows_no_key = properties.is_none_or(Map::is_empty);
    let is_intended = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let measured = measure(&compiled.schema);
    Strict {
        unenforced,
        narrows: is_narrower || (allows_no_key && !is_intended),
        changes_shape: changes_shape(&compiled),
        optional: measured.optional,
        unions: measured.unions,
        schema: compiled.schema,
    }
}

/// Returns whether an output has another shape than the original schema requires.
pub(crate) fn changes_shape(compiled: &Compiled<'_>) -> bool {
    let mut kinds = compiled.changes.iter().map(|change| change.kind);
    kinds.any(|kind| {
        matches!(
            kind,
            ChangeKind::Encoded | ChangeKind::Wrapped | ChangeKind::Renamed | ChangeKind::Nullable
        )
    })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

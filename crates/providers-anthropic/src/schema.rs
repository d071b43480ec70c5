//! Schemas of tools and answers, in the two forms that the API takes: one for declaring a tool, and one
//! to which it can hold an output (`strict` tools, `output_config.format`).

use std::borrow::Cow;

use serde_json::{Map, Value};
use switchboard_providers_common::schema::{ChangeKind, Compiled, Dialect, compile, measure};

/// A schema as a tool's `input_schema`.
pub(crate) fn input_schema(schema: &Value) -> Compiled<'_> {
    compile(schema, Dialect::Anthropic)
}

/// A schema that the output can be held to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Strict<'a> {
    /// The schema in the API's subset.
    pub(crate) schema: Cow<'a, Value>,
    /// What the output is not held to.
    pub(crate) unenforced: Vec<String>,
    /// Whether the output cannot say all that the schema allows: its objects take only the keys that
    /// they name, and it ends.
    pub(crate) narrows: bool,
    /// Whether an output has another shape than the schema that was given asks for.
    pub(crate) reshapes: bool,
    /// Properties that may be missing; limited per request.
    pub(crate) optional: usize,
    /// Values of several types; limited per request.
    pub(crate) unions: usize,
}

/// The schema in the subset that an output can be held to.
pub(crate) fn strict(schema: &Value) -> Strict<'_> {
    let compiled = compile(schema, Dialect::AnthropicStrict);
    // What is written as text is read again.
    let lost = compiled.lost().filter(|it| it.kind != ChangeKind::Encoded);
    let unenforced = lost.map(ToString::to_string).collect();
    let mut kinds = compiled.changes.iter().map(|change| change.kind);
    let cut = kinds.any(|kind| matches!(kind, ChangeKind::Narrowed | ChangeKind::Truncated));
    let properties = compiled.schema.get("properties").and_then(Value::as_object);
    let takes_nothing = properties.is_none_or(Map::is_empty);
    let is_meant = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let measured = measure(&compiled.schema);
    Strict {
        unenforced,
        narrows: cut || (takes_nothing && !is_meant),
        reshapes: reshapes(&compiled),
        optional: measured.optional,
        unions: measured.unions,
        schema: compiled.schema,
    }
}

/// Whether an answer made for it has another shape than the schema that was given asks for.
pub(crate) fn reshapes(compiled: &Compiled<'_>) -> bool {
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

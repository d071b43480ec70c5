//! Schemas of tools and answers in the two forms that the API takes: one to which it holds an output
//! (`strict`), and one that only tells the model what to write.
//!
//! Facts: the Structured Outputs guide, developers.openai.com/api/docs/guides/structured-outputs; the
//! rules themselves stand with the dialects, in [`switchboard_providers_common::schema`].

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value, json};
use switchboard_domain::{JsonObject, ToolDefinition, Warning, WarningKind};
use switchboard_providers_common::schema::{
    Change, ChangeKind, Compiled, Dialect, PerTool, Written, compile,
};

use crate::profile::Profile;

/// Changes of one schema that a warning names.
const MAX_NAMED: usize = 3;
/// Keywords that OpenAI refuses at the root: "schema must have type 'object' and not have
/// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (as reported in langchainjs#9804).
const REFUSED_AT_ROOT: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

/// A schema as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sent<'a> {
    pub(crate) schema: Cow<'a, Value>,
    /// The output is held to it.
    pub(crate) strict: bool,
    /// An output made for it has another shape than the schema that was given asks for.
    pub(crate) reshapes: bool,
}

/// The schema of a tool's input as it is sent, and what there is to say about it.
#[derive(Debug)]
pub(crate) struct Parameters {
    pub(crate) schema: Written,
    /// Calls are held to it.
    pub(crate) strict: bool,
    /// An input made for it has another shape than the schema that was given asks for.
    pub(crate) reshapes: bool,
    pub(crate) warnings: Vec<Warning>,
}

/// What of a profile decides how a schema is sent.
type Ways = (bool, bool);

/// Every step of a run sends the same definitions: each is compiled once.
static PARAMETERS: LazyLock<PerTool<Ways, Parameters>> = LazyLock::new(PerTool::default);

/// What is sent of a tool's input, made once for as long as the definition lives.
pub(crate) fn kept_parameters(tool: &Arc<ToolDefinition>, profile: &Profile) -> Arc<Parameters> {
    let (strict_tools, root_combinators) = (profile.strict_tools, profile.root_combinators);
    PARAMETERS.of(tool, (strict_tools, root_combinators), |tool| {
        let mut warnings = Vec::new();
        let sent = parameters(tool, strict_tools, root_combinators, &mut warnings);
        Parameters {
            schema: sent.schema.into_owned().into(),
            strict: sent.strict,
            reshapes: sent.reshapes,
            warnings,
        }
    })
}

/// The schema of a tool's input: strict where that is wanted and loses nothing.
///
/// Without `strict` a schema tells the model what to write, and the input is checked against the
/// tool's own schema when it comes: what is said in words then is not worth a warning.
fn parameters<'a>(
    tool: &'a ToolDefinition,
    strict_tools: bool,
    root_combinators: bool,
    warnings: &mut Vec<Warning>,
) -> Sent<'a> {
    let schema = &tool.input_schema;
    if strict_tools {
        let strict = compile(schema, Dialect::OpenAiStrict);
        let wrapped = has(&strict, &[ChangeKind::Wrapped]);
        if strict.is_faithful() && !wrapped && !is_shut(schema, &strict) {
            return held(strict);
        }
        let what = format!(
            "the input of tool `{}` is not held to its schema",
            tool.name
        );
        let other = |it: &&Change| matches!(it.kind, ChangeKind::Narrowed | ChangeKind::Wrapped);
        let why = strict.changes.iter().filter(other);
        let why = told(why.chain(strict.lost()));
        warn(&what, why.or_else(|| Some(NOT_SHUT.to_owned())), warnings);
    }
    if let Some(schema) = combined(schema).filter(|_| root_combinators) {
        return free(schema);
    }
    let loose = compile(schema, Dialect::OpenAiLoose);
    let in_words = |it: &Change| matches!(it.kind, ChangeKind::Described | ChangeKind::Dropped);
    let other = loose.lost().filter(|change| !in_words(change));
    let what = format!("the schema of tool `{}` is not sent as it is", tool.name);
    warn(&what, told(other), warnings);
    free(loose.schema)
}

/// The schema of an answer, to which the answer is held as far as the API can.
///
/// A server whose schemas may combine at their root reads the whole of JSON Schema and makes a
/// grammar of it: it gets the schema as it is.
pub(crate) fn answer<'a>(
    name: &str,
    schema: &'a Value,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Sent<'a> {
    if profile.root_combinators {
        return Sent {
            schema: Cow::Borrowed(schema),
            strict: true,
            reshapes: false,
        };
    }
    let strict = compile(schema, Dialect::OpenAiStrict);
    let cut = has(&strict, &[ChangeKind::Narrowed, ChangeKind::Truncated]);
    // An answer that is no object has no place without the object around it.
    let wrapped = has(&strict, &[ChangeKind::Wrapped]);
    if (cut || is_shut(schema, &strict)) && !wrapped {
        let cuts = strict.changes.iter();
        let cuts =
            cuts.filter(|it| matches!(it.kind, ChangeKind::Narrowed | ChangeKind::Truncated));
        let why = told(cuts).unwrap_or_else(|| NOT_SHUT.to_owned());
        let what = format!("the answer is not held to schema `{name}`, and may differ from it");
        warn(&what, Some(why), warnings);
        return free(compile(schema, Dialect::OpenAiLoose).schema);
    }
    // What is written as text is read again.
    let lost = strict.lost().filter(|it| it.kind != ChangeKind::Encoded);
    let what = format!("the answer is not held to the whole of schema `{name}`");
    warn(&what, told(lost), warnings);
    held(strict)
}

/// Why a schema without properties is not strict.
const NOT_SHUT: &str = "root: an object of any keys cannot be said on this wire";

/// Whether an object of any keys would become one without any.
fn is_shut(schema: &Value, strict: &Compiled<'_>) -> bool {
    let properties = strict.schema.get("properties").and_then(Value::as_object);
    let takes_none = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let is_meant = takes_none || schema.get("properties").is_some_and(Value::is_object);
    properties.is_none_or(Map::is_empty) && !is_meant
}

fn has(compiled: &Compiled<'_>, kinds: &[ChangeKind]) -> bool {
    let mut changes = compiled.changes.iter();
    changes.any(|change| kinds.contains(&change.kind))
}

fn held(strict: Compiled<'_>) -> Sent<'_> {
    let other_shape = [
        ChangeKind::Encoded,
        ChangeKind::Wrapped,
        ChangeKind::Renamed,
        ChangeKind::Nullable,
    ];
    Sent {
        reshapes: has(&strict, &other_shape),
        schema: strict.schema,
        strict: true,
    }
}

fn free(schema: Cow<'_, Value>) -> Sent<'_> {
    Sent {
        schema,
        strict: false,
        reshapes: false,
    }
}

/// The schema of an object that combines others at its root, for a server that takes such a one.
fn combined(schema: &Value) -> Option<Cow<'_, Value>> {
    let root = schema.as_object()?;
    let combines = REFUSED_AT_ROOT.iter().any(|it| root.contains_key(*it));
    let is_object = root.get("type").is_none_or(|it| it == "object");
    if !combines || !is_object || root.contains_key("$ref") {
        return None;
    }
    let has_properties = root.get("properties").is_some_and(Value::is_object);
    if root.contains_key("type") && has_properties {
        return Some(Cow::Borrowed(schema));
    }
    let mut own: JsonObject = root.clone();
    own.insert("type".to_owned(), json!("object"));
    if !has_properties {
        own.insert("properties".to_owned(), json!({}));
    }
    Some(Cow::Owned(Value::Object(own)))
}

/// The first of the changes, each with its place.
fn told<'c>(changes: impl Iterator<Item = &'c Change>) -> Option<String> {
    let changes: Vec<String> = changes.map(ToString::to_string).collect();
    let named = changes.get(..MAX_NAMED).unwrap_or(&changes);
    let more = match changes.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join("; ")))
}

fn warn(what: &str, why: Option<String>, warnings: &mut Vec<Warning>) {
    if let Some(why) = why {
        let message = format!("{what}: {why}");
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

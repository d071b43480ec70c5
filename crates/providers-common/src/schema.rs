//! JSON Schemas in the form that each wire takes.
//!
//! A tool's schema may be anything that JSON Schema can say, of any draft; every wire takes a
//! subset of its own and refuses the whole request for one keyword too many. [`compile`] turns a
//! schema into the subset and keeps its meaning: what the wire has another spelling for is spelt so,
//! what it cannot hold an answer to is said in words in the `description`, and everything that was
//! done is reported. [`restore`] turns an answer made for the compiled schema back into one for the
//! schema that was given.
//!
//! ```
//! use serde_json::json;
//! use switchboard_providers_common::schema::{Dialect, compile, restore};
//!
//! let tool = json!({
//!     "type": "object",
//!     "properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer"}},
//!     "required": ["city"],
//! });
//! let compiled = compile(&tool, Dialect::OpenAiStrict);
//! assert_eq!(compiled.schema["required"], json!(["city", "days"]));
//! assert_eq!(compiled.schema["properties"]["days"]["type"], json!(["integer", "null"]));
//! assert_eq!(compiled.schema["properties"]["city"]["description"], "At least 1 character.");
//! let answer = json!({"city": "Kiel", "days": null});
//! assert_eq!(restore(&tool, Dialect::OpenAiStrict, answer), json!({"city": "Kiel"}));
//! ```
//!
//! Two steps: `normal` spells the schema in one way, that of draft 2020-12, with every reference a
//! name in the root's `$defs`; `lower` then keeps, respells or tells each keyword by the
//! dialect's `rules`. Nothing is ever fetched: a reference to somewhere else means "any value".

mod accepts;
mod change;
mod expand;
mod lower;
mod measure;
mod merge;
mod normal;
mod per_tool;
mod restore;
mod root;
mod rules;
mod words;

use std::borrow::Cow;

use serde_json::Value;

pub use change::{Change, ChangeKind};
pub use measure::{Measure, measure};
pub use per_tool::{PerTool, Written};
pub use restore::{restore, restores};

use rules::Rules;

/// An object as `serde_json` has it.
type Map = serde_json::Map<String, Value>;

/// How often a schema is compiled again until nothing changes. Once is the rule; a few schemas
/// that are hardly any need a second time.
const MAX_PASSES: usize = 6;

/// What a [`Change`] of the root says if no pass makes anything that the next one leaves as it is. Only
/// schemas that were made to be so come to that.
pub const NO_STABLE_FORM: &str = "it has no stable form: any object is taken";

/// A wire's subset of JSON Schema. Where each rule comes from stands in `rules.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Anthropic: `tools[].input_schema` without `strict`. Draft 2020-12 with an object at the root
    /// that combines nothing.
    Anthropic,
    /// Anthropic: `tools[].input_schema` with `strict`, and `output_config.format`.
    AnthropicStrict,
    /// OpenAI: functions with `strict`, and `json_schema` response formats with `strict`.
    OpenAiStrict,
    /// OpenAI: functions without `strict`; also what compatible servers take.
    OpenAiLoose,
    /// Gemini: `parametersJsonSchema` and `responseJsonSchema`.
    GeminiJsonSchema,
    /// Gemini: `parameters` and `responseSchema`, a subset of OpenAPI 3.0. Types are in upper case.
    /// Where the root has no `properties`, leave `parameters` out.
    GeminiOpenApi,
    /// Ollama: `tools[].function.parameters`.
    OllamaTools,
    /// Ollama: `format`, which becomes a grammar. The root may be of any type.
    OllamaFormat,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 8] = [
        Self::Anthropic,
        Self::AnthropicStrict,
        Self::OpenAiStrict,
        Self::OpenAiLoose,
        Self::GeminiJsonSchema,
        Self::GeminiOpenApi,
        Self::OllamaTools,
        Self::OllamaFormat,
    ];

    /// A name for logs and snapshots, such as `openai_strict`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::AnthropicStrict => "anthropic_strict",
            Self::OpenAiStrict => "openai_strict",
            Self::OpenAiLoose => "openai_loose",
            Self::GeminiJsonSchema => "gemini_json_schema",
            Self::GeminiOpenApi => "gemini_openapi",
            Self::OllamaTools => "ollama_tools",
            Self::OllamaFormat => "ollama_format",
        }
    }
}

/// A schema in a dialect, and what was done to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled<'a> {
    /// The schema; the one that was given if nothing had to change.
    pub schema: Cow<'a, Value>,
    /// What was changed, in the order of the work; empty if and only if `schema` is borrowed.
    pub changes: Vec<Change>,
    /// What there is no place for in the schema (Ollama's root has no description): it belongs at
    /// the end of the tool's own description.
    pub told: Option<String>,
}

impl Compiled<'_> {
    /// Whether an answer that the wire holds to [`schema`](Self::schema) is valid against the whole
    /// schema that was given, once it is [restored](restore()).
    pub fn is_exact(&self) -> bool {
        self.lost().next().is_none()
    }

    /// Whether the compiled schema says what the given one says, no more and no less: it is
    /// [exact](Self::is_exact) and nothing that was possible is impossible now. Only then is a strict
    /// mode without a cost; else the schema of a loose dialect may serve better.
    pub fn is_faithful(&self) -> bool {
        let narrowed = |change: &Change| change.kind == ChangeKind::Narrowed;
        self.is_exact() && !self.changes.iter().any(narrowed)
    }

    /// The changes after which the wire holds an answer to less.
    pub fn lost(&self) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(|change| change.kind.loses_enforcement())
    }

    /// The schema, copied if it is borrowed.
    pub fn into_owned(self) -> Value {
        self.schema.into_owned()
    }
}

/// A schema in the subset of JSON Schema that a wire takes.
///
/// Takes any JSON, also what is no schema, and gives a schema that is valid for the wire, the same
/// one for the same input. Compiling what was compiled changes nothing. The order of properties is
/// kept. A schema that needs no change is worked through but not copied into the result.
///
/// Recursion is kept where the wire takes it, else inlined three levels deep. What is deeper than 48
/// levels, or comes after 20,000 subschemas read or 10,000 written, is left out and reported; OpenAI's
/// own limits (10 levels of objects, 5,000 properties, 1,000 enum values) are kept too.
pub fn compile(schema: &Value, dialect: Dialect) -> Compiled<'_> {
    let rules = Rules::of(dialect);
    let mut first = pass(schema, rules);
    if first.schema == *schema {
        return Compiled {
            schema: Cow::Borrowed(schema),
            changes: Vec::new(),
            told: None,
        };
    }
    for _ in 1..MAX_PASSES {
        let next = pass(&first.schema, rules);
        if next.schema == first.schema {
            return first.into_compiled();
        }
        first.schema = next.schema;
        first.changes.extend(next.changes);
        first.told = first.told.or(next.told);
    }
    // Only what was made to be so comes here: the least that the wire takes.
    first.schema = root::least(rules);
    let message = NO_STABLE_FORM.to_owned();
    first
        .changes
        .push(Change::new("", ChangeKind::Truncated, message));
    first.into_compiled()
}

/// What one pass makes of a schema.
struct Passed {
    schema: Value,
    changes: Vec<Change>,
    told: Option<String>,
}

impl Passed {
    fn into_compiled<'a>(mut self) -> Compiled<'a> {
        if self.changes.is_empty() {
            // Such as the case of the types' names, which is not worth a line for each.
            let message = "spelt as the dialect spells it".to_owned();
            let change = Change::new("", ChangeKind::Rewritten, message);
            self.changes.push(change);
        }
        Compiled {
            schema: Cow::Owned(self.schema),
            changes: self.changes,
            told: self.told,
        }
    }
}

fn pass(schema: &Value, rules: &'static Rules) -> Passed {
    let mut changes = Vec::new();
    let normal = normal::normalise(schema, &mut changes);
    let (schema, told) = lower::lower(normal, rules, &mut changes);
    Passed {
        schema,
        changes,
        told,
    }
}

#[cfg(test)]
#[path = "schema/schema_tests.rs"]
mod tests;

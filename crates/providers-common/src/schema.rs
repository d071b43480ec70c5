//! Compilation of JSON Schemas into the subset that each provider API accepts.
//!
//! A tool's schema may use any keyword of any draft of JSON Schema. Every provider API accepts
//! another subset and refuses the whole request for one unsupported keyword. [`compile`] converts a
//! schema into the subset and preserves its meaning: keywords are rewritten for the API,
//! unsupported constraints move to the `description`, and changes of meaning are reported.
//! [`restore_answer()`] converts an answer for the compiled schema into one for the original
//! schema.
//!
//! ```
//! use serde_json::json;
//! use switchboard_providers_common::schema::{Dialect, compile, restore_answer};
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
//! assert_eq!(restore_answer(&tool, Dialect::OpenAiStrict, answer), json!({"city": "Kiel"}));
//! ```
//!
//! There are two steps. `normalize` converts the schema to draft 2020-12, where every reference is
//! a name in the root's `$defs`. `lowering` then keeps, rewrites or describes each keyword by the
//! dialect's `dialect_rules`. Nothing is fetched: an external reference means "any value".

mod change;
mod constraint_text;
mod dialect_rules;
mod keywords;
mod lowering;
mod measure;
mod merge;
mod normalize;
mod restore;
mod root;
mod tool_schemas;

use std::borrow::Cow;

use serde_json::Value;

pub use change::{Change, ChangeKind, list_changes, warn_schema_changes};
pub use measure::{SchemaSizes, measure_schema};
pub use restore::{dialect_needs_restore, restore_answer};
pub use tool_schemas::{ToolSchema, ToolSchemas};

use dialect_rules::DialectRules;

/// Maximum number of compiler passes over one schema. The compiler repeats passes until a pass
/// changes nothing. For nearly all schemas only the first pass makes changes, for a few degenerate
/// schemas also the second.
const MAX_PASSES: usize = 6;

/// Message of the [`Change`] that [`compile`] reports if the schema still changes in the last
/// allowed compiler pass. The compiled schema then allows any object. No schema in the property
/// tests causes this change.
pub const NO_STABLE_FORM: &str = "the schema has no stable form: any object is allowed";

/// Message of the [`Change`] for merged schemas, such as the members of an `allOf`, if
/// `additionalProperties` of one schema restricts properties that another schema declares. The
/// merged schema ignores this restriction.
const OPENED_OBJECTS: &str = "closed objects are opened for the properties of other schemas";

/// Subset of JSON Schema that one provider API accepts. `dialect_rules.rs` lists the source of each
/// rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Anthropic's subset for `tools[].input_schema` without `strict`: draft 2020-12, but the root
    /// must be an object without combinators.
    Anthropic,
    /// Anthropic's subset for `tools[].input_schema` with `strict`, and for `output_config.format`.
    AnthropicStrict,
    /// OpenAI's subset for functions with `strict` and for response formats with `strict`.
    OpenAiStrict,
    /// Subset of OpenAI and compatible servers for functions without `strict`.
    OpenAiLoose,
    /// Gemini's subset for `parametersJsonSchema` and `responseJsonSchema`.
    GeminiJsonSchema,
    /// Gemini's subset for `parameters` and `responseSchema`, which follows OpenAPI 3.0. Types are
    /// in upper case. If the compiled root has no `properties`, the caller must omit `parameters`,
    /// because Gemini refuses an object without properties.
    GeminiOpenApi,
    /// Ollama's subset for `tools[].function.parameters`.
    OllamaTools,
    /// Ollama's subset for `format`, which the server converts into a grammar. The root may be of
    /// any type.
    OllamaFormat,
}

impl Dialect {
    /// All dialects, in the order of their declaration.
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

    /// Returns the dialect's name in logs and snapshots, such as `openai_strict`.
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

/// A schema that is compiled for one dialect, and the changes that the compiler made.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledSchema<'a> {
    /// Compiled schema. It is borrowed from the original if nothing changed.
    pub schema: Cow<'a, Value>,
    /// Changes in the order in which the compiler made them. Empty if `schema` is borrowed.
    pub changes: Vec<Change>,
    /// Description of the schema's root, if the dialect does not allow a description there (only
    /// [`Dialect::OllamaTools`]); otherwise `None`. The caller appends it to the tool's
    /// description.
    pub root_description: Option<String>,
}

impl CompiledSchema<'_> {
    /// Returns whether the compiled schema lost no constraint: every answer that is valid against
    /// [`schema`](Self::schema) is valid against the original schema after [`restore_answer()`] was
    /// applied.
    pub fn keeps_all_constraints(&self) -> bool {
        self.lossy_schema_changes().next().is_none()
    }

    /// Returns whether the compiled schema allows the same values as the original: it [keeps all
    /// constraints](Self::keeps_all_constraints) and excludes no value. If not, the caller may
    /// prefer a dialect without `strict`, such as [`Dialect::OpenAiLoose`], which keeps more of the
    /// schema.
    pub fn accepts_same_values(&self) -> bool {
        let narrowed = |change: &Change| change.kind == ChangeKind::Narrowed;
        self.keeps_all_constraints() && !self.changes.iter().any(narrowed)
    }

    /// Returns the changes that weaken the schema: the provider then does not enforce every
    /// constraint of the original.
    pub fn lossy_schema_changes(&self) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(|change| change.kind.loses_enforcement())
    }

    /// Returns the lossy changes of a tool's input schema that need a warning. Constraints that
    /// were dropped or became description text need no warning, because the input of a call is
    /// validated before the call is executed.
    pub fn lossy_input_changes(&self) -> impl Iterator<Item = &Change> {
        let is_described = |kind| matches!(kind, ChangeKind::Described | ChangeKind::Dropped);
        self.lossy_schema_changes()
            .filter(move |change| !is_described(change.kind))
    }

    /// Returns the lossy changes without [`ChangeKind::Encoded`], which [`restore_answer()`]
    /// reverses: it parses the JSON text that the model wrote.
    pub fn lossy_changes_after_restore(&self) -> impl Iterator<Item = &Change> {
        self.lossy_schema_changes()
            .filter(|change| change.kind != ChangeKind::Encoded)
    }

    /// Returns whether an answer needs [`restore_answer()`] to match the original schema.
    pub fn needs_restore(&self) -> bool {
        self.has_any_change(&[
            ChangeKind::Encoded,
            ChangeKind::Wrapped,
            ChangeKind::Renamed,
            ChangeKind::Nullable,
        ])
    }

    /// Returns whether the compiler made a change of one of `kinds`.
    pub fn has_any_change(&self, kinds: &[ChangeKind]) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|change| kinds.contains(&change.kind))
    }

    /// Returns the compiled schema. Clones it if it is borrowed.
    pub fn into_owned(self) -> Value {
        self.schema.into_owned()
    }
}

/// Compiles a schema into the subset of JSON Schema that a dialect accepts.
///
/// Accepts any JSON, also invalid schemas, and returns a schema that is valid in the dialect. The
/// result is deterministic, and compiling it again changes nothing. The order of properties is
/// preserved.
///
/// Recursion is kept where the dialect accepts it, else inlined three levels deep. Subschemas are
/// omitted, and reported, below 48 levels and after 20,000 were read or 10,000 written. OpenAI's
/// limits (10 levels of objects, 5,000 properties, 1,000 enum values) apply too.
pub fn compile(schema: &Value, dialect: Dialect) -> CompiledSchema<'_> {
    let rules = DialectRules::for_dialect(dialect);
    let mut first = run_compiler_pass(schema, rules);
    if *first.schema == *schema {
        return CompiledSchema {
            schema: Cow::Borrowed(schema),
            changes: Vec::new(),
            root_description: None,
        };
    }
    for _ in 1..MAX_PASSES {
        let next = run_compiler_pass(&first.schema, rules);
        if next.schema == first.schema {
            return first;
        }
        first.schema = next.schema;
        first.changes.extend(next.changes);
        first.root_description = first.root_description.or(next.root_description);
    }
    // Even the last pass changed the schema, which only hostile input can cause. The result is the
    // smallest schema that the dialect accepts.
    first.schema = Cow::Owned(Value::Object(root::empty_object_schema(rules)));
    let change = Change::new("", ChangeKind::Truncated, NO_STABLE_FORM);
    first.changes.push(change);
    first
}

fn run_compiler_pass(schema: &Value, rules: &'static DialectRules) -> CompiledSchema<'static> {
    let mut changes = Vec::new();
    let normal = normalize::normalize_schema(schema, rules, &mut changes);
    let (schema, root_description) = lowering::lower_to_dialect(normal, rules, &mut changes);
    CompiledSchema {
        schema: Cow::Owned(schema),
        changes,
        root_description,
    }
}

//! What each dialect takes, as data.
//!
//! Sources, besides the vendors' documentation as of November 2026:
//! - Anthropic: the API's answers "`input_schema` does not support oneOf, allOf, or anyOf at the
//!   top level" and "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" (for the
//!   properties of the root only: decocms/studio#6874), "must match JSON Schema draft 2020-12"; for
//!   strict schemas `lib/_parse/_transform.py` of the SDK `anthropic` 2.11.0.
//! - OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at
//!   the top level", "object schema missing properties", "array schema missing items"; the
//!   Structured Outputs guide; `lib/_pydantic.py` of the SDK `openai` 3.52.0 (`$ref` stands alone).
//! - Gemini: the field documentation of `response_json_schema` and the fields of `Schema` in
//!   `google-genai` 3.4.0; the API's answers "only 'enum' and 'date-time' are supported for STRING
//!   type" (google-gemini/gemini-cli#3178), "enum: only allowed for STRING type", "properties:
//!   should be non-empty for OBJECT type" (home-assistant/core#122403), "properties: only allowed
//!   for OBJECT type" (anomalyco/opencode#11889), and on Vertex AI "when using `any_of`, it must be
//!   the only field set".
//! - Ollama: `ToolFunctionParameters` and `ToolProperty` of `api/types.go` in ollama/ollama (what
//!   is no field of theirs is lost on the way to the prompt); for `format` the converter
//!   `json-schema-to-grammar.cpp` of llama.cpp, which fails on patterns without both anchors and on
//!   nodes without a type, reads `$ref` only as `#/…` and ignores what stands beside it.

use super::Dialect;

/// What is done about references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refs {
    /// Kept, also where a schema is within itself.
    Keep,
    /// Kept, and recursion inlined to a depth.
    KeepFinite,
    /// All inlined, recursion to a depth.
    Inline,
}

/// What is said of an object's further keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    /// `additionalProperties` as it is.
    Keep,
    /// Always `additionalProperties: false`.
    Close,
    /// There is no such keyword.
    Silent,
}

/// How "any value" is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Any {
    /// As a schema without a type.
    Empty,
    /// With every type by name.
    AllTypes,
    /// Not at all: as JSON text in a string.
    JsonText,
}

/// What may be listed in `enum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enums {
    /// Any value.
    Any,
    /// No objects and no arrays.
    Scalars,
    /// Strings and numbers.
    StringsAndNumbers,
    /// Strings that are not empty.
    Strings,
}

/// A dialect as data.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) dialect: Dialect,
    /// Everything of draft 2020-12 is taken below the root; nothing but the root is lowered.
    pub(super) loose: bool,
    /// The root must be an object.
    pub(super) object_root: bool,
    /// A root that is no object becomes a property of one.
    pub(super) wraps_root: bool,
    /// An object without `properties` is refused at the root.
    pub(super) root_properties: bool,
    /// Keywords that the root may not have.
    pub(super) not_at_root: &'static [&'static str],
    /// The keys of the root's properties are `[a-zA-Z0-9_.-]{1,64}`.
    pub(super) narrow_keys: bool,
    pub(super) refs: Refs,
    /// `#` is taken as a reference.
    pub(super) root_ref: bool,
    pub(super) further: Further,
    /// Every property is required.
    pub(super) all_required: bool,
    pub(super) any: Any,
    /// An object needs at least one property.
    pub(super) filled_objects: bool,
    /// An array needs `items`.
    pub(super) needs_items: bool,
    pub(super) tuples: bool,
    /// `nullable` in place of the type `null`, one type only, `anyOf` on its own, types in upper
    /// case.
    pub(super) openapi: bool,
    pub(super) constants: bool,
    pub(super) enums: Enums,
    /// Constraints and annotations that are taken as they are, besides `type`, `enum`,
    /// `properties`, `required`, `items`, `anyOf` and `description`.
    pub(super) keywords: &'static [&'static str],
    /// Formats of strings that are taken; see `number_formats` for the others.
    pub(super) formats: &'static [&'static str],
    pub(super) number_formats: &'static [&'static str],
    /// The root has no `description`.
    pub(super) mute_root: bool,
    /// Objects within objects.
    pub(super) max_objects: usize,
    /// Values listed in all `enum`s together.
    pub(super) max_enum_values: usize,
    /// Subschemas.
    pub(super) max_nodes: usize,
}

/// Subschemas that are read at most, of any dialect.
pub(super) const MAX_NODES: usize = 20_000;
/// Subschemas that are written at most. Fewer than are read, so that what was written is read
/// whole.
const MAX_WRITTEN: usize = 10_000;
/// Levels of subschemas that are read.
pub(super) const MAX_DEPTH: usize = 48;
/// How often a schema that is within itself is inlined into itself.
pub(super) const MAX_UNROLL: usize = 3;

const COMBINATIONS: &[&str] = &["oneOf", "anyOf", "allOf"];
const COMBINATIONS_AND_VALUES: &[&str] = &["oneOf", "anyOf", "allOf", "enum", "const", "not"];

const BASE: Rules = Rules {
    dialect: Dialect::OpenAiLoose,
    loose: false,
    object_root: true,
    wraps_root: false,
    root_properties: false,
    not_at_root: COMBINATIONS_AND_VALUES,
    narrow_keys: false,
    refs: Refs::Inline,
    root_ref: false,
    further: Further::Keep,
    all_required: false,
    any: Any::Empty,
    filled_objects: false,
    needs_items: false,
    tuples: false,
    openapi: false,
    constants: false,
    enums: Enums::Any,
    keywords: &[],
    formats: &[],
    number_formats: &[],
    mute_root: false,
    max_objects: MAX_DEPTH,
    max_enum_values: usize::MAX,
    max_nodes: MAX_WRITTEN,
};

const ANTHROPIC: Rules = Rules {
    dialect: Dialect::Anthropic,
    loose: true,
    not_at_root: COMBINATIONS,
    narrow_keys: true,
    refs: Refs::Keep,
    root_ref: true,
    tuples: true,
    constants: true,
    ..BASE
};

const OPENAI_LOOSE: Rules = Rules {
    dialect: Dialect::OpenAiLoose,
    loose: true,
    root_properties: true,
    refs: Refs::Keep,
    root_ref: true,
    needs_items: true,
    tuples: true,
    constants: true,
    ..BASE
};

const ANTHROPIC_STRICT: Rules = Rules {
    dialect: Dialect::AnthropicStrict,
    wraps_root: true,
    root_properties: true,
    narrow_keys: true,
    refs: Refs::KeepFinite,
    further: Further::Close,
    any: Any::JsonText,
    needs_items: true,
    constants: true,
    enums: Enums::Scalars,
    // `minItems` only as 0 or 1; see `lower/scalar.rs`.
    keywords: &["title", "default", "format", "minItems"],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    ..BASE
};

const OPENAI_STRICT: Rules = Rules {
    dialect: Dialect::OpenAiStrict,
    wraps_root: true,
    root_properties: true,
    refs: Refs::Keep,
    root_ref: true,
    further: Further::Close,
    all_required: true,
    any: Any::JsonText,
    needs_items: true,
    constants: true,
    enums: Enums::Scalars,
    keywords: &[
        "title",
        "format",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    max_objects: 10,
    max_enum_values: 1_000,
    max_nodes: 5_000,
    ..BASE
};

const GEMINI_JSON_SCHEMA: Rules = Rules {
    dialect: Dialect::GeminiJsonSchema,
    // "may only be used within non-required properties", and unrolled by the server all the same.
    refs: Refs::KeepFinite,
    tuples: true,
    enums: Enums::StringsAndNumbers,
    keywords: &[
        "title",
        "format",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "propertyOrdering",
    ],
    formats: ANY_FORMAT,
    number_formats: ANY_FORMAT,
    ..BASE
};

const GEMINI_OPENAPI: Rules = Rules {
    dialect: Dialect::GeminiOpenApi,
    further: Further::Silent,
    any: Any::JsonText,
    filled_objects: true,
    needs_items: true,
    openapi: true,
    enums: Enums::Strings,
    keywords: &[
        "title",
        "format",
        "default",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "propertyOrdering",
    ],
    formats: &["date-time", "enum"],
    number_formats: &["float", "double", "int32", "int64"],
    ..BASE
};

const OLLAMA_TOOLS: Rules = Rules {
    dialect: Dialect::OllamaTools,
    root_properties: true,
    further: Further::Silent,
    mute_root: true,
    ..BASE
};

const OLLAMA_FORMAT: Rules = Rules {
    dialect: Dialect::OllamaFormat,
    object_root: false,
    not_at_root: &[],
    refs: Refs::Keep,
    any: Any::AllTypes,
    constants: true,
    // The numbers among them only where the grammar stays small; see `lower/scalar.rs`.
    keywords: &[
        "title",
        "default",
        "format",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    ],
    formats: &["date", "time", "date-time", "uuid"],
    ..BASE
};

/// Any format is taken.
pub(super) const ANY_FORMAT: &[&str] = &["*"];

impl Rules {
    pub(super) fn of(dialect: Dialect) -> &'static Self {
        match dialect {
            Dialect::Anthropic => &ANTHROPIC,
            Dialect::AnthropicStrict => &ANTHROPIC_STRICT,
            Dialect::OpenAiStrict => &OPENAI_STRICT,
            Dialect::OpenAiLoose => &OPENAI_LOOSE,
            Dialect::GeminiJsonSchema => &GEMINI_JSON_SCHEMA,
            Dialect::GeminiOpenApi => &GEMINI_OPENAPI,
            Dialect::OllamaTools => &OLLAMA_TOOLS,
            Dialect::OllamaFormat => &OLLAMA_FORMAT,
        }
    }

    pub(super) fn keeps(&self, keyword: &str) -> bool {
        self.keywords.contains(&keyword)
    }
}

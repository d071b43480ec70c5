//! The rules of each [`Dialect`](super::Dialect), which is a provider API's subset of JSON Schema.
//!
//! Sources, besides the vendors' documentation as of November 2026:
//! - Anthropic: the API's answers "`input_schema` does not support oneOf, allOf, or anyOf at the
//!   top level" and "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" (for the
//!   properties of the root only: decocms/studio#6874), "must match JSON Schema draft 2020-12"; for
//!   strict schemas `lib/_parse/_transform.py` of the SDK `anthropic` 2.11.0.
//! - OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at
//!   the top level", "object schema missing properties", "array schema missing items"; the
//!   Structured Outputs guide; `lib/_pydantic.py` of the SDK `openai` 3.52.0 (`$ref` has no
//!   siblings).
//! - Gemini: the field documentation of `response_json_schema` and the fields of `Schema` in
//!   `google-genai` 3.4.0; the API's answers "only 'enum' and 'date-time' are supported for STRING
//!   type" (google-gemini/gemini-cli#3178), "enum: only allowed for STRING type", "properties:
//!   should be non-empty for OBJECT type" (home-assistant/core#122403), "properties: only allowed
//!   for OBJECT type" (anomalyco/opencode#11889), and on Vertex AI "when using `any_of`, it must be
//!   the only field set".
//! - Ollama: `ToolFunctionParameters` and `ToolProperty` of `api/types.go` in ollama/ollama (other
//!   fields do not reach the prompt); for `format` the converter `json-schema-to-grammar.cpp` of
//!   llama.cpp, which fails on patterns without both anchors and on schemas without a type, reads
//!   `$ref` only as `#/…` and ignores its siblings.

use super::Dialect;

/// Treatment of `$ref` in the schemas of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferenceRule {
    /// All references stay references, also recursive ones.
    Keep,
    /// References stay references, except for recursive ones, which are inlined up to
    /// [`MAX_RECURSION`] times.
    KeepFinite,
    /// References are inlined, recursive ones up to [`MAX_RECURSION`] times.
    Inline,
}

/// Treatment of `additionalProperties` in a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdditionalKeyRule {
    /// `additionalProperties` stays in the schema.
    Keep,
    /// `additionalProperties` is set to `false` in every object. A root that is not an object
    /// becomes a property of an object.
    Forbid,
    /// `additionalProperties` is removed, because the dialect does not have it.
    Omit,
}

/// Form in which a dialect writes a schema that allows any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnyValueRule {
    /// A schema without the keyword `type` allows any value.
    Empty,
    /// A schema whose `type` lists all types allows any value.
    AllTypes,
    /// The provider cannot express a schema that allows every type, so any value is sent as a
    /// string with its JSON text.
    JsonText,
}

/// Values that a dialect accepts in `enum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnumValueRule {
    /// An `enum` may list any JSON values.
    Any,
    /// An `enum` may list all values except objects and arrays.
    Scalars,
    /// An `enum` may list only strings and numbers.
    StringsAndNumbers,
    /// An `enum` may list only strings that are not empty.
    Strings,
}

/// Rules for the schemas of one dialect, such as the keywords that it accepts.
#[derive(Debug)]
pub(super) struct DialectRules {
    pub(super) dialect: Dialect,
    /// Whether the dialect accepts every keyword of draft 2020-12 in subschemas. Only the root
    /// schema is then converted.
    pub(super) loose: bool,
    /// Whether the root schema must have the type `object`.
    pub(super) object_root: bool,
    /// Whether the root must have the keyword `properties`.
    pub(super) root_properties: bool,
    /// Keywords that the dialect does not accept at the root.
    pub(super) not_at_root: &'static [&'static str],
    /// Whether the names of the root's properties must match `[a-zA-Z0-9_.-]{1,64}`.
    pub(super) restricted_keys: bool,
    pub(super) references: ReferenceRule,
    pub(super) additional: AdditionalKeyRule,
    /// Whether every property must be listed in `required`.
    pub(super) all_required: bool,
    pub(super) any_value: AnyValueRule,
    /// Whether every array must have `items`.
    pub(super) needs_items: bool,
    /// Whether the dialect follows OpenAPI 3.0. A schema then has one type, in upper case, and
    /// `nullable` instead of the type `null`. An `anyOf` has no other keywords beside it, and an
    /// object needs at least one property.
    pub(super) openapi: bool,
    pub(super) enums: EnumValueRule,
    /// Accepted keywords, separated by blanks, besides `type`, `enum`, `properties`, `required`,
    /// `items`, `anyOf` and `description`. Other keywords become text in the description.
    pub(super) keywords: &'static str,
    /// Values of `format` accepted for strings, separated by blanks; `*` accepts every format.
    pub(super) formats: &'static str,
    /// Values of `format` accepted for numbers, separated by blanks; `*` accepts every format.
    pub(super) number_formats: &'static str,
    /// Whether the root must not have a `description`.
    pub(super) no_root_description: bool,
    /// Maximum nesting depth of object schemas. A deeper object schema is replaced by a schema that
    /// only describes its keys.
    pub(super) max_objects: usize,
    /// Maximum number of values in all `enum`s of a compiled schema together. An `enum` that
    /// exceeds this number becomes text in the description.
    pub(super) max_enum_values: usize,
    /// Maximum number of subschemas in the compiled schema. Further subschemas are removed or
    /// replaced by a description.
    pub(super) max_nodes: usize,
}

/// Maximum number of subschemas that are read from the original schema. Each further subschema is
/// treated as one that allows any value.
pub(super) const MAX_NODES: usize = 20_000;
/// Maximum number of subschemas in the compiled schema. It is lower than `MAX_NODES`, so that the
/// compiled schema can be compiled again.
const MAX_WRITTEN: usize = 10_000;
/// Maximum nesting depth of subschemas. A deeper subschema is replaced by a description, or by a
/// schema that allows any value.
pub(super) const MAX_DEPTH: usize = 48;
/// Maximum number of nested copies of a recursive definition that is inlined. Instead of the next
/// copy, a description is written.
pub(super) const MAX_RECURSION: usize = 3;

const COMBINATIONS: &[&str] = &["oneOf", "anyOf", "allOf"];
const COMBINATIONS_AND_VALUES: &[&str] = &["oneOf", "anyOf", "allOf", "enum", "const", "not"];

/// Rules that the dialects below share. Each dialect lists only its differences.
const BASE: DialectRules = DialectRules {
    dialect: Dialect::OpenAiLoose,
    loose: false,
    object_root: true,
    root_properties: false,
    not_at_root: COMBINATIONS_AND_VALUES,
    restricted_keys: false,
    references: ReferenceRule::Inline,
    additional: AdditionalKeyRule::Keep,
    all_required: false,
    any_value: AnyValueRule::Empty,
    needs_items: false,
    openapi: false,
    enums: EnumValueRule::Any,
    keywords: "",
    formats: "",
    number_formats: "",
    no_root_description: false,
    max_objects: MAX_DEPTH,
    max_enum_values: usize::MAX,
    max_nodes: MAX_WRITTEN,
};

const ANTHROPIC: DialectRules = DialectRules {
    dialect: Dialect::Anthropic,
    loose: true,
    not_at_root: COMBINATIONS,
    restricted_keys: true,
    references: ReferenceRule::Keep,
    ..BASE
};

const OPENAI_LOOSE: DialectRules = DialectRules {
    dialect: Dialect::OpenAiLoose,
    loose: true,
    root_properties: true,
    references: ReferenceRule::Keep,
    needs_items: true,
    ..BASE
};

const ANTHROPIC_STRICT: DialectRules = DialectRules {
    dialect: Dialect::AnthropicStrict,
    root_properties: true,
    restricted_keys: true,
    references: ReferenceRule::KeepFinite,
    additional: AdditionalKeyRule::Forbid,
    any_value: AnyValueRule::JsonText,
    needs_items: true,
    enums: EnumValueRule::Scalars,
    // `minItems` is accepted only as 0 or 1; see `lowering/keyword.rs`.
    keywords: "const title default format minItems",
    formats: "date-time time date duration email hostname uri ipv4 ipv6 uuid",
    ..BASE
};

const OPENAI_STRICT: DialectRules = DialectRules {
    dialect: Dialect::OpenAiStrict,
    root_properties: true,
    references: ReferenceRule::Keep,
    additional: AdditionalKeyRule::Forbid,
    all_required: true,
    any_value: AnyValueRule::JsonText,
    needs_items: true,
    enums: EnumValueRule::Scalars,
    keywords: "const title format pattern minimum maximum exclusiveMinimum exclusiveMaximum \
        multipleOf minItems maxItems",
    formats: "date-time time date duration email hostname ipv4 ipv6 uuid",
    max_objects: 10,
    max_enum_values: 1_000,
    max_nodes: 5_000,
    ..BASE
};

const GEMINI_JSON_SCHEMA: DialectRules = DialectRules {
    dialect: Dialect::GeminiJsonSchema,
    // Recursion is inlined: the API accepts recursive references only in optional properties.
    references: ReferenceRule::KeepFinite,
    enums: EnumValueRule::StringsAndNumbers,
    keywords: "prefixItems title format minItems maxItems minimum maximum",
    formats: "*",
    number_formats: "*",
    ..BASE
};

const GEMINI_OPENAPI: DialectRules = DialectRules {
    dialect: Dialect::GeminiOpenApi,
    additional: AdditionalKeyRule::Omit,
    any_value: AnyValueRule::JsonText,
    needs_items: true,
    openapi: true,
    enums: EnumValueRule::Strings,
    keywords: "title format default minItems maxItems minLength maxLength pattern \
        minProperties maxProperties minimum maximum",
    formats: "date-time enum",
    number_formats: "float double int32 int64",
    ..BASE
};

const OLLAMA_TOOLS: DialectRules = DialectRules {
    dialect: Dialect::OllamaTools,
    root_properties: true,
    additional: AdditionalKeyRule::Omit,
    no_root_description: true,
    ..BASE
};

const OLLAMA_FORMAT: DialectRules = DialectRules {
    dialect: Dialect::OllamaFormat,
    object_root: false,
    not_at_root: &[],
    references: ReferenceRule::Keep,
    any_value: AnyValueRule::AllTypes,
    // Bounds of numbers are accepted only where the grammar stays small; see `lowering/keyword.rs`.
    keywords: "const title default format minimum maximum exclusiveMinimum exclusiveMaximum \
        minLength maxLength minItems maxItems",
    formats: "date time date-time uuid",
    ..BASE
};

impl DialectRules {
    pub(super) fn for_dialect(dialect: Dialect) -> &'static Self {
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

    pub(super) fn keeps_keyword(&self, keyword: &str) -> bool {
        self.keywords.split_whitespace().any(|it| it == keyword)
    }
}

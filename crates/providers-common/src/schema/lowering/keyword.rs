//! Conversion to a dialect of the keywords whose value is not a schema.

use serde_json::Value;

use super::{Map, SchemaLowering, SchemaMembers, text};
use crate::schema::{
    Dialect,
    keywords::{ignores_types, is_annotation, type_names},
};

/// Maximum value of length keywords, such as `maxItems`, for Ollama: its grammar grows with them.
const MAX_REPETITION: u64 = 256;
/// Maximum absolute value of a number bound, such as `minimum`, for Ollama: its grammar grows with
/// the number of digits.
const MAX_GRAMMAR_NUMBER: f64 = 1e9;

impl SchemaLowering<'_, '_> {
    /// Converts all keywords of a schema. `lowered` contains the keywords that were already
    /// converted.
    pub(super) fn lower_keywords(&mut self, schema: Map, at: &str, mut lowered: Map) -> Map {
        let mut out = Map::new();
        let type_value = schema.get("type").cloned().unwrap_or_default();
        let types = type_names(&type_value);
        for (keyword, value) in schema {
            let is_foreign = ignores_types(&keyword, &types);
            match keyword.as_str() {
                _ if let Some(value) = lowered.get_mut(&keyword) => {
                    out.set(&keyword, std::mem::take(value));
                }
                "type" => self.lower_types(&mut out, value, &types),
                "enum" | "const" => out.set(&keyword, value),
                "format" => self.lower_format(&mut out, value, &types, at),
                // The caller has converted these keywords into `lowered` or has omitted them.
                "properties" | "required" | "additionalProperties" | "items" | "prefixItems"
                    if !is_foreign => {}
                _ if is_annotation(&keyword) => self.put_annotation(&mut out, &keyword, &value, at),
                _ if is_foreign => {}
                _ if self.rules.keeps_keyword(&keyword)
                    && self.accepts_keyword_value(&keyword, &value, &types) =>
                {
                    out.set(&keyword, value);
                }
                _ => self.describe_rule(&mut out, &keyword, &value, at),
            }
        }
        for (keyword, value) in lowered {
            out.entry(keyword).or_insert(value);
        }
        out
    }

    fn lower_types(&self, out: &mut Map, value: Value, types: &[&str]) {
        if !self.rules.openapi {
            return out.set("type", value);
        }
        let not_null = types.iter().find(|name| **name != "null");
        out.set("type", not_null.unwrap_or(&"string").to_ascii_uppercase());
        if types.contains(&"null") {
            out.set("nullable", true);
        }
        if not_null.is_none() {
            text::append_text(out, "Always null.");
        }
    }

    fn lower_format(&mut self, out: &mut Map, value: Value, types: &[&str], at: &str) {
        let format = value.as_str().unwrap_or_default();
        let is_string = types.contains(&"string");
        let is_number = types.iter().any(|it| matches!(*it, "number" | "integer"));
        let formats = match (is_string, is_number) {
            (true, _) => self.rules.formats,
            (false, true) => self.rules.number_formats,
            (false, false) => "",
        };
        let is_accepted = formats == "*" || formats.split_whitespace().any(|it| it == format);
        if format.is_empty() {
            // An empty format is dropped: it has no meaning, and some providers do not accept it.
        } else if is_accepted && self.rules.keeps_keyword("format") {
            out.set("format", value);
        } else if is_string {
            self.describe_rule(out, "format", &value, at);
        }
    }

    /// Returns whether the dialect accepts `value` as the value of `keyword`, a keyword that the
    /// dialect supports.
    fn accepts_keyword_value(&self, keyword: &str, value: &Value, types: &[&str]) -> bool {
        let text = value.as_str().unwrap_or_default();
        match (self.rules.dialect, keyword) {
            (Dialect::AnthropicStrict, "minItems") => matches!(value.as_u64(), Some(0 | 1)),
            (Dialect::OpenAiStrict | Dialect::GeminiOpenApi, "pattern") => !is_refused_regex(text),
            (Dialect::OllamaFormat, "minLength" | "maxLength" | "minItems" | "maxItems") => {
                value.as_u64().is_some_and(|count| count <= MAX_REPETITION)
            }
            (
                Dialect::OllamaFormat,
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum",
            ) => {
                let is_small = |it: f64| it.fract() == 0.0 && it.abs() <= MAX_GRAMMAR_NUMBER;
                value.as_f64().is_some_and(is_small)
                    && types.contains(&"integer")
                    && !types.contains(&"number")
            }
            _ => true,
        }
    }
}

/// Returns whether a regular expression contains look-around, a back-reference or a word boundary
/// (`\b`). OpenAI's strict dialect and Gemini's OpenAPI dialect get such a pattern only as text.
fn is_refused_regex(pattern: &str) -> bool {
    let is_reference = |it: &[u8]| matches!(it, [b'\\', b'1'..=b'9' | b'k' | b'b' | b'B']);
    pattern.as_bytes().windows(2).any(is_reference)
        || ["(?=", "(?!", "(?<"].iter().any(|it| pattern.contains(it))
}

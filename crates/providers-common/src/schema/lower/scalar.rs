//! Listed values, and every keyword that holds no schema.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Lower,
    types::{implied_types, keywords_of, type_of},
};
use crate::schema::{
    Dialect, Map,
    change::ChangeKind,
    merge,
    normal::TYPES,
    rules::{ANY_FORMAT, Enums},
    words,
};

/// Strings in one `enum` above which OpenAI counts their characters, and how many it takes.
const MANY_STRINGS: usize = 250;
const MANY_CHARS: usize = 15_000;
/// Repetitions and sizes above which a grammar is refused or slow.
const MAX_REPEAT: u64 = 256;
const MAX_GRAMMAR_NUMBER: f64 = 1e9;
/// Widths of numbers in programming languages: they say nothing to a model.
const WIDTHS: [&str; 12] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "uint", "int",
    "float", "double",
];

impl Lower<'_, '_> {
    /// `enum` and `const` as the dialect takes them. `None` if nothing is listed that is valid.
    pub(super) fn values(&mut self, schema: &mut Map, at: &str) -> Option<()> {
        if let Some(constant) = schema.get("const").cloned() {
            if let Some(Value::Array(values)) = schema.shift_remove("enum")
                && !values.contains(&constant)
            {
                return None;
            }
            let compound = constant.is_object() || constant.is_array();
            if !self.rules.constants || compound {
                schema.shift_remove("const");
                schema.insert("enum".to_owned(), json!([constant]));
                self.report(at, ChangeKind::Rewritten, "`const` is an `enum` of one");
            }
        }
        self.fit_types(schema, at);
        let Some(Value::Array(values)) = schema.get("enum").cloned() else {
            return Some(());
        };
        if values.is_empty() {
            return None;
        }
        let taken = match self.rules.enums {
            Enums::Any => true,
            Enums::Scalars => !values.iter().any(|it| it.is_object() || it.is_array()),
            Enums::StringsAndNumbers => values.iter().all(|it| it.is_string() || it.is_number()),
            Enums::Strings => values.iter().all(|it| it.is_string() || it.is_null()),
        };
        let chars = || {
            let strings = values.iter().filter_map(Value::as_str);
            strings.map(str::len).sum::<usize>()
        };
        let too_many = self.rules.max_enum_values < usize::MAX
            && (self.enum_values.saturating_add(values.len()) > self.rules.max_enum_values
                || (values.len() > MANY_STRINGS && chars() > MANY_CHARS));
        if !schema.contains_key("type")
            && let Some(types) = implied_types(schema)
        {
            schema.shift_insert(0, "type".to_owned(), types);
        }
        if taken && !too_many {
            self.enum_values += values.len();
            if self.rules.openapi {
                self.strings(schema, &values, at);
            }
            return Some(());
        }
        schema.shift_remove("enum");
        let all_booleans = values.len() == 2 && values.iter().all(Value::is_boolean);
        if all_booleans || values.iter().all(Value::is_null) {
            self.report(at, ChangeKind::Rewritten, "the type lists the same values");
        } else {
            self.tell(schema, "enum", &Value::Array(values), at);
        }
        Some(())
    }

    /// Null and the other values that are listed as two alternatives, where null cannot be listed.
    pub(super) fn without_null(&mut self, schema: &Map, at: &str) -> Option<Map> {
        if self.rules.enums != Enums::StringsAndNumbers {
            return None;
        }
        let values = schema.get("enum")?.as_array()?;
        let others: Vec<Value> = values.iter().filter(|it| !it.is_null()).cloned().collect();
        if others.len() == values.len() || others.is_empty() {
            return None;
        }
        let names = schema.get("type").map(merge::names).unwrap_or_default();
        let takes_null = names.is_empty() || names.contains(&"null");
        let mut either = Map::new();
        let mut rest = Map::new();
        for (keyword, value) in schema {
            let part = if merge::is_annotation(keyword) {
                &mut either
            } else {
                &mut rest
            };
            part.insert(keyword.clone(), value.clone());
        }
        rest.insert("enum".to_owned(), Value::Array(others));
        let names: Vec<&str> = names.into_iter().filter(|it| *it != "null").collect();
        match names.as_slice() {
            [] => rest.shift_remove("type"),
            [one] => rest.insert("type".to_owned(), json!(one)),
            several => rest.insert("type".to_owned(), json!(several)),
        };
        let mut arms = vec![Value::Object(rest)];
        if takes_null {
            arms.push(json!({"type": "null"}));
        }
        self.report(
            at,
            ChangeKind::Rewritten,
            "null is not listed but an alternative",
        );
        either.insert("anyOf".to_owned(), Value::Array(arms));
        Some(either)
    }

    /// What is listed and what the type says must go together.
    fn fit_types(&mut self, schema: &mut Map, at: &str) {
        let Some(types) = schema.get("type").cloned() else {
            return;
        };
        let names = merge::names(&types);
        let fits = |value: &Value| {
            let of = type_of(value);
            names.contains(&of) || (of == "integer" && names.contains(&"number"))
        };
        let fitting: Vec<Value> = match (schema.get("const"), schema.get("enum")) {
            (Some(constant), _) if fits(constant) => return,
            (Some(_), _) => Vec::new(),
            (None, Some(Value::Array(values))) => {
                let fitting: Vec<Value> = values.iter().filter(|it| fits(it)).cloned().collect();
                if fitting.len() == values.len() {
                    return;
                }
                fitting
            }
            _ => return,
        };
        if fitting.is_empty() {
            let message = "none of the values is of the type: the type is left out";
            self.report(at, ChangeKind::Invalid, message);
            schema.shift_remove("type");
        } else {
            self.report(
                at,
                ChangeKind::Rewritten,
                "only values of the type are listed",
            );
            schema.insert("enum".to_owned(), Value::Array(fitting));
        }
    }

    /// An `enum` of strings for OpenAPI: no null, no empty string.
    fn strings(&mut self, schema: &mut Map, values: &[Value], at: &str) {
        let mut kept: Vec<Value> = Vec::new();
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) if text.is_empty() => {
                    let message = "the empty string cannot be listed";
                    self.report(at, ChangeKind::Narrowed, message);
                }
                value => kept.push(value.clone()),
            }
        }
        if kept.is_empty() {
            schema.shift_remove("enum");
            self.tell(schema, "enum", &json!(values), at);
        } else {
            schema.insert("enum".to_owned(), Value::Array(kept));
        }
    }

    /// A string, a number, a boolean or null.
    pub(super) fn scalar(&mut self, schema: Map, at: &str) -> Map {
        self.keywords_with(schema, at, Map::new())
    }

    /// All keywords, where `structural` has those that hold schemas lowered already.
    pub(super) fn keywords_with(&mut self, schema: Map, at: &str, mut structural: Map) -> Map {
        let mut out = Map::new();
        let types = schema.get("type").cloned().unwrap_or_default();
        let names = merge::names(&types);
        let properties = structural.get("properties").and_then(Value::as_object);
        let keys: HashSet<String> = match properties {
            Some(properties) if schema.contains_key("propertyOrdering") => {
                properties.keys().cloned().collect()
            }
            _ => HashSet::new(),
        };
        for (keyword, value) in schema {
            if let Some(lowered) = structural.get_mut(&keyword) {
                out.insert(keyword, std::mem::take(lowered));
                continue;
            }
            match keyword.as_str() {
                "type" => self.types(&mut out, value, &names),
                "enum" | "const" => {
                    out.insert(keyword, value);
                }
                "format" => self.format(&mut out, value, &names, at),
                // Lowered, and not wanted.
                "properties" | "required" | "additionalProperties" | "items" | "prefixItems"
                    if !is_foreign(&keyword, &names) => {}
                _ if merge::is_annotation(&keyword) => {
                    self.annotation(&mut out, &keyword, &value, at);
                }
                _ if is_foreign(&keyword, &names) => {
                    let message = format!("`{keyword}` says nothing of this type: left out");
                    self.report(at, ChangeKind::Noise, message);
                }
                "propertyOrdering" if self.rules.keeps(&keyword) => {
                    let known = |name: &Value| name.as_str().is_some_and(|it| keys.contains(it));
                    if value.as_array().is_some_and(|it| it.iter().all(known)) {
                        out.insert(keyword, value);
                    } else {
                        let message = "`propertyOrdering` names what is no property: left out";
                        self.report(at, ChangeKind::Invalid, message);
                    }
                }
                _ if self.rules.keeps(&keyword) && self.is_taken(&keyword, &value, &names) => {
                    out.insert(keyword, value);
                }
                _ => self.tell(&mut out, &keyword, &value, at),
            }
        }
        for (keyword, lowered) in structural {
            if !out.contains_key(&keyword) {
                out.insert(keyword, lowered);
            }
        }
        out
    }

    fn types(&mut self, out: &mut Map, types: Value, names: &[&str]) {
        if !self.rules.openapi {
            out.insert("type".to_owned(), types);
            return;
        }
        let name = names.iter().find(|name| **name != "null");
        let upper = name.unwrap_or(&"string").to_ascii_uppercase();
        out.insert("type".to_owned(), json!(upper));
        if names.contains(&"null") {
            out.insert("nullable".to_owned(), json!(true));
        }
        if name.is_none() {
            words::append(out, "Always null.");
        }
    }

    fn format(&mut self, out: &mut Map, value: Value, names: &[&str], at: &str) {
        let format = value.as_str().unwrap_or_default();
        let taken = |formats: &[&str]| formats == ANY_FORMAT || formats.contains(&format);
        let is_number = names.iter().any(|it| matches!(*it, "number" | "integer"));
        let is_string = names.contains(&"string");
        let is_taken = if is_string {
            taken(self.rules.formats)
        } else {
            is_number && taken(self.rules.number_formats)
        };
        if is_taken && self.rules.keeps("format") {
            out.insert("format".to_owned(), value);
        } else if format.is_empty() || (!is_string && WIDTHS.contains(&format)) {
            self.report(at, ChangeKind::Noise, "`format` left out");
        } else {
            self.tell(out, "format", &value, at);
        }
    }

    /// Whether a keyword that the dialect has is taken with this value.
    fn is_taken(&self, keyword: &str, value: &Value, names: &[&str]) -> bool {
        let text = value.as_str().unwrap_or_default();
        match (self.rules.dialect, keyword) {
            (Dialect::AnthropicStrict, "minItems") => matches!(value.as_u64(), Some(0 | 1)),
            (Dialect::OpenAiStrict | Dialect::GeminiOpenApi, "pattern") => !has_lookaround(text),
            (Dialect::OllamaFormat, "pattern") => is_simple(text),
            (Dialect::OllamaFormat, "minLength" | "maxLength" | "minItems" | "maxItems") => {
                value.as_u64().is_some_and(|count| count <= MAX_REPEAT)
            }
            (
                Dialect::OllamaFormat,
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum",
            ) => {
                let whole = value
                    .as_f64()
                    .is_some_and(|it| it.fract() == 0.0 && it.abs() <= MAX_GRAMMAR_NUMBER);
                whole && names.contains(&"integer") && !names.contains(&"number")
            }
            _ => true,
        }
    }
}

/// Whether a keyword speaks only of types that the schema has not.
fn is_foreign(keyword: &str, names: &[&str]) -> bool {
    if names.is_empty() {
        return false;
    }
    let mut owners = TYPES
        .into_iter()
        .filter(|name| keywords_of(name).contains(&keyword))
        .peekable();
    owners.peek().is_some() && !owners.any(|owner| names.contains(&owner))
}

/// Whether a pattern looks around or back, which no automaton does.
fn has_lookaround(pattern: &str) -> bool {
    let back = pattern
        .as_bytes()
        .windows(2)
        .any(|it| matches!(it, [b'\\', b'1'..=b'9' | b'k' | b'b' | b'B']));
    back || ["(?=", "(?!", "(?<"].iter().any(|it| pattern.contains(it))
}

/// Whether llama.cpp's converter reads a pattern: anchored at both ends, and of characters,
/// classes and repetitions only.
fn is_simple(pattern: &str) -> bool {
    let inner = pattern
        .strip_prefix('^')
        .and_then(|rest| rest.strip_suffix('$'));
    let Some(inner) = inner else {
        return false;
    };
    if inner.is_empty() || inner.len() > 200 {
        return false;
    }
    let mut bytes = inner.bytes();
    let (mut in_class, mut class_len, mut repeatable, mut in_count) =
        (false, 0_usize, false, false);
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' if !in_class && !in_count => {
                in_class = true;
                class_len = 0;
            }
            b']' if in_class && class_len > 0 => {
                in_class = false;
                repeatable = true;
            }
            b'^' if in_class && class_len == 0 => {}
            b'{' if repeatable && !in_class => {
                in_count = true;
                repeatable = false;
            }
            b'}' if in_count => in_count = false,
            b'0'..=b'9' | b',' if in_count => {}
            _ if in_count => return false,
            b'+' | b'*' | b'?' if repeatable && !in_class => repeatable = false,
            b'\\' => match bytes.next() {
                Some(b'd' | b'w' | b's' | b'.' | b'-' | b'/') => {
                    repeatable = !in_class;
                    class_len += 1;
                }
                _ => return false,
            },
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b' ' | b'@' | b'#' | b':' | b'/' => {
                repeatable = !in_class;
                class_len += 1;
            }
            b'-' | b',' | b'.' | b'+' | b'%' if in_class => class_len += 1,
            b'-' | b',' => repeatable = true,
            _ => return false,
        }
    }
    !in_class && !in_count
}

//! What the API takes of JSON Schema: two subsets, one for declaring a tool and one to which it can
//! hold an output (`strict` tools, `output_config.format`).
//!
//! Facts: the structured-outputs page of the API's documentation as mirrored by
//! `@ai-sdk/anthropic` 3.0.138 (`sanitize-json-schema`, `supports-native-structured-output-schema`)
//! and the API's error messages as reported in public issue threads (claude-code#40075, camel#4171,
//! eliza#16499).

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Map, Value, json};

/// Refused at the root of a tool's schema: "`input_schema` does not support oneOf, allOf, or anyOf at
/// the top level".
const COMBINATIONS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// String formats that the output can be held to.
const FORMATS: [&str; 10] = [
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
];

/// Keywords that mean something and that the output cannot be held to.
const UNENFORCED: [&str; 27] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "prefixItems",
    "unevaluatedItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
    "$dynamicRef",
];

/// A schema as a tool's `input_schema`: its root is an object and combines nothing. The second value
/// is what had to be taken out of the root; the tool's description must say it instead.
pub(crate) fn input_schema(schema: &Value) -> (Cow<'_, Value>, Option<Value>) {
    let Value::Object(root) = schema else {
        return (Cow::Owned(json!({"type": "object"})), None);
    };
    let combines = |root: &Map<String, Value>| COMBINATIONS.iter().any(|it| root.contains_key(*it));
    let is_object = root.get("type").is_some_and(|it| it == "object");
    if is_object && !combines(root) {
        return (Cow::Borrowed(schema), None);
    }
    // `type` comes first: models read in the order given.
    let mut plain = Map::new();
    plain.insert("type".to_owned(), json!("object"));
    let mut taken_out = Map::new();
    for (keyword, value) in root {
        if COMBINATIONS.contains(&keyword.as_str()) {
            taken_out.insert(keyword.clone(), value.clone());
        } else if keyword != "type" {
            plain.insert(keyword.clone(), value.clone());
        }
    }
    let taken_out = (!taken_out.is_empty()).then_some(Value::Object(taken_out));
    (Cow::Owned(Value::Object(plain)), taken_out)
}

/// A schema that the output can be held to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Strict {
    /// The schema in the API's subset: every object closed, `oneOf` as `anyOf`, and without what is
    /// in `unenforced`.
    pub(crate) schema: Value,
    /// The keywords that were left out though they mean something, each once.
    pub(crate) unenforced: Vec<String>,
    /// Properties that may be missing; limited per request.
    pub(crate) optional: usize,
    /// Values of several types; limited per request.
    pub(crate) unions: usize,
}

/// The schema in the subset that an output can be held to; `None` if there is no such form: it is no
/// object at the root, refers to itself or to somewhere else, or has an object with free keys (which
/// closing would make empty) or a value of any kind.
pub(crate) fn strict(schema: &Value) -> Option<Strict> {
    if schema.get("type") != Some(&json!("object")) && schema.get("$ref").is_none() {
        return None;
    }
    let mut walk = Walk {
        root: schema,
        within: Vec::new(),
        finite: HashSet::new(),
        unenforced: Vec::new(),
        optional: 0,
        unions: 0,
    };
    let schema = walk.schema(schema)?;
    Some(Strict {
        schema,
        unenforced: walk.unenforced,
        optional: walk.optional,
        unions: walk.unions,
    })
}

struct Walk<'a> {
    root: &'a Value,
    /// The references being followed.
    within: Vec<&'a str>,
    /// References that are known to come to an end.
    finite: HashSet<&'a str>,
    unenforced: Vec<String>,
    optional: usize,
    unions: usize,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value) -> Option<Value> {
        let map = schema.as_object()?;
        let says = |name: &str| map.contains_key(name);
        if !["type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf"]
            .iter()
            .any(|it| says(it))
            && !says("properties")
        {
            return None;
        }
        let mut out = Map::new();
        for (keyword, value) in map {
            let (name, kept) = match keyword.as_str() {
                "$ref" => {
                    self.follow(value.as_str()?)?;
                    ("$ref", value.clone())
                }
                "properties" | "$defs" | "definitions" => {
                    (keyword.as_str(), self.named(value.as_object()?)?)
                }
                "items" => ("items", self.schema(value)?),
                "anyOf" | "oneOf" => {
                    self.unions = self.unions.saturating_add(1);
                    ("anyOf", self.listed(value.as_array()?)?)
                }
                "allOf" => ("allOf", self.listed(value.as_array()?)?),
                "type" => {
                    let several = value.as_array().is_some_and(|types| types.len() > 1);
                    self.unions = self.unions.saturating_add(usize::from(several));
                    ("type", value.clone())
                }
                "format" if !FORMATS.iter().any(|it| value == it) => {
                    self.drop(keyword);
                    continue;
                }
                "minItems" if !matches!(value.as_u64(), Some(0 | 1)) => {
                    self.drop(keyword);
                    continue;
                }
                "format" | "minItems" | "enum" | "const" | "default" | "title" | "description"
                | "required" | "$schema" | "$id" => (keyword.as_str(), value.clone()),
                // Only a closed object can be enforced; see below.
                "additionalProperties" if *value == json!(false) => continue,
                "additionalProperties" => return None,
                other => {
                    if UNENFORCED.contains(&other) {
                        self.drop(other);
                    }
                    continue;
                }
            };
            out.insert(name.to_owned(), kept);
        }
        if may_be_object(map) {
            self.close(map, &mut out)?;
        }
        Some(Value::Object(out))
    }

    /// Closes an object and counts what may be missing from it.
    fn close(&mut self, map: &'a Map<String, Value>, out: &mut Map<String, Value>) -> Option<()> {
        let properties = map.get("properties").and_then(Value::as_object);
        let is_closed = map.get("additionalProperties") == Some(&json!(false));
        if properties.is_none_or(Map::is_empty) && !is_closed {
            return None;
        }
        let required = map.get("required").and_then(Value::as_array);
        let is_required = |name: &String| {
            required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
        };
        let names = properties.into_iter().flat_map(Map::keys);
        let optional = names.filter(|name| !is_required(name)).count();
        self.optional = self.optional.saturating_add(optional);
        out.insert("additionalProperties".to_owned(), json!(false));
        Some(())
    }

    fn named(&mut self, schemas: &'a Map<String, Value>) -> Option<Value> {
        let pairs = schemas.iter();
        let pairs = pairs.map(|(name, schema)| Some((name.clone(), self.schema(schema)?)));
        pairs.collect::<Option<Map<_, _>>>().map(Value::Object)
    }

    fn listed(&mut self, schemas: &'a [Value]) -> Option<Value> {
        let list = schemas.iter().map(|schema| self.schema(schema));
        list.collect::<Option<Vec<_>>>().map(Value::Array)
    }

    /// Whether a reference comes to an end.
    fn follow(&mut self, reference: &'a str) -> Option<()> {
        if self.finite.contains(reference) {
            return Some(());
        }
        if self.within.contains(&reference) {
            return None;
        }
        let target = self.root.pointer(reference.strip_prefix('#')?)?;
        self.within.push(reference);
        let ends = self.follow_all(target);
        self.within.pop();
        ends?;
        self.finite.insert(reference);
        Some(())
    }

    fn follow_all(&mut self, node: &'a Value) -> Option<()> {
        match node {
            Value::Object(map) => map.iter().try_for_each(|(key, value)| match value {
                Value::String(reference) if key == "$ref" => self.follow(reference),
                // Definitions are followed where they are referred to.
                _ if key == "$defs" || key == "definitions" => Some(()),
                value => self.follow_all(value),
            }),
            Value::Array(list) => list.iter().try_for_each(|value| self.follow_all(value)),
            _ => Some(()),
        }
    }

    fn drop(&mut self, keyword: &str) {
        if !self.unenforced.iter().any(|known| known == keyword) {
            self.unenforced.push(keyword.to_owned());
        }
    }
}

fn may_be_object(map: &Map<String, Value>) -> bool {
    match map.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => map.contains_key("properties"),
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

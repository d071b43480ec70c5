//! Queries of JSON Schemas without validation.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Maximum number of schemas that are visited for one instance.
const MAX_SCHEMAS: usize = 256;

/// A schema and its location.
pub(super) struct Applied<'a> {
    /// JSON pointer into the document.
    pub(super) pointer: String,
    pub(super) schema: &'a Map<String, Value>,
}

/// Returns all schemas that apply to the same instance as the one at `pointer` of `root`: itself
/// and of its `$ref`, `allOf`, `anyOf`, `oneOf`, `if`, `then`, `else` and `dependentSchemas`,
/// recursively. References stay within the document. Each schema is returned once.
pub(super) fn applied<'a>(root: &'a Value, pointer: &str) -> Vec<Applied<'a>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![pointer.to_owned()];
    while let Some(pointer) = open.pop() {
        let schema = root.pointer(&pointer).and_then(Value::as_object);
        let (Some(schema), true) = (schema, found.len() < MAX_SCHEMAS) else {
            continue;
        };
        if !seen.insert(pointer.clone()) {
            continue;
        }
        for keyword in ["if", "then", "else"] {
            if schema.contains_key(keyword) {
                open.push(format!("{pointer}/{keyword}"));
            }
        }
        for keyword in ["oneOf", "anyOf", "allOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                open.extend((0..branches.len()).map(|n| format!("{pointer}/{keyword}/{n}")));
            }
        }
        if let Some(Value::Object(schemas)) = schema.get("dependentSchemas") {
            let pointers = schemas
                .keys()
                .map(|key| format!("{pointer}/dependentSchemas/{}", escaped(key)));
            open.extend(pointers);
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(target) {
            open.push(target);
        }
        found.push(Applied { pointer, schema });
    }
    found
}

/// Returns whether a schema at the top level of `root` names this property.
pub(super) fn names_property(root: &Value, name: &str) -> bool {
    applied(root, "").iter().any(|applied| {
        let property = applied.schema.get("properties").and_then(|p| p.get(name));
        property.is_some() || requires(applied.schema, name)
    })
}

pub(super) fn requires(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|key| key == name))
}

/// Returns the JSON pointer of a reference within the document: `#` or `#/…`.
pub(super) fn target(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    percent_decoded(fragment)
}

/// Escapes a key for a JSON pointer (RFC 6901).
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Returns the key of a step in a JSON pointer.
pub(super) fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_of_one_instance_are_returned_once() {
        let root = json!({
            "allOf": [{"$ref": "#/$defs/My%20Args"}, {"$ref": "#"}],
            "if": {"required": ["seen"]},
            "properties": {"nested": {"required": ["not this one"]}},
            "$defs": {
                "My Args": {
                    "properties": {"a/b": {"type": "string"}},
                    "anyOf": [{"$ref": "#/$defs/My Args"}, true],
                },
            },
        });
        let mut pointers: Vec<_> = applied(&root, "").into_iter().map(|a| a.pointer).collect();
        pointers.sort();
        assert_eq!(
            pointers,
            [
                "",
                "/$defs/My Args",
                "/$defs/My Args/anyOf/0",
                "/allOf/0",
                "/allOf/1",
                "/if"
            ]
        );
        assert!(names_property(&root, "a/b"));
        assert!(names_property(&root, "seen"));
        assert!(!names_property(&root, "not this one"));
    }

    #[test]
    fn references_outside_of_the_document_are_ignored() {
        assert_eq!(target("#/$defs/A").as_deref(), Some("/$defs/A"));
        assert_eq!(target("#").as_deref(), Some(""));
        for outside in [
            "https://example.invalid/a.json",
            "#anchor",
            "a.json#/b",
            "#/%zz",
            "#/%f",
        ] {
            assert_eq!(target(outside), None, "{outside}");
        }
    }
}

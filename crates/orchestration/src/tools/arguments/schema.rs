//! Lookups in JSON Schemas, such as whether a schema declares a property.

use serde_json::{Map, Value};

/// Maximum number of subschemas that [`collect_schemas_of_same_value`] returns. Further subschemas
/// are ignored.
const MAX_SCHEMAS: usize = 256;

/// A subschema of a tool's schema, and its location in the document.
pub(super) struct LocatedSubschema<'a> {
    /// JSON pointer of the subschema in the document.
    pub(super) pointer: String,
    pub(super) schema: &'a Map<String, Value>,
}

impl LocatedSubschema<'_> {
    /// Returns the JSON pointer of the schema of the property `name`, or `None` if this subschema
    /// does not declare the property.
    pub(super) fn find_property(&self, name: &str) -> Option<String> {
        self.schema.get("properties")?.get(name)?;
        Some(format!(
            "{}/properties/{}",
            self.pointer,
            escape_pointer_key(name)
        ))
    }

    pub(super) fn requires_property(&self, name: &str) -> bool {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|key| key == name))
    }
}

/// Returns all subschemas that apply to the same value as the subschema at the JSON pointer
/// `pointer`. These are the subschema itself and, recursively, the subschemas in its `$ref`,
/// `allOf`, `anyOf` and `oneOf`. References to other documents are ignored. Each subschema is
/// returned once.
pub(super) fn collect_schemas_of_same_value<'a>(
    root: &'a Value,
    pointer: &str,
) -> Vec<LocatedSubschema<'a>> {
    let mut found: Vec<LocatedSubschema<'a>> = Vec::new();
    let mut open = vec![pointer.to_owned()];
    while let Some(pointer) = open.pop() {
        let is_new = !found.iter().any(|known| known.pointer == pointer);
        let schema = root.pointer(&pointer).and_then(Value::as_object);
        let Some(schema) = schema.filter(|_| is_new && found.len() < MAX_SCHEMAS) else {
            continue;
        };
        for keyword in ["oneOf", "anyOf", "allOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                open.extend((0..branches.len()).map(|n| format!("{pointer}/{keyword}/{n}")));
            }
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            open.extend(reference.strip_prefix('#').map(str::to_owned));
        }
        found.push(LocatedSubschema { pointer, schema });
    }
    found
}

/// Returns whether the top level of a schema declares or requires the property `name`.
pub(super) fn declares_property(root: &Value, name: &str) -> bool {
    let mut schemas = collect_schemas_of_same_value(root, "").into_iter();
    schemas.any(|schema| schema.find_property(name).is_some() || schema.requires_property(name))
}

/// Escapes a key for a JSON pointer (RFC 6901).
pub(super) fn escape_pointer_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Returns the original key of a JSON pointer token (RFC 6901).
pub(super) fn unescape_pointer_key(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

//! Text that describes the constraints of a schema.

use serde_json::Value;

use super::keywords::{Map, SchemaMembers};

/// Maximum number of bytes of a JSON value in the text that describes a constraint.
const MAX_JSON_BYTES: usize = 1_000;
/// Maximum number of bytes of other content of the schema, such as a property name or a `$ref`, in
/// the text that describes a constraint.
const MAX_EXCERPT_BYTES: usize = 200;

/// Returns a value as JSON on one line, truncated to `MAX_JSON_BYTES`.
pub(super) fn compact_json(value: &Value) -> String {
    truncate_text(value.to_string(), MAX_JSON_BYTES)
}

/// Returns a text from the schema, such as a property name, truncated to `MAX_EXCERPT_BYTES`.
pub(super) fn text_excerpt(text: &str) -> String {
    truncate_text(text.to_owned(), MAX_EXCERPT_BYTES)
}

fn truncate_text(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push('…');
    }
    text
}

/// Appends a sentence to a schema's description, unless the description contains it.
pub(super) fn append_text(schema: &mut Map, sentence: &str) {
    let description = match schema.get_text("description") {
        Some(text) if !text.is_empty() => join_sentences(text, sentence),
        _ => sentence.to_owned(),
    };
    schema.set("description", description);
}

/// Inserts `description` before the existing description of a schema.
pub(super) fn prepend_text(schema: &mut Map, description: &Value) {
    let description = match (description.as_str(), schema.get_text("description")) {
        (Some(first), Some(rest)) if !rest.is_empty() && !first.is_empty() => {
            Value::String(join_sentences(first, rest))
        }
        _ => description.clone(),
    };
    schema.set("description", description);
}

fn join_sentences(text: &str, sentence: &str) -> String {
    if text.contains(sentence) {
        return text.to_owned();
    }
    let text = text.trim_end();
    let ends_sentence = text.ends_with(['.', '!', '?', ':', ';', ')']);
    format!("{text}{} {sentence}", if ends_sentence { "" } else { "." })
}

/// Describes a keyword of a schema as text. Returns `None` if the keyword has no meaning for a
/// model.
pub(super) fn describe_keyword(keyword: &str, value: &Value) -> Option<String> {
    let json = compact_json(value);
    let count = |unit: &str| match value.as_u64() {
        Some(1) => format!("{json} {unit}"),
        _ => format!("{json} {unit}s"),
    };
    let text = || value.as_str().map_or_else(|| json.clone(), text_excerpt);
    Some(match keyword {
        "minimum" => format!("At least {json}."),
        "maximum" => format!("At most {json}."),
        "exclusiveMinimum" => format!("More than {json}."),
        "exclusiveMaximum" => format!("Less than {json}."),
        "multipleOf" => format!("A multiple of {json}."),
        "minLength" | "minItems" | "minProperties" if value.as_u64() == Some(0) => return None,
        "minLength" => format!("At least {}.", count("character")),
        "maxLength" => format!("At most {}.", count("character")),
        "minItems" => format!("At least {}.", count("item")),
        "maxItems" => format!("At most {}.", count("item")),
        "minProperties" => format!("At least {}.", count("key")),
        "maxProperties" => format!("At most {}.", count("key")),
        "pattern" => format!("Matches the regular expression {}.", text()),
        "format" => format!("Format: {}.", text()),
        "default" if value.is_null() => return None,
        "default" => format!("Default: {json}."),
        "title" => format!("{}.", text().trim_end_matches('.')),
        "enum" => format!("One of: {}.", list_values(value)),
        "const" => format!("Always {json}."),
        "examples" if value.as_array().is_some_and(Vec::is_empty) => return None,
        "examples" => format!("Examples: {}.", list_values(value)),
        "uniqueItems" if *value == true => "No duplicate items.".to_owned(),
        "deprecated" if *value == true => "Deprecated.".to_owned(),
        "anyOf" => format!("Also matches at least one of: {}.", list_values(value)),
        "oneOf" => format!("Also matches exactly one of: {}.", list_values(value)),
        "allOf" => format!("Also matches all of: {}.", list_values(value)),
        "additionalProperties" => match value {
            Value::Bool(true) => "Additional keys are allowed.".to_owned(),
            Value::Bool(false) => "No additional keys.".to_owned(),
            _ => format!("Values of additional keys match {json}."),
        },
        "$ref" => format!("See {}.", text()),
        "prefixItems" => format!("In this order: {}.", list_values(value)),
        "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "patternProperties"
        | "contains"
        | "minContains"
        | "maxContains"
        | "dependentRequired"
        | "dependentSchemas"
        | "contentEncoding"
        | "contentMediaType"
        | "contentSchema"
        | "unevaluatedProperties"
        | "unevaluatedItems" => {
            format!("Also matches the JSON Schema {{\"{keyword}\":{json}}}.")
        }
        _ => return None,
    })
}

/// Returns the elements of an array as a text list. A list of more than `MAX_JSON_BYTES` bytes ends
/// with "and N more".
fn list_values(values: &Value) -> String {
    let Value::Array(values) = values else {
        return compact_json(values);
    };
    let mut text = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        if text.len() > MAX_JSON_BYTES {
            text.extend(["and ", &(values.len() - index).to_string(), " more"]);
            break;
        }
        text.push_str(&compact_json(value));
    }
    text
}

/// Describes an object schema by its keys and constant values, such as `{kind: "now", day?}`. A `?`
/// marks an optional key.
pub(super) fn object_summary(schema: &Map) -> String {
    let properties = schema.get_object("properties");
    let named = properties.into_iter().flatten();
    let mut keys: Vec<String> = named
        // Each key adds at least one byte to the text, so further keys would be truncated anyway.
        .take(MAX_JSON_BYTES)
        .map(|(name, property)| match property.get("const") {
            Some(value) => format!("{name}: {}", text_excerpt(&value.to_string())),
            None if schema.is_required(name) => name.clone(),
            None => format!("{name}?"),
        })
        .collect();
    let is_unnamed = |name: &&str| properties.is_none_or(|it| !it.contains_key(*name));
    keys.extend(
        schema
            .required_properties()
            .filter(is_unnamed)
            .map(str::to_owned),
    );
    truncate_text(format!("{{{}}}", keys.join(", ")), MAX_JSON_BYTES)
}

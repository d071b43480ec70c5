//! Constraints in words, for descriptions.

use serde_json::{Value, json};

use super::Map;

/// Bytes of JSON that a sentence quotes at most.
const MAX_QUOTE: usize = 1_000;
/// Bytes of a name or an address that a sentence quotes at most.
const MAX_EXCERPT: usize = 200;

/// JSON in one line, cut off where it is long.
pub(super) fn compact(value: &Value) -> String {
    cut(value.to_string(), MAX_QUOTE)
}

/// A text of the schema's author, cut off where it is long.
pub(super) fn excerpt(text: &str) -> String {
    cut(text.to_owned(), MAX_EXCERPT)
}

fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push('…');
    }
    text
}

/// Adds a sentence to a schema's description, once.
pub(super) fn append(schema: &mut Map, sentence: &str) {
    let said = match schema.get("description") {
        Some(Value::String(said)) if !said.is_empty() => joined(said, sentence),
        _ => sentence.to_owned(),
    };
    schema.insert("description".to_owned(), Value::String(said));
}

/// Puts a description before what is said already.
pub(super) fn prepend(schema: &mut Map, description: &Value) {
    let said = match (description.as_str(), schema.get("description")) {
        (Some(first), Some(Value::String(said))) if !said.is_empty() && !first.is_empty() => {
            Value::String(joined(first, said))
        }
        _ => description.clone(),
    };
    schema.insert("description".to_owned(), said);
}

fn joined(said: &str, sentence: &str) -> String {
    if said.contains(sentence) {
        return said.to_owned();
    }
    let said = said.trim_end();
    let stop = if said.ends_with(['.', '!', '?', ':', ';', ')']) {
        ""
    } else {
        "."
    };
    format!("{said}{stop} {sentence}")
}

/// A keyword in words. `None` if it says nothing.
pub(super) fn sentence(keyword: &str, value: &Value) -> Option<String> {
    let json = compact(value);
    let count = |one: &str, many: &str| {
        if value.as_u64() == Some(1) {
            one.to_owned()
        } else {
            many.to_owned()
        }
    };
    Some(match keyword {
        "minimum" => format!("At least {json}."),
        "maximum" => format!("At most {json}."),
        "exclusiveMinimum" => format!("More than {json}."),
        "exclusiveMaximum" => format!("Less than {json}."),
        "multipleOf" => format!("A multiple of {json}."),
        "minLength" | "minItems" | "minProperties" if value.as_u64() == Some(0) => return None,
        "minLength" => format!("At least {json} {}.", count("character", "characters")),
        "maxLength" => format!("At most {json} {}.", count("character", "characters")),
        "minItems" => format!("At least {json} {}.", count("item", "items")),
        "maxItems" => format!("At most {json} {}.", count("item", "items")),
        "minProperties" => format!("At least {json} {}.", count("key", "keys")),
        "maxProperties" => format!("At most {json} {}.", count("key", "keys")),
        "pattern" => format!("Matches the regular expression {}.", plain(value)),
        "format" => format!("Format: {}.", plain(value)),
        // The same as being left out.
        "default" if value.is_null() => return None,
        "default" => format!("Default: {json}."),
        "title" => format!("{}.", plain(value).trim_end_matches('.')),
        "enum" => format!("One of: {}.", listed(value)),
        "const" => format!("Always {json}."),
        "examples" if value.as_array().is_some_and(Vec::is_empty) => return None,
        "examples" => format!("Examples: {}.", listed(value)),
        "uniqueItems" if *value == json!(true) => "No item twice.".to_owned(),
        "deprecated" if *value == json!(true) => "Deprecated.".to_owned(),
        "contentEncoding" => format!("Encoded as {}.", plain(value)),
        "contentMediaType" => format!("Media type: {}.", plain(value)),
        "propertyNames" => format!("Each key matches the JSON Schema {json}."),
        "patternProperties" => format!("Values by the pattern of their keys: {json}."),
        "contains" => format!("Contains an item that matches the JSON Schema {json}."),
        "minContains" => format!("At least {json} such items."),
        "maxContains" => format!("At most {json} such items."),
        "not" => format!("Does not match the JSON Schema {json}."),
        "if" => format!("If it matches the JSON Schema {json}, the following holds."),
        "then" => format!("Then it also matches {json}."),
        "else" => format!("Else it also matches {json}."),
        "dependentRequired" => format!("Keys that need other keys: {json}."),
        "dependentSchemas" => format!("Keys that need the object to match a schema: {json}."),
        "anyOf" => format!("Also matches at least one of: {}.", listed(value)),
        "oneOf" => format!("Also matches exactly one of: {}.", listed(value)),
        "allOf" => format!("Also matches all of: {}.", listed(value)),
        "additionalProperties" if *value == json!(true) => "Further keys are allowed.".to_owned(),
        "additionalProperties" if *value == json!(false) => "No further keys.".to_owned(),
        "additionalProperties" => format!("Values of further keys match {json}."),
        "$ref" => format!("As in {}.", plain(value)),
        "contentSchema" => format!("The content matches the JSON Schema {json}."),
        "unevaluatedProperties" | "unevaluatedItems" if *value == json!(false) => {
            "Nothing further.".to_owned()
        }
        _ => return None,
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => excerpt(text),
        other => compact(other),
    }
}

/// Values one after the other, with "and N more" where they are many.
fn listed(values: &Value) -> String {
    let Value::Array(values) = values else {
        return compact(values);
    };
    let mut text = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        if text.len() > MAX_QUOTE {
            let more = (values.len() - index).to_string();
            text.extend(["and ", &more, " more"]);
            break;
        }
        text.push_str(&compact(value));
    }
    text
}

/// A condition on which names are there, as alternatives that say nothing else.
pub(super) fn alternatives_of_names(arms: &[Value]) -> Option<String> {
    let names = |arm: &Value| -> Option<String> {
        let arm = arm.as_object().filter(|arm| arm.len() == 1)?;
        let names = arm.get("required")?.as_array()?;
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    };
    let arms: Option<Vec<String>> = arms.iter().map(names).collect();
    arms.map(|arms| arms.join("; "))
}

/// An object by its keys, with the values of those that have only one: `{kind: "now", day?}`.
pub(super) fn form(schema: &Map) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
    let named = schema.get("properties").and_then(Value::as_object);
    let named = named.into_iter().flatten();
    let mut keys: Vec<String> = named
        // More than are quoted anyway.
        .take(MAX_QUOTE)
        .map(|(name, schema)| match schema.get("const") {
            Some(value) => format!("{name}: {}", excerpt(&value.to_string())),
            None if is_required(name) => name.clone(),
            None => format!("{name}?"),
        })
        .collect();
    let known = schema.get("properties").and_then(Value::as_object);
    let others = required.into_iter().flatten().filter_map(Value::as_str);
    keys.extend(
        others
            .filter(|name| known.is_none_or(|known| !known.contains_key(*name)))
            .map(str::to_owned),
    );
    cut(format!("{{{}}}", keys.join(", ")), MAX_QUOTE)
}

//! Checks a tool's arguments against its schema and says what is wrong with them in sentences that
//! name the argument and the way out.

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use rmcp::model::JsonObject;
use serde_json::Value;

use switchboard_domain::nearest::nearest;

/// Values longer than this are cut when a sentence quotes them.
const QUOTED: usize = 60;

/// Compiles a schema. `format` counts: "2026-02-30" is no `date`.
pub(crate) fn validator(schema: &JsonObject) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .should_validate_formats(true)
        .build(&Value::Object(schema.clone()))
}

/// Takes what clients send for something else as what they mean: `null` for an optional argument
/// that is left out (strict modes of some providers), `42.0` for the integer 42 (Python).
pub(crate) fn normalize(schema: &JsonObject, mut arguments: JsonObject) -> JsonObject {
    arguments.retain(|name, value| {
        !value.is_null() || property(schema, name).is_none() || is_required(schema, name)
    });
    for (name, value) in &mut arguments {
        if wants_integer(schema, name)
            && value.is_f64()
            && is_whole(value)
            && let Some(number) = value.as_f64()
            && let Ok(integer) = format!("{number:.0}").parse::<i64>()
        {
            *value = integer.into();
        }
    }
    arguments
}

/// One sentence for everything that is wrong.
pub(crate) fn faults(
    validator: &Validator,
    schema: &JsonObject,
    arguments: &JsonObject,
) -> Vec<String> {
    let too_large = arguments.iter().filter_map(|(name, value)| {
        let fits = value.as_i64().is_some() || !is_whole(value) || !wants_integer(schema, name);
        (!fits).then(|| format!("{name} is {value}, which is too large a number."))
    });
    let too_large: Vec<String> = too_large.collect();
    let arguments = Value::Object(arguments.clone());
    validator
        .iter_errors(&arguments)
        .map(|error| sentence(schema, &error))
        .chain(too_large)
        .collect()
}

/// Whether this is a number without a fraction, whatever its size.
fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn wants_integer(schema: &JsonObject, name: &str) -> bool {
    property(schema, name).is_some_and(|property| property["type"] == "integer")
}

fn sentence(schema: &JsonObject, error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let name = path.trim_start_matches('/').replace('/', ".");
    let value = error.instance();
    let property = property(schema, &name).unwrap_or(&Value::Null);
    match error.kind() {
        ValidationErrorKind::Required { property } => missing(schema, property),
        ValidationErrorKind::AdditionalProperties { unexpected } => unknown(schema, unexpected),
        ValidationErrorKind::Type { .. } if property["type"].is_string() => format!(
            "{name} must be {}, not {}.",
            with_article(property["type"].as_str().unwrap_or_default()),
            quoted(value)
        ),
        ValidationErrorKind::Enum { .. } => {
            let choices: Vec<&str> = property["enum"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            format!(
                "{name} is {}; it must be one of {}.",
                quoted(value),
                choices.join(", ")
            )
        }
        ValidationErrorKind::Minimum { .. } | ValidationErrorKind::Maximum { .. } => {
            format!("{name} is {value}; it must be {}.", range(property))
        }
        ValidationErrorKind::MinLength { limit: 1 } => {
            format!("{name} is empty.{}", described(property))
        }
        ValidationErrorKind::MaxLength { limit } => {
            let length = value.as_str().map_or(0, |text| text.chars().count());
            format!("{name} has {length} characters; at most {limit} are possible.")
        }
        ValidationErrorKind::Format { format } if format == "date" => format!(
            "{name} is {}, which is no date; write a day of the calendar as YYYY-MM-DD, such as \
             2026-01-31.",
            quoted(value)
        ),
        _ if name.is_empty() => format!("The arguments do not fit: {error}."),
        _ => format!("{name} does not fit: {error}."),
    }
}

fn missing(schema: &JsonObject, name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    let description = property(schema, name).map_or_else(String::new, described);
    format!("{name} is missing.{description}")
}

fn unknown(schema: &JsonObject, names: &[String]) -> String {
    let known = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().map(String::as_str).collect::<Vec<_>>())
        .unwrap_or_default();
    let sentences = names
        .iter()
        .map(|name| match nearest(name, known.iter().copied()) {
            Some(meant) => format!("There is no argument {name}; did you mean {meant}?"),
            None => format!("There is no argument {name}."),
        });
    let mut sentences: Vec<String> = sentences.collect();
    sentences.push(match known.as_slice() {
        [] => "It takes none.".to_owned(),
        [only] => format!("The only argument is {only}."),
        _ => format!("The arguments are {}.", known.join(", ")),
    });
    sentences.join(" ")
}

fn property<'a>(schema: &'a JsonObject, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn is_required(schema: &JsonObject, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|required| required.iter().any(|it| it == name))
}

fn described(property: &Value) -> String {
    property["description"]
        .as_str()
        .map_or_else(String::new, |text| format!(" It is: {text}"))
}

fn range(property: &Value) -> String {
    match (&property["minimum"], &property["maximum"]) {
        (Value::Null, maximum) => format!("{maximum} or less"),
        (minimum, Value::Null) => format!("{minimum} or more"),
        (minimum, maximum) => format!("from {minimum} to {maximum}"),
    }
}

fn with_article(kind: &str) -> String {
    match kind {
        "integer" | "array" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

fn quoted(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= QUOTED {
        return text;
    }
    let start: String = text.chars().take(QUOTED).collect();
    format!("{start}…")
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;

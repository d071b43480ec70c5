//! Checks a tool's arguments against its schema and says what is wrong with them in sentences that
//! name the argument and the way out.

use rmcp::model::JsonObject;
use serde_json::Value;

use switchboard_domain::{
    json_schema::{
        SchemaError, SchemaOptions, SchemaValidator, ValidationError, error::ValidationErrorKind,
    },
    nearest::nearest,
};

/// Values longer than this are cut when a sentence quotes them.
const QUOTED: usize = 60;

/// Compiles a schema. `format` counts: "2026-02-30" is no `date`.
pub(crate) fn validator(schema: &JsonObject) -> Result<SchemaValidator, SchemaError> {
    let options = SchemaOptions {
        assert_formats: Some(true),
        ..SchemaOptions::default()
    };
    SchemaValidator::compile_with(&Value::Object(schema.clone()), options)
}

/// Takes what clients send for something else as what they mean: `null` for an optional argument
/// that is left out (strict modes of some providers), `42.0` for the integer 42 (Python). Also inside
/// of objects and lists.
pub(crate) fn normalize(schema: &JsonObject, mut arguments: JsonObject) -> JsonObject {
    arguments.retain(|name, value| {
        !value.is_null() || property(schema, name).is_none() || is_required(schema, name)
    });
    for (name, value) in &mut arguments {
        if let Some(property) = property(schema, name) {
            normalize_value(property, value);
        }
    }
    arguments
}

fn normalize_value(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(schema) = schema.as_object() {
                *object = normalize(schema, std::mem::take(object));
            }
        }
        Value::Array(items) => {
            for item in items {
                normalize_value(&schema["items"], item);
            }
        }
        Value::Number(number) if schema["type"] == "integer" && number.is_f64() => {
            if is_whole(value)
                && let Some(number) = value.as_f64()
                && let Ok(integer) = format!("{number:.0}").parse::<i64>()
            {
                *value = integer.into();
            }
        }
        _ => {}
    }
}

/// One sentence for everything that is wrong.
pub(crate) fn faults(
    validator: &SchemaValidator,
    schema: &JsonObject,
    arguments: &JsonObject,
) -> Vec<String> {
    let too_large = arguments.iter().filter_map(|(name, value)| {
        let fits = value.as_i64().is_some() || !is_whole(value) || !wants_integer(schema, name);
        (!fits).then(|| format!("{name} is {value}, which is too large a number."))
    });
    let too_large: Vec<String> = too_large.collect();
    let arguments = Value::Object(arguments.clone());
    match validator.errors(&arguments) {
        Ok(errors) => {
            let sentences = errors.iter().map(|error| sentence(schema, error));
            sentences.chain(too_large).collect()
        }
        Err(error) => vec![format!("The arguments cannot be checked: {error}.")],
    }
}

/// Whether this is a number without a fraction, whatever its size.
fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn wants_integer(schema: &JsonObject, name: &str) -> bool {
    property(schema, name).is_some_and(|property| property["type"] == "integer")
}

fn sentence(schema: &JsonObject, error: &ValidationError<'_>) -> String {
    let place = Place::find(schema, error.instance_path().as_str());
    let (name, property) = (place.name.as_str(), place.schema);
    let value = error.instance();
    match error.kind() {
        ValidationErrorKind::Required { property } => missing(&place, property),
        ValidationErrorKind::AdditionalProperties { unexpected } => unknown(&place, unexpected),
        // What is secret stands in no message.
        _ if place.secret => format!("{name} does not fit: {}.", error.masked()),
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
        ValidationErrorKind::MinItems { limit: 1 } => {
            format!("{name} is an empty list.{}", described(property))
        }
        ValidationErrorKind::MaxLength { limit } => {
            let length = value.as_str().map_or(0, |text| text.chars().count());
            format!("{name} has {length} characters; at most {limit} are possible.")
        }
        ValidationErrorKind::MaxItems { limit } => {
            let length = value.as_array().map_or(0, Vec::len);
            format!("{name} has {length} items; at most {limit} are possible.")
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

/// Where in the arguments something is wrong.
struct Place<'a> {
    /// `nodes.0.id`; empty for the arguments as a whole.
    name: String,
    /// What the schema says of it; null where it says nothing.
    schema: &'a Value,
    /// What the schema says of its properties, if it is an object.
    object: Option<&'a JsonObject>,
    /// Whether it is, or is in, what the schema calls `writeOnly`.
    secret: bool,
}

impl<'a> Place<'a> {
    fn find(schema: &'a JsonObject, pointer: &str) -> Self {
        let mut place = Self {
            name: String::new(),
            schema: &Value::Null,
            object: Some(schema),
            secret: false,
        };
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let named = place.object.and_then(|object| property(object, &token));
            let next = named
                .or_else(|| place.schema.get("items"))
                .or_else(|| place.schema.get("additionalProperties"));
            place.schema = next.unwrap_or(&Value::Null);
            place.object = place.schema.as_object();
            place.secret |= place.schema["writeOnly"] == true;
            if !place.name.is_empty() {
                place.name.push('.');
            }
            place.name.push_str(&token);
        }
        place
    }

    /// The full name of a property in it.
    fn inside(&self, property: &str) -> String {
        if self.name.is_empty() {
            property.to_owned()
        } else {
            format!("{}.{property}", self.name)
        }
    }
}

fn missing(place: &Place<'_>, name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    let property = place.object.and_then(|object| property(object, name));
    let description = property.map_or_else(String::new, described);
    format!("{} is missing.{description}", place.inside(name))
}

fn unknown(place: &Place<'_>, names: &[String]) -> String {
    let known = place
        .object
        .and_then(|object| object.get("properties"))
        .and_then(Value::as_object)
        .map(|properties| properties.keys().map(String::as_str).collect::<Vec<_>>())
        .unwrap_or_default();
    let sentences = names.iter().map(|name| {
        let full = place.inside(name);
        match nearest(name, known.iter().copied()) {
            Some(meant) => format!("There is no argument {full}; did you mean {meant}?"),
            None => format!("There is no argument {full}."),
        }
    });
    let mut sentences: Vec<String> = sentences.collect();
    sentences.push(match (known.as_slice(), place.name.as_str()) {
        ([], "") => "It takes none.".to_owned(),
        ([only], "") => format!("The only argument is {only}."),
        (_, "") => format!("The arguments are {}.", known.join(", ")),
        (_, inside) => format!("What {inside} can have: {}.", known.join(", ")),
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

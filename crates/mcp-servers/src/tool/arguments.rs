//! Validation of tool arguments against the schema of the tool. Messages name the argument and a
//! correct value.

use rmcp::model::JsonObject;
use serde_json::Value;

use switchboard_domain::{
    json_schema::{
        SchemaError, SchemaOptions, SchemaValidator, ValidationError, error::ValidationErrorKind,
    },
    nearest::nearest,
};

/// Maximum length of an argument value quoted in an error message, in characters.
const MAX_QUOTED: usize = 60;

/// Compiles the schema of a tool's arguments. Formats are validated: "2026-02-30" is not a valid
/// `date`.
pub(crate) fn validator(schema: &JsonObject) -> Result<SchemaValidator, SchemaError> {
    let options = SchemaOptions {
        assert_formats: Some(true),
        ..SchemaOptions::default()
    };
    SchemaValidator::compile_with(&Value::Object(schema.clone()), options)
}

/// Converts equivalent spellings of arguments, at any depth. Removes `null` for optional arguments,
/// which strict modes of some providers send, and converts `42.0` to the integer 42.
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
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            let integer = whole.and_then(|number| format!("{number:.0}").parse::<i64>().ok());
            if let Some(integer) = integer {
                *value = integer.into();
            }
        }
        _ => {}
    }
}

/// Returns one message for each argument that violates the schema.
pub(crate) fn violations(
    validator: &SchemaValidator,
    schema: &JsonObject,
    arguments: &JsonObject,
) -> Vec<String> {
    let arguments = Value::Object(arguments.clone());
    match validator.errors(&arguments) {
        Ok(errors) => errors.iter().map(|error| sentence(schema, error)).collect(),
        Err(error) => vec![format!("The arguments cannot be checked: {error}.")],
    }
}

fn sentence(schema: &JsonObject, error: &ValidationError<'_>) -> String {
    let location = Location::find(schema, error.instance_path().as_str());
    let name = match location.name.as_str() {
        "" => "The arguments object",
        name => name,
    };
    let value = error.instance().to_string();
    match error.kind() {
        ValidationErrorKind::Required { property } => missing(&location, property),
        ValidationErrorKind::AdditionalProperties { unexpected } => unknown(&location, unexpected),
        // Secrets and long values are not repeated in an error message.
        _ if location.secret || value.chars().count() > MAX_QUOTED => {
            format!("{name} does not fit: {}.", error.masked())
        }
        // The message of the validator lists only some of the choices.
        ValidationErrorKind::Enum { .. } => {
            let choices = location.schema["enum"].as_array().into_iter().flatten();
            let choices: Vec<&str> = choices.filter_map(Value::as_str).collect();
            let choices = choices.join(", ");
            format!("{name} is {value}; it must be one of {choices}.")
        }
        _ => format!("{name} does not fit: {error}."),
    }
}

/// The location in the arguments where the schema is violated.
struct Location<'a> {
    /// Path of the argument, such as `nodes.0.id`. Empty for the whole arguments object.
    name: String,
    /// The subschema at the location, or null if there is none.
    schema: &'a Value,
    /// The subschema at the location, if it is an object.
    object: Option<&'a JsonObject>,
    /// Whether the schema marks the value or one of its parents as `writeOnly`.
    secret: bool,
}

impl<'a> Location<'a> {
    fn find(schema: &'a JsonObject, pointer: &str) -> Self {
        let mut location = Self {
            name: String::new(),
            schema: &Value::Null,
            object: Some(schema),
            secret: false,
        };
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let named = location.object.and_then(|object| property(object, &token));
            let next = named
                .or_else(|| location.schema.get("items"))
                .or_else(|| location.schema.get("additionalProperties"));
            location.schema = next.unwrap_or(&Value::Null);
            location.object = location.schema.as_object();
            location.secret |= location.schema["writeOnly"] == true;
            if !location.name.is_empty() {
                location.name.push('.');
            }
            location.name.push_str(&token);
        }
        location
    }

    /// Returns the full path of a property at this location.
    fn child_name(&self, property: &str) -> String {
        if self.name.is_empty() {
            property.to_owned()
        } else {
            format!("{}.{property}", self.name)
        }
    }
}

fn missing(location: &Location<'_>, name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    let property = location.object.and_then(|object| property(object, name));
    let description = property.map_or_else(String::new, described);
    format!("{} is missing.{description}", location.child_name(name))
}

fn unknown(location: &Location<'_>, names: &[String]) -> String {
    let known = location
        .object
        .and_then(|object| object.get("properties"))
        .and_then(Value::as_object)
        .map(|properties| properties.keys().map(String::as_str).collect::<Vec<_>>())
        .unwrap_or_default();
    let sentences = names.iter().map(|name| {
        let full = location.child_name(name);
        match nearest(name, known.iter().copied()) {
            Some(meant) => format!("Unknown argument {full}; did you mean {meant}?"),
            None => format!("Unknown argument {full}."),
        }
    });
    let mut sentences: Vec<String> = sentences.collect();
    sentences.push(match (known.as_slice(), location.name.as_str()) {
        ([], "") => "The tool has no arguments.".to_owned(),
        ([only], "") => format!("The only argument is {only}."),
        (_, "") => format!("The arguments are {}.", known.join(", ")),
        (_, location) => format!("The properties of {location} are {}.", known.join(", ")),
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

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;

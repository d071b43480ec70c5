//! Validation of tool arguments, with error messages for models.

use rmcp::model::JsonObject;
use serde_json::Value;
use switchboard_domain::{
    json_schema::{
        SchemaError, SchemaOptions, SchemaValidator, ValidationError, error::ValidationErrorKind,
    },
    similar_names::find_nearest,
};

/// Maximum length, in characters, of a value that an error message contains. Longer values are
/// omitted.
const MAX_QUOTED: usize = 60;

/// Compiles the input schema of a tool to a validator of arguments. The validator also checks
/// `format`, such as `date`.
pub(crate) fn compile_validator(schema: &Value) -> Result<SchemaValidator, SchemaError> {
    let options = SchemaOptions {
        assert_formats: Some(true),
        ..SchemaOptions::default()
    };
    SchemaValidator::compile_with_options(schema, options)
}

/// Converts arguments to the forms that the schema and the Rust types accept. Removes optional
/// arguments that are `null`, because many models send every argument. Converts whole numbers such
/// as `2.0` to integers, because `serde` does not accept `2.0` as an integer.
pub(crate) fn normalize_arguments(schema: &Value, mut arguments: JsonObject) -> JsonObject {
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
    let properties = &schema["properties"];
    arguments.retain(|name, value| {
        !value.is_null() || properties.get(name).is_none() || is_required(name)
    });
    for (name, value) in &mut arguments {
        normalize_value(&properties[name], value);
    }
    arguments
}

fn normalize_value(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => *object = normalize_arguments(schema, std::mem::take(object)),
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

/// Returns one sentence for the model for each violation of the schema. An empty list means that
/// the arguments are valid.
pub(crate) fn list_violations(
    validator: &SchemaValidator,
    schema: &Value,
    arguments: &JsonObject,
) -> Vec<String> {
    let arguments = Value::Object(arguments.clone());
    match validator.list_errors(&arguments) {
        Ok(errors) => errors
            .iter()
            .map(|error| describe_violation(schema, error))
            .collect(),
        Err(error) => vec![format!("The arguments cannot be checked: {error}.")],
    }
}

fn describe_violation(schema: &Value, error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().to_string();
    let (schema, is_secret) = find_subschema(schema, &pointer);
    let path = pointer.trim_start_matches('/').replace('/', ".");
    let name = match path.as_str() {
        "" => "The arguments object",
        path => path,
    };
    let value = error.instance().to_string();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            let description = schema["properties"][property]["description"].as_str();
            let description = description.map_or_else(String::new, |it| format!(" It is: {it}"));
            format!("{} is missing.{description}", child_name(&path, property))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            describe_unknown_arguments(schema, &path, unexpected)
        }
        // Secrets and long values are not repeated in an error message.
        _ if is_secret || value.chars().count() > MAX_QUOTED => {
            format!("{name} is invalid: {}.", error.masked())
        }
        // Lists all choices, because the message of the validator lists only some of them.
        ValidationErrorKind::Enum { .. } => {
            let choices = schema["enum"].as_array().into_iter().flatten();
            let choices: Vec<&str> = choices.filter_map(Value::as_str).collect();
            let choices = choices.join(", ");
            format!("{name} is {value}; it must be one of {choices}.")
        }
        _ => format!("{name} is invalid: {error}."),
    }
}

/// Returns the subschema for the argument value at a JSON pointer. Also returns whether the value
/// is secret, which means that its subschema or one above it has `writeOnly`.
fn find_subschema<'a>(schema: &'a Value, pointer: &str) -> (&'a Value, bool) {
    let names = pointer.split('/').skip(1);
    names.fold((schema, false), |(schema, is_secret), name| {
        let property = schema["properties"].get(name);
        let further = || {
            schema
                .get("items")
                .or_else(|| schema.get("additionalProperties"))
        };
        let schema = property.or_else(further).unwrap_or(&Value::Null);
        (schema, is_secret || schema["writeOnly"] == true)
    })
}

fn child_name(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Describes the unknown properties `names` of the object at `path` in the arguments, and lists the
/// properties that `schema` contains.
fn describe_unknown_arguments(schema: &Value, path: &str, names: &[String]) -> String {
    let known = schema["properties"].as_object().into_iter().flatten();
    let known: Vec<&str> = known.map(|(name, _)| name.as_str()).collect();
    let sentences = names.iter().map(|name| {
        let full = child_name(path, name);
        match find_nearest(name, known.iter().copied()) {
            Some(meant) => format!("Unknown argument {full}; did you mean {meant}?"),
            None => format!("Unknown argument {full}."),
        }
    });
    let mut sentences: Vec<String> = sentences.collect();
    sentences.push(match (known.as_slice(), path) {
        ([], "") => "The tool has no arguments.".to_owned(),
        ([only], "") => format!("The only argument is {only}."),
        (_, "") => format!("The arguments are {}.", known.join(", ")),
        (_, path) => format!("The properties of {path} are {}.", known.join(", ")),
    });
    sentences.join(" ")
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;

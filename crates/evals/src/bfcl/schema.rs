//! What a model reads of a function.

use serde_json::{Map, Value};

/// What the benchmark says of every function in these categories.
const PYTHON: &str = " Note that the provided function is in Python 3 syntax.";
/// What it says of every number that may have a fraction.
const FLOAT: &str = " This is a float type value.";

pub(super) fn description(text: &str) -> String {
    format!("{text}{PYTHON}")
}

/// JSON Schema of a function's parameters.
pub(super) fn input(parameters: &Map<String, Value>) -> Value {
    let mut schema = parameters.clone();
    schema.insert("type".to_owned(), Value::from("object"));
    parts(&mut schema);
    Value::Object(schema)
}

/// The types of what a schema is made of.
fn parts(schema: &mut Map<String, Value>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (_, property) in properties {
            let Value::Object(property) = property else {
                continue;
            };
            if property.get("type").and_then(Value::as_str) == Some("float") {
                let said = property.get("description").and_then(Value::as_str);
                let said = format!("{}{FLOAT}", said.unwrap_or_default());
                property.insert("description".to_owned(), Value::from(said.trim_start()));
            }
            if !property.contains_key("type") {
                property.insert("type".to_owned(), Value::from("string"));
            }
            mapped(property);
        }
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        mapped(items);
    }
}

fn mapped(schema: &mut Map<String, Value>) {
    if let Some(Value::String(name)) = schema.get_mut("type") {
        *name = json_type(name).to_owned();
    }
    parts(schema);
}

/// A type of Python, Java or of the benchmark as one of JSON Schema; of any other a text is wanted.
fn json_type(name: &str) -> &'static str {
    match name {
        "integer" => "integer",
        "float" | "number" | "double" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" | "tuple" => "array",
        "dict" | "object" => "object",
        _ => "string",
    }
}

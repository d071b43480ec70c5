//! Converts a function of the benchmark data to a tool description with a JSON Schema.

use serde_json::{Map, Value};

/// Sentence that the benchmark adds to the description of each function in Python categories.
pub(super) const PYTHON_NOTE: &str = " Note that the provided function is in Python 3 syntax.";
/// Sentence that the benchmark adds to the description of each float parameter.
const FLOAT: &str = " This is a float type value.";

/// Converts the parameters of a benchmark function to a JSON Schema.
pub(super) fn convert_parameters(parameters: &Map<String, Value>) -> Value {
    let mut schema = parameters.clone();
    schema.insert("type".to_owned(), Value::from("object"));
    convert_subschemas(&mut schema);
    Value::Object(schema)
}

/// Converts the type names in the `properties` and `items` of a schema to JSON Schema types. Adds
/// [`FLOAT`] to the description of float properties. A property without a type becomes a string.
fn convert_subschemas(schema: &mut Map<String, Value>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (_, property) in properties {
            let Value::Object(property) = property else {
                continue;
            };
            if property.get("type").and_then(Value::as_str) == Some("float") {
                let text = property.get("description").and_then(Value::as_str);
                let text = format!("{}{FLOAT}", text.unwrap_or_default());
                property.insert("description".to_owned(), Value::from(text.trim_start()));
            }
            if !property.contains_key("type") {
                property.insert("type".to_owned(), Value::from("string"));
            }
            convert_schema_type(property);
        }
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        convert_schema_type(items);
    }
}

fn convert_schema_type(schema: &mut Map<String, Value>) {
    if let Some(Value::String(name)) = schema.get_mut("type") {
        *name = json_type(name).to_owned();
    }
    convert_subschemas(schema);
}

/// Converts a type name of Python, Java or the benchmark to a JSON Schema type. Unknown names
/// become `string`.
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

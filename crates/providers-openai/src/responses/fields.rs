//! Reads fields of the JSON objects in a response.

use serde_json::Value;
use switchboard_domain::JsonObject;

/// Returns a string field of an object, or `None` if it is missing or empty.
pub(crate) fn text_field<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Returns the objects in an array field of an object.
pub(crate) fn object_array_field<'a>(object: &'a JsonObject, name: &str) -> Vec<&'a JsonObject> {
    let list = object.get(name).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect()
}

/// Returns the arguments of a call as JSON text. Some servers send an object instead of text.
pub(crate) fn arguments_as_json(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        object => object.to_string(),
    }
}

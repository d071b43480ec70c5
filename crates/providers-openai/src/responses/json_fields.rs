//! Reads fields of the JSON objects in a response.

use serde_json::Value;
use switchboard_domain::JsonObject;

/// Returns the string field `name` of a JSON object, or `None` if the field is missing, empty or
/// not a string.
pub(crate) fn text_field<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Returns the elements of the array field `name` that are objects. Returns an empty list if the
/// field is missing or not an array.
pub(crate) fn object_array_field<'a>(object: &'a JsonObject, name: &str) -> Vec<&'a JsonObject> {
    let list = object.get(name).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect()
}

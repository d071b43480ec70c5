//! Reads the fields of items.

use serde_json::Value;
use switchboard_domain::JsonObject;

/// Returns a string unless it is empty.
pub(crate) fn text<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Returns the objects of an array.
pub(crate) fn objects<'a>(object: &'a JsonObject, name: &str) -> Vec<&'a JsonObject> {
    let list = object.get(name).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect()
}

/// Returns arguments as JSON text. Some servers send an object instead of text.
pub(crate) fn json_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        object => object.to_string(),
    }
}

//! What is read out of an item as it came.

use serde_json::Value;
use switchboard_domain::JsonObject;

/// A text that is not empty.
pub(crate) fn text<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

pub(crate) fn objects<'a>(object: &'a JsonObject, name: &str) -> Vec<&'a JsonObject> {
    let list = object.get(name).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect()
}

/// Arguments are JSON as text; some servers send the object itself.
pub(crate) fn json_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        object => object.to_string(),
    }
}

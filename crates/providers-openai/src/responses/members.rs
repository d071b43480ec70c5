//! What is read out of an item as it came.

use serde_json::Value;
use switchboard_domain::JsonObject;

/// What a person may read of an item that is no message.
pub(crate) fn readable(item: &JsonObject) -> Option<String> {
    let within = |outer: &str, name: &str| item.get(outer)?.get(name)?.as_str();
    let listed = |value: Option<&Value>| {
        let list = value.and_then(Value::as_array)?;
        let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let found = match text(item, "type")? {
        "web_search_call" => {
            let action = item.get("action");
            let queries = action.and_then(|action| action.get("queries"));
            let one = || within("action", "query").or_else(|| within("action", "url"));
            listed(queries).or_else(|| one().map(str::to_owned))
        }
        "file_search_call" => listed(item.get("queries")),
        "code_interpreter_call" => text(item, "code").map(str::to_owned),
        "mcp_call" => {
            let name = text(item, "name")?;
            let input = text(item, "arguments").unwrap_or_default();
            let result = text(item, "output").or_else(|| text(item, "error"));
            let result = result.map(|result| format!("\n{result}"));
            Some(format!("{name}({input}){}", result.unwrap_or_default()))
        }
        "mcp_approval_request" => {
            let input = text(item, "arguments").unwrap_or_default();
            text(item, "name").map(|name| format!("{name}({input})"))
        }
        "custom_tool_call" => text(item, "input").map(str::to_owned),
        "image_generation_call" => text(item, "revised_prompt").map(str::to_owned),
        _ => None,
    };
    found.filter(|found| !found.is_empty())
}

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

//! What of another host's document is looked at, before variables are filled in.

use serde_json::{Map, Value};

use super::foreign;

/// Variables that only an editor can fill in, by asking a person, running a command of its own or
/// looking into its settings.
const OF_EDITORS: [&str; 3] = ["${input:", "${command:", "${config:"];

/// Leaves of a whole document only what [`from_document`](super::from_document) reads, so that
/// variables are filled in nowhere else: of the forms of other hosts, the servers that are not switched
/// off, and of these the keys that mean something here. Everything outside the servers goes.
///
/// `${input:…}`, `${command:…}` and `${config:…}` in them are written with a second `$` in front, as
/// text that looks like a variable and is none. `from_document` then says of that one server that it
/// cannot be used.
///
/// `mcp_servers`, our own form, stays as it is. What is no such document stays too.
pub fn select(document: &mut Value) {
    if let Value::Object(fields) = document {
        fields.retain(|key, value| match key.as_str() {
            "mcp_servers" | "mcpServers" | "servers" => true,
            "mcp" => match value {
                Value::Object(mcp) => {
                    mcp.retain(|key, _| key == "servers");
                    !mcp.is_empty()
                }
                _ => false,
            },
            _ => false,
        });
    }
    select_servers(document);
}

/// Like [`select`], for a document whose other keys are wanted too: only what is listed as servers in
/// the forms of other hosts is changed.
pub fn select_servers(document: &mut Value) {
    match document {
        Value::Object(fields) => {
            for key in ["mcpServers", "servers"] {
                if let Some(servers) = fields.get_mut(key) {
                    select_in(servers);
                }
            }
            let mcp = fields.get_mut("mcp").and_then(Value::as_object_mut);
            if let Some(servers) = mcp.and_then(|mcp| mcp.get_mut("servers")) {
                select_in(servers);
            }
        }
        Value::Array(_) => select_in(document),
        _ => {}
    }
}

fn select_in(servers: &mut Value) {
    match servers {
        Value::Object(map) => {
            map.retain(|_, server| !foreign::switched_off(server));
            map.values_mut().for_each(select_keys);
        }
        Value::Array(list) => {
            list.retain(|server| !foreign::switched_off(server));
            list.iter_mut().for_each(select_keys);
        }
        _ => {}
    }
}

fn select_keys(server: &mut Value) {
    if let Value::Object(fields) = server {
        fields.retain(|key, _| foreign::is_read(key));
        escape_all(fields);
    }
}

fn escape_all(fields: &mut Map<String, Value>) {
    fields.values_mut().for_each(escape);
}

fn escape(value: &mut Value) {
    match value {
        Value::String(text) => {
            for start in OF_EDITORS {
                let escaped = format!("${start}");
                if text.contains(start) {
                    // Those that are escaped already stay so.
                    *text = text.replace(&escaped, start).replace(start, &escaped);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(fields) => escape_all(fields),
        _ => {}
    }
}

/// The first variable of the kind that only an editor can fill in.
pub(super) fn editor_variable(text: &str) -> Option<&str> {
    let start = OF_EDITORS.iter().filter_map(|kind| text.find(kind)).min()?;
    let variable = &text[start..];
    let end = variable.find('}').map_or(variable.len(), |end| end + 1);
    Some(&variable[..end])
}

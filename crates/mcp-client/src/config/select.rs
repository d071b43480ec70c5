//! What of another host's document is looked at, before variables are filled in.

use serde_json::{Map, Value};

use crate::config::foreign;

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

/// Returns every server of a document that is in the form of another host.
pub fn foreign_servers_mut(document: &mut Value) -> Vec<&mut Value> {
    lists_mut(document)
        .into_iter()
        .flat_map(|servers| match servers {
            Value::Object(map) => map.values_mut().collect(),
            Value::Array(list) => list.iter_mut().collect(),
            _ => Vec::new(),
        })
        .collect()
}

/// Like [`select`], for a document whose other keys are wanted too: only what is listed as servers in
/// the forms of other hosts is changed.
pub fn select_servers(document: &mut Value) {
    lists_mut(document).into_iter().for_each(select_in);
}

/// Returns the places of a document where other hosts list servers.
fn lists_mut(document: &mut Value) -> Vec<&mut Value> {
    match document {
        Value::Object(fields) => fields
            .iter_mut()
            .filter_map(|(key, value)| match key.as_str() {
                "mcpServers" | "servers" => Some(value),
                "mcp" => value.get_mut("servers"),
                _ => None,
            })
            .collect(),
        Value::Array(_) => vec![document],
        _ => Vec::new(),
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
        // It is a command for a shell, which has variables of its own. That it is there is all that counts.
        if let Some(helper) = fields
            .get_mut(foreign::HEADERS_HELPER)
            .filter(|it| !it.is_null())
        {
            *helper = Value::Bool(true);
        }
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

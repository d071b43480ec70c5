//! Selection of the used parts of another host's document, before variables are substituted.

use serde_json::{Map, Value};

use crate::config::foreign;

/// Prefixes of variables that only an editor can substitute: input of a person, editor commands and
/// editor settings.
const EDITOR_VARIABLES: [&str; 3] = ["${input:", "${command:", "${config:"];

/// Removes everything from a document that [`from_document`](super::from_document) does not use, so
/// that variables are substituted only in used values. In the forms of other hosts it keeps the
/// known keys of servers that are not disabled.
///
/// Escapes `${input:…}`, `${command:…}` and `${config:…}` with a second `$`, so that they are not
/// substituted. `from_document` then marks the server as unusable.
///
/// Does not change `mcp_servers`, our own form, and other documents.
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

/// Returns every server entry of a document that is in the format of another host.
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

/// Works like [`select`], but keeps all keys outside of the server entries of other hosts.
pub fn select_servers(document: &mut Value) {
    lists_mut(document).into_iter().for_each(select_in);
}

/// Returns the maps and lists of servers that are in the formats of other hosts.
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
            map.retain(|_, server| !foreign::is_disabled(server));
            map.values_mut().for_each(select_keys);
        }
        Value::Array(list) => {
            list.retain(|server| !foreign::is_disabled(server));
            list.iter_mut().for_each(select_keys);
        }
        _ => {}
    }
}

fn select_keys(server: &mut Value) {
    if let Value::Object(fields) = server {
        fields.retain(|key, _| foreign::is_known_key(key));
        // The command of a headers helper contains shell variables. The command is removed, because
        // only its presence is used.
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
            for start in EDITOR_VARIABLES {
                let escaped = format!("${start}");
                if text.contains(start) {
                    // A variable that was already escaped must not be escaped twice.
                    *text = text.replace(&escaped, start).replace(start, &escaped);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(fields) => escape_all(fields),
        _ => {}
    }
}

/// Returns the first variable in a text that only an editor can substitute.
pub(super) fn editor_variable(text: &str) -> Option<&str> {
    let start = EDITOR_VARIABLES
        .iter()
        .filter_map(|kind| text.find(kind))
        .min()?;
    let variable = &text[start..];
    let end = variable.find('}').map_or(variable.len(), |end| end + 1);
    Some(&variable[..end])
}

//! Removal of unused parts from another MCP host's configuration, before variable substitution.

use serde_json::Value;

use crate::config::other_hosts;

/// Prefixes of variables that only an editor can substitute: user input, editor commands and editor
/// settings.
const EDITOR_VARIABLES: [&str; 3] = ["${input:", "${command:", "${config:"];

/// Removes everything that [`parse_config_document`](super::parse_config_document) does not use, so
/// that variables are substituted only in used values. In the formats of other hosts, disabled
/// servers and unknown keys are removed.
///
/// Escapes `${input:…}`, `${command:…}` and `${config:…}` with a second `$`, so that they are not
/// substituted. `parse_config_document` then returns an unusable server.
///
/// Does not change the value of `mcp_servers`, the key of the Switchboard format.
pub fn drop_unused_parts(document: &mut Value) {
    if let Value::Object(fields) = document {
        fields.retain(|key, value| match (key.as_str(), value) {
            ("mcp_servers" | "mcpServers" | "servers", _) => true,
            ("mcp", Value::Object(mcp)) => {
                mcp.retain(|key, _| key == "servers");
                !mcp.is_empty()
            }
            _ => false,
        });
    }
    prune_server_entries(document);
}

/// Returns every server entry of the document that is in the format of another MCP host.
pub fn other_host_servers_mut(document: &mut Value) -> Vec<&mut Value> {
    server_lists_mut(document)
        .into_iter()
        .flat_map(|servers| match servers {
            Value::Object(map) => map.values_mut().collect(),
            Value::Array(list) => list.iter_mut().collect(),
            _ => Vec::new(),
        })
        .collect()
}

/// Removes the unused parts of the server entries of a configuration document, as
/// [`drop_unused_parts`] does. Keeps all other keys of the document.
pub fn prune_server_entries(document: &mut Value) {
    server_lists_mut(document)
        .into_iter()
        .for_each(drop_disabled_servers);
}

/// Returns the maps and lists in the document that contain server entries of other MCP hosts.
fn server_lists_mut(document: &mut Value) -> Vec<&mut Value> {
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

fn drop_disabled_servers(servers: &mut Value) {
    match servers {
        Value::Object(map) => {
            map.retain(|_, server| !other_hosts::is_server_disabled(server));
            map.values_mut().for_each(drop_unknown_keys);
        }
        Value::Array(list) => {
            list.retain(|server| !other_hosts::is_server_disabled(server));
            list.iter_mut().for_each(drop_unknown_keys);
        }
        _ => {}
    }
}

fn drop_unknown_keys(server: &mut Value) {
    if let Value::Object(fields) = server {
        fields.retain(|key, _| other_hosts::is_known_key(key));
        // The command in `headersHelper` may contain shell variables, which must not be
        // substituted. Only the presence of the key is used, so `true` replaces the command.
        let helper = fields.get_mut(other_hosts::HEADERS_HELPER);
        if let Some(helper) = helper.filter(|helper| !helper.is_null()) {
            *helper = Value::Bool(true);
        }
        fields.values_mut().for_each(escape_editor_variables);
    }
}

fn escape_editor_variables(value: &mut Value) {
    match value {
        Value::String(text) => {
            for start in EDITOR_VARIABLES {
                let escaped = format!("${start}");
                if text.contains(start) {
                    // An escaped variable is unescaped first, so that it is not escaped twice.
                    *text = text.replace(&escaped, start).replace(start, &escaped);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(escape_editor_variables),
        Value::Object(fields) => fields.values_mut().for_each(escape_editor_variables),
        _ => {}
    }
}

/// Returns the first variable in a text that only an editor can substitute, such as `${input:x}`.
/// Returns `None` if the text contains no such variable.
pub(super) fn find_editor_variable(text: &str) -> Option<&str> {
    let start = EDITOR_VARIABLES
        .iter()
        .filter_map(|kind| text.find(kind))
        .min()?;
    let variable = &text[start..];
    let end = variable.find('}').map_or(variable.len(), |end| end + 1);
    Some(&variable[..end])
}

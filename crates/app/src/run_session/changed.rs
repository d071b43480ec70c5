//! Warnings about changed tool definitions.

use switchboard_mcp_client::McpHost;

use crate::terminal::{self, one_line};

/// Prints one warning for each server with changed tools.
pub(crate) fn warn(host: &McpHost) {
    for status in host.servers() {
        if let Some(text) = warning(&status.name, &status.changed_tools) {
            terminal::print_warning(&text);
        }
    }
}

/// Returns the warning about the changed tools of a server.
pub(crate) fn warning(server: &str, changed: &[String]) -> Option<String> {
    let names: Vec<String> = changed
        .iter()
        .map(|tool| format!("`{}`", one_line(tool, 64)))
        .collect();
    let have = match names.len() {
        0 => return None,
        1 => "has",
        _ => "have",
    };
    Some(format!(
        "{} of server `{server}` {have} changed since first seen: look at `switchboard tools list`, then \
         `switchboard tools accept {server}`",
        names.join(", ")
    ))
}

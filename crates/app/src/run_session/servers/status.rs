//! Formats the status of MCP servers and of their tools for the terminal.

use std::fmt::Write as _;

use serde_json::Value;
use switchboard_domain::ToolDefinition;
use switchboard_mcp_client::{McpHost, ServerState, ServerStatus};

use crate::terminal::{self, BAD, DOUBTFUL, FAINT, GOOD, STRONG, to_one_line};

/// Prints a warning for each server whose tool definitions have changed since an earlier run.
pub(crate) fn warn_of_changed_tools(host: &McpHost) {
    for status in host.server_statuses() {
        if let Some(text) = changed_tools_warning(&status.name, &status.changed_tools) {
            terminal::print_warning(&text);
        }
    }
}

/// Returns the message that a server does not accept tool calls, with its state and the reason.
pub(crate) fn describe_unavailable_server(status: &ServerStatus) -> String {
    let (name, state) = (&status.name, status.state.as_str());
    let reason = status.reason.as_ref().map(|reason| format!(": {reason}"));
    let reason = reason.unwrap_or_default();
    format!("server `{name}` is not available ({state}){reason}")
}

/// Returns the warning about a server's changed tools. `None` if no tool has changed.
pub(crate) fn changed_tools_warning(server: &str, changed: &[String]) -> Option<String> {
    let have = match changed.len() {
        0 => return None,
        1 => "has",
        _ => "have",
    };
    let names = changed
        .iter()
        .map(|tool| format!("`{}`", to_one_line(tool, 64)));
    let names: Vec<String> = names.collect();
    Some(format!(
        "{} of server `{server}` {have} changed since first seen: see `switchboard tools list`, \
         then `switchboard tools accept {server}`",
        names.join(", ")
    ))
}

/// Formats the state of every MCP server as text for the terminal.
pub(crate) fn format_server_statuses(statuses: &[ServerStatus]) -> String {
    let mut text = String::new();
    for status in statuses {
        let style = match status.state {
            ServerState::Ready => GOOD,
            ServerState::Starting | ServerState::Degraded | ServerState::Stopped => DOUBTFUL,
            _ => BAD,
        };
        let (name, state) = (to_one_line(&status.name, 64), status.state.as_str());
        let _ = write!(text, "{STRONG}{name}{STRONG:#}  {style}{state}{style:#}");
        if status.state.takes_calls() {
            let _ = write!(text, "  {} tools", status.tools);
            if status.app_tools > 0 {
                let _ = write!(text, " ({} more for its app pages)", status.app_tools);
            }
            if let Some(version) = &status.protocol_version {
                let _ = write!(text, "  MCP {}", to_one_line(version, 20));
            }
            if let Some(info) = &status.server_info {
                let info = format!("{} {}", info.name, info.version);
                let _ = write!(text, "  {}", to_one_line(&info, 60));
            }
        }
        let transport = to_one_line(&status.transport, 200);
        let _ = writeln!(text, "\n  {FAINT}{transport}{FAINT:#}");
        if let Some(reason) = &status.reason {
            let _ = writeln!(text, "  {}", to_one_line(reason, 400));
        }
        for warning in &status.warnings {
            let warning = to_one_line(warning, 200);
            let _ = writeln!(text, "  {DOUBTFUL}!{DOUBTFUL:#} {warning}");
        }
        if let Some(changed) = changed_tools_warning(&status.name, &status.changed_tools) {
            let changed = to_one_line(&changed, 400);
            let _ = writeln!(text, "  {DOUBTFUL}!{DOUBTFUL:#} {changed}");
        }
        if !status.state.takes_calls() {
            for line in &status.stderr_tail {
                let _ = writeln!(text, "  {FAINT}| {}{FAINT:#}", to_one_line(line, 200));
            }
        }
    }
    text
}

/// Returns the table row of a tool: its server, its name with parameters, and its description.
pub(crate) fn format_tool_row(tool: &ToolDefinition, is_changed: bool) -> [String; 3] {
    let origin = tool.origin.as_ref();
    let name = origin.map_or(&tool.name, |origin| &origin.tool);
    let mark = if is_changed { " changed" } else { "" };
    let parameters = format_parameters(&tool.input_schema);
    [
        to_one_line(origin.map_or("", |origin| &origin.server), 40),
        format!("{}({parameters}){mark}", to_one_line(name, 64)),
        to_one_line(&tool.description, 100),
    ]
}

/// Formats the parameter names in a tool's schema. Optional names end with a question mark.
fn format_parameters(schema: &Value) -> String {
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let names = properties.map(|(name, _)| {
        let mark = if is_required(name) { "" } else { "?" };
        format!("{}{mark}", to_one_line(name, 40))
    });
    names.collect::<Vec<_>>().join(", ")
}

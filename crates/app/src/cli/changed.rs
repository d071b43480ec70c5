//! Tools whose definitions are not what they were when they were first seen.

use anyhow::anyhow;
use switchboard_domain::{
    ToolHost as _,
    nearest::{did_you_mean, nearest},
};
use switchboard_mcp_client::McpHost;

use super::{Code, Failure, ListOutput, context, output};
use crate::terminal::{self, Screen, one_line};

/// Says which tools have changed, a line for each server, and what to do about it.
pub(crate) fn warn(host: &McpHost) {
    for status in host.servers() {
        if let Some(text) = warning(&status.name, &status.changed_tools) {
            terminal::say_warning(&text);
        }
    }
}

/// What there is to say about the changed tools of a server, by their own names.
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

/// Takes the tools of a server, or one of them, for what they are now.
pub(super) async fn accept(
    host: &McpHost,
    server: &str,
    tool: Option<&str>,
    form: ListOutput,
) -> Result<Code, Failure> {
    let screen = Screen::new(true);
    screen.wait_for(&format!("starting {server}"));
    let ready = context::ready(host, server).await;
    screen.hold_still();
    ready?;
    if let Some(tool) = tool {
        let catalog = host.tools().await;
        let origins = catalog.tools.iter().filter_map(|tool| tool.origin.as_ref());
        let own: Vec<&str> = origins.map(|origin| origin.tool.as_str()).collect();
        if !own.contains(&tool) {
            return Err(Failure::usage(anyhow!(
                "server `{server}` has no tool `{tool}`{}; it has: {}",
                did_you_mean(nearest(tool, own.iter().copied())),
                own.join(", ")
            )));
        }
    }
    let is_meant = |name: &str| tool.is_none_or(|tool| tool == name);
    let accepted = host
        .accept_tools(|change| is_meant(&change.tool))
        .map_err(Failure::run)?;
    match form {
        ListOutput::Json => output::pretty(&accepted),
        ListOutput::Text if accepted.is_empty() => {
            let none = match tool {
                Some(tool) => format!("{server}: {tool} has not changed"),
                None => format!("{server}: no tool has changed"),
            };
            output::lines(&none)
        }
        ListOutput::Text => {
            let lines: Vec<String> = accepted
                .iter()
                .map(|change| format!("{server}: {} is accepted", one_line(&change.tool, 64)))
                .collect();
            output::lines(&lines.join("\n"))
        }
    }
    .map_err(Failure::run)?;
    Ok(Code::Success)
}

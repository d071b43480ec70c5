//! `tools accept`: accepts changed tool definitions.

use anyhow::anyhow;
use switchboard_domain::{
    ToolHost as _,
    nearest::{did_you_mean, nearest},
};
use switchboard_mcp_client::McpHost;

use crate::{
    run_session::{
        context,
        failure::{Code, Failure},
    },
    terminal::{
        Screen, one_line,
        output::{self, ListOutput},
    },
};

/// Accepts the changed tools of a server, or one of them.
pub(crate) async fn accept(
    host: &McpHost,
    server: &str,
    tool: Option<&str>,
    form: ListOutput,
) -> Result<Code, Failure> {
    let screen = Screen::new(true);
    screen.show_progress(&format!("starting {server}"));
    let ready = context::ready(host, server).await;
    screen.pause();
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
    let accepted = host.accept_tools(|change| is_meant(&change.tool))?;
    output::print(form, &accepted, || match (accepted.as_slice(), tool) {
        ([], Some(tool)) => format!("{server}: {tool} has not changed"),
        ([], None) => format!("{server}: no tool has changed"),
        _ => {
            let lines = accepted.iter();
            let lines =
                lines.map(|change| format!("{server}: {} is accepted", one_line(&change.tool, 64)));
            lines.collect::<Vec<_>>().join("\n")
        }
    })?;
    Ok(Code::Success)
}

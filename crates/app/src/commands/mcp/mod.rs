//! Commands for MCP servers, and for their tools, resources and prompts.

mod feature_lists;
pub(super) mod mcp_server;
pub(super) mod prompts;
pub(super) mod resources;
pub(crate) mod servers;
pub(crate) mod tools;

use switchboard_mcp_client::McpHost;

use crate::{
    run_session::{
        context,
        failure::{Code, Failure},
        interrupts::Interrupts,
        servers::Servers,
    },
    terminal::Screen,
};

/// Starts MCP servers, waits for them, calls `work` and closes the servers. With `named`, starts
/// only this server and returns an error if it is not ready. The first interruption ends the wait
/// or `work`, and the exit code is [`Code::Interrupted`].
async fn run_with_servers(
    mut servers: Servers,
    named: Option<&str>,
    interrupts: &Interrupts,
    work: impl AsyncFnOnce(&McpHost) -> Result<Code, Failure>,
) -> Result<Code, Failure> {
    if let Some(name) = named {
        context::keep_only_named_server(&mut servers, name)?;
    }
    let host = context::start_servers(servers)?;
    let work = async {
        let screen = Screen::new(true);
        screen.show_progress(&format!("starting {}", named.unwrap_or("MCP servers")));
        host.wait_for_startup().await;
        drop(screen);
        if let Some(name) = named {
            context::check_server_ready(&host, name)?;
        }
        work(&host).await
    };
    let result = tokio::select! {
        result = Box::pin(work) => result,
        () = interrupts.wait_for_first_interruption() => Ok(Code::Interrupted),
    };
    context::close_servers(&host, interrupts).await;
    result
}

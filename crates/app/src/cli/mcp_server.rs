//! `mcp-server`: the bundled servers.

use std::{fmt::Write as _, net::SocketAddr, path::PathBuf};

use clap::Args;
use switchboard_mcp_servers::{ServerError, ServerOptions, bind_http, catalogue, serve_stdio};

use super::{Code, Failure, interrupt::Interrupts};
use crate::terminal;

/// Runs a bundled MCP server.
#[derive(Debug, Args)]
#[command(after_help = bundled())]
pub(super) struct McpServerArgs {
    /// Which one
    name: String,
    /// Serve streamable HTTP at this address (path /mcp) instead of standard input and output
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Keep the data in this file instead of in memory
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Accept requests to this host name too, not only to the loopback ones (with --http, repeatable)
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
}

pub(super) async fn run(args: McpServerArgs, interrupts: &Interrupts) -> Result<Code, Failure> {
    let mut options = ServerOptions::new();
    if let Some(data) = args.data {
        options = options.with_data(data);
    }
    for host in args.allow_host {
        options = options.with_allowed_host(host);
    }
    match args.http {
        None => serve_stdio(&args.name, options, interrupts.first())
            .await
            .map_err(failure)?,
        Some(address) => {
            let server = bind_http(&args.name, address, options)
                .await
                .map_err(failure)?;
            if !server.address().ip().is_loopback() {
                terminal::say_warning(&format!(
                    "everybody who reaches {} can use this server: it asks for no password",
                    server.address()
                ));
            }
            terminal::say(format_args!("{} listens at {}", args.name, server.url()));
            let interrupts = interrupts.clone();
            let stop = async move { interrupts.first().await };
            server.serve(stop).await.map_err(failure)?;
        }
    }
    Ok(Code::Success)
}

fn failure(error: ServerError) -> Failure {
    if error.is_usage() {
        Failure::usage(error)
    } else {
        Failure::run(error)
    }
}

fn bundled() -> String {
    let mut text = String::from("Bundled servers:");
    for server in catalogue() {
        let _ = write!(text, "\n  {}  {}", server.name, server.description);
    }
    text
}

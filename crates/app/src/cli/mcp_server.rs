//! `mcp-server`: the bundled servers.

use std::{fmt::Write as _, net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use switchboard_mcp_servers::{
    BteOptions, ServerError, ServerOptions, WorkspaceOptions, bind_http, catalogue, serve_stdio,
};

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
    /// Keep the data in this file instead of in memory; for `bte` the file of the `graph` that its
    /// results can be added to
    #[arg(long, value_name = "FILE", visible_alias = "database")]
    data: Option<PathBuf>,
    /// The TRAPI service that `bte` asks, such as `https://bte.transltr.io/v1`
    #[arg(long, value_name = "URL", env = "SWITCHBOARD_BTE_URL")]
    url: Option<String>,
    /// The name resolver that gives `bte` its tool for names, such as `https://name-lookup.transltr.io`
    #[arg(long, value_name = "URL", env = "SWITCHBOARD_NAME_RESOLVER_URL")]
    resolver_url: Option<String>,
    /// How long a call of a tool of `bte` may take
    #[arg(long, value_name = "SECONDS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    call_timeout: u64,
    /// Accept requests to this host name too, not only to the loopback ones (with --http, repeatable)
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of workspace")]
struct WorkspaceArgs {
    /// The folder to work in; nothing outside of it is reached
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
    /// Leave out the tools that change something or run a command
    #[arg(long, requires = "root", conflicts_with = "allow")]
    read_only: bool,
    /// A command that `compile` or `test_run` may run (repeatable): "cargo check", "npm test". One with
    /// `test` in it is for `test_run`; `compile:` or `test:` in front says which tool it is for. With
    /// {args} at its end the model may add names and paths, but no options
    #[arg(long, value_name = "COMMAND", requires = "root")]
    allow: Vec<String>,
    /// Treat files and folders of this name like any other, although it is hidden or usually holds
    /// secrets (repeatable): .github
    #[arg(long, value_name = "NAME", requires = "root")]
    allow_name: Vec<String>,
    /// A variable for the commands, besides harmless ones such as PATH (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]", requires = "root")]
    env: Vec<String>,
    /// How long a command may run [default: 600]
    #[arg(long, value_name = "SECONDS", requires = "root", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    command_timeout: Option<u64>,
    /// How large a file may be [default: 8]
    #[arg(long, value_name = "MIB", requires = "root", value_parser = clap::value_parser!(u64).range(1..=1024))]
    max_file_size: Option<u64>,
}

impl WorkspaceArgs {
    fn options(self) -> Option<WorkspaceOptions> {
        let mut options = WorkspaceOptions::new(self.root?).with_read_only(self.read_only);
        for command in self.allow {
            options = options.with_command(command);
        }
        for name in self.allow_name {
            options = options.with_allowed_name(name);
        }
        for variable in self.env {
            options = options.with_variable(variable);
        }
        if let Some(seconds) = self.command_timeout {
            options = options.with_command_timeout(Duration::from_secs(seconds));
        }
        if let Some(mebibytes) = self.max_file_size {
            options = options.with_max_file_bytes(mebibytes << 20);
        }
        Some(options)
    }
}

pub(super) async fn run(args: McpServerArgs, interrupts: &Interrupts) -> Result<Code, Failure> {
    let mut options = ServerOptions::new();
    if let Some(data) = args.data {
        options = options.with_data(data);
    }
    if let Some(url) = args.url {
        let timeout = Duration::from_secs(args.call_timeout);
        let mut bte = BteOptions::new(url).with_timeout(timeout);
        if let Some(resolver) = args.resolver_url {
            bte = bte.with_name_resolver(resolver);
        }
        options = options.with_bte(bte);
    }
    if let Some(workspace) = args.workspace.options() {
        if args.name != "workspace" {
            return Err(Failure::usage(anyhow::anyhow!(
                "`{}` takes no --root and what goes with it; `workspace` does",
                args.name
            )));
        }
        options = options.with_workspace(workspace);
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

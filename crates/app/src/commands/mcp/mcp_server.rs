//! Command `mcp-server`: runs a bundled MCP server.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use secrecy::SecretString;
use switchboard_mcp_servers::{
    AccessToken, BteOptions, MIN_TOKEN_LENGTH, ServerError, ServerOptions, WorkspaceOptions,
    bind_http, serve_stdio,
};

use crate::run_session::{
    context::Process,
    failure::{Code, Failure},
    servers::recipe_servers::{BTE_URL, NAME_RESOLVER_URL},
};
use crate::terminal;

/// Command-line arguments of `switchboard mcp-server`.
#[derive(Debug, Args)]
#[command(
    subcommand_value_name = "NAME",
    subcommand_help_heading = "Bundled servers"
)]
pub(crate) struct McpServerArgs {
    #[command(subcommand)]
    server: BundledServer,
    /// Serve streamable HTTP at this address (path /mcp) instead of standard input and output; an
    /// address other than loopback requires a token in the variable `SWITCHBOARD_TOKEN`, which
    /// clients send
    #[arg(long, value_name = "ADDR:PORT", global = true)]
    http: Option<SocketAddr>,
    /// Accept requests to this host name in addition to loopback names (with --http, repeatable)
    #[arg(long, value_name = "HOST", requires = "http", global = true)]
    allow_host: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum BundledServer {
    /// Customers of a fictional shop, their account values, and support tickets
    CustomerService(DataFileArgs),
    /// A knowledge graph for each conversation
    Graph(DataFileArgs),
    /// Biomedical knowledge from BTE or another TRAPI service
    Bte(BteServerArgs),
    /// Files and data of one folder, and commands that compile and test it
    Workspace(WorkspaceArgs),
}

#[derive(Debug, Args)]
struct DataFileArgs {
    /// Store the data in this file instead of in memory
    #[arg(long, value_name = "FILE", visible_alias = "database")]
    data: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct BteServerArgs {
    /// Base URL of the TRAPI service; default: `https://bte.transltr.io/v1`
    #[arg(long, value_name = "URL", env = BTE_URL)]
    url: Option<String>,
    /// URL of the name resolver; default, unless another service is set:
    /// `https://name-resolution-sri.renci.org`
    #[arg(long, value_name = "URL", env = NAME_RESOLVER_URL)]
    resolver_url: Option<String>,
    /// Answer from a small bundled data set if the service cannot be reached, and state this in
    /// the results
    #[arg(long)]
    sample_if_offline: bool,
    /// Add results to the graph by default
    #[arg(long, requires = "data")]
    add_to_graph: bool,
    /// Time limit of a tool call
    #[arg(
        long, value_name = "SECONDS", default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    call_timeout: u64,
    /// File of the server `graph` that receives added results
    #[arg(long, value_name = "FILE", visible_alias = "database")]
    data: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct WorkspaceArgs {
    /// Folder to work in; files outside it are not accessible
    #[arg(long, value_name = "FOLDER")]
    root: PathBuf,
    /// Remove the tools that change files or run commands
    #[arg(long, conflicts_with = "allow")]
    read_only: bool,
    /// Command that `compile` or `test_run` may run (repeatable): "cargo check", "npm test". A
    /// command with `test` in it is for `test_run`; the prefix `compile:` or `test:` selects the
    /// tool. With {args} at its end the model may add names and paths, but no options
    #[arg(long, value_name = "COMMAND")]
    allow: Vec<String>,
    /// Allow files and folders with this name, although they are hidden or usually contain secrets
    /// (repeatable): .github
    #[arg(long, value_name = "NAME")]
    allow_name: Vec<String>,
    /// Variable for the commands, in addition to harmless ones such as PATH (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Time limit of a command
    #[arg(
        long, value_name = "SECONDS", default_value_t = 600,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    command_timeout: u64,
    /// Maximum size of a file
    #[arg(
        long, value_name = "MIB", default_value_t = 8,
        value_parser = clap::value_parser!(u64).range(1..=1024)
    )]
    max_file_size: u64,
}

impl WorkspaceArgs {
    fn into_server_options(self) -> WorkspaceOptions {
        WorkspaceOptions {
            read_only: self.read_only,
            commands: self.allow,
            allowed_names: self.allow_name,
            environment: self.env,
            command_timeout: Duration::from_secs(self.command_timeout),
            max_file_bytes: self.max_file_size << 20,
            ..WorkspaceOptions::new(self.root)
        }
    }
}

impl BteServerArgs {
    fn into_server_options(self) -> BteOptions {
        BteOptions {
            timeout: Duration::from_secs(self.call_timeout),
            // The names of a private service are not sent to the public resolver.
            name_resolver: self.resolver_url.or_else(|| {
                let is_public = self.url.is_none();
                is_public.then(|| BteOptions::PUBLIC_NAME_RESOLVER.to_owned())
            }),
            sample_if_offline: self.sample_if_offline,
            add_to_graph: self.add_to_graph,
            ..BteOptions::new(
                self.url
                    .unwrap_or_else(|| BteOptions::PUBLIC_SERVICE.to_owned()),
            )
        }
    }
}

/// Environment variable with the access token that HTTP clients of a bundled server must send.
const TOKEN: &str = "SWITCHBOARD_TOKEN";

pub(crate) async fn execute(args: McpServerArgs, process: &Process<'_>) -> Result<Code, Failure> {
    let interrupts = process.interrupts;
    let options = ServerOptions::new();
    let (name, data, mut options) = match args.server {
        BundledServer::CustomerService(args) => ("customer-service", args.data, options),
        BundledServer::Graph(args) => ("graph", args.data, options),
        BundledServer::Bte(mut args) => (
            "bte",
            args.data.take(),
            options.with_bte(args.into_server_options()),
        ),
        BundledServer::Workspace(args) => (
            "workspace",
            None,
            options.with_workspace(args.into_server_options()),
        ),
    };
    if let Some(data) = data {
        options = options.with_data_file(data);
    }
    for host in args.allow_host {
        options = options.with_allowed_host(host);
    }
    let Some(address) = args.http else {
        let served = serve_stdio(name, options, interrupts.wait_for_first_interruption()).await;
        return served.map(|()| Code::Success).map_err(server_failure);
    };
    if let Some(token) = process.environment.get(TOKEN) {
        let token = AccessToken::new(&SecretString::from(token)).ok_or_else(|| {
            Failure::usage_error(anyhow!(
                "`{TOKEN}` must have at least {MIN_TOKEN_LENGTH} letters, digits or symbols, and \
                 no spaces. `openssl rand -hex 32` creates a token"
            ))
        })?;
        options = options.with_token(token);
    }
    let server = bind_http(name, address, options)
        .await
        .map_err(server_failure)?;
    terminal::print_line(format_args!("{name} is listening on {}", server.url()));
    let interrupts = interrupts.clone();
    let stop = async move { interrupts.wait_for_first_interruption().await };
    server.serve(stop).await.map_err(server_failure)?;
    Ok(Code::Success)
}

fn server_failure(error: ServerError) -> Failure {
    if error.is_usage_error() {
        Failure::usage_error(error)
    } else {
        Failure::runtime_error(error)
    }
}

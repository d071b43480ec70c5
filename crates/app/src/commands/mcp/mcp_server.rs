//! `mcp-server`: runs a bundled server.

use std::{fmt::Write as _, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::anyhow;
use clap::Args;
use secrecy::SecretString;
use switchboard_mcp_servers::{
    AccessToken, BteOptions, MIN_TOKEN_LENGTH, ServerError, ServerOptions, WorkspaceOptions,
    bind_http, catalogue, serve_stdio,
};

use crate::run_session::{
    failure::{Code, Failure},
    interrupts::Interrupts,
};
use crate::{config::environment::Environment, terminal};

/// Arguments of `mcp-server`.
#[derive(Debug, Args)]
#[command(after_help = bundled())]
pub(crate) struct McpServerArgs {
    /// Name of the server
    name: String,
    /// Serve streamable HTTP at this address (path /mcp) instead of standard input and output; an
    /// address other than loopback requires a token in the variable `SWITCHBOARD_TOKEN`, which
    /// clients send
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Store the data in this file instead of in memory; for `bte`, the file of the `graph` that
    /// its results can be added to
    #[arg(long, value_name = "FILE", visible_alias = "database")]
    data: Option<PathBuf>,
    /// Accept requests to this host name in addition to loopback names (with --http, repeatable)
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    #[command(flatten)]
    bte: BteArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of bte")]
struct BteArgs {
    /// Base URL of the TRAPI service, such as `https://bte.transltr.io/v1` (or the variable
    /// `SWITCHBOARD_BTE_URL`)
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// URL of the name resolver, such as `https://name-lookup.transltr.io` (or the variable
    /// `SWITCHBOARD_NAME_RESOLVER_URL`)
    #[arg(long, value_name = "URL")]
    resolver_url: Option<String>,
    /// Time limit of a tool call [default: 50]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    call_timeout: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of workspace")]
struct WorkspaceArgs {
    /// Folder to work in; files outside it are not accessible
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
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
    /// Time limit of a command [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    command_timeout: Option<u64>,
    /// Maximum size of a file [default: 8]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1024))]
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

impl BteArgs {
    /// Returns the options of the server, with defaults from variables. `None` without a service.
    fn options(self, environment: &Environment) -> Option<BteOptions> {
        let or_variable = |given: Option<String>, name| {
            given.or_else(|| environment.get(name).map(str::to_owned))
        };
        let timeout = Duration::from_secs(self.call_timeout.unwrap_or(50));
        let url = or_variable(self.url, BTE_URL)?;
        let options = BteOptions::new(url).with_timeout(timeout);
        Some(match or_variable(self.resolver_url, NAME_RESOLVER_URL) {
            Some(resolver) => options.with_name_resolver(resolver),
            None => options,
        })
    }
}

/// Variables of `--url` and `--resolver-url`. clap does not read them, because they would count as
/// given for other servers too.
pub(crate) const BTE_URL: &str = "SWITCHBOARD_BTE_URL";
pub(crate) const NAME_RESOLVER_URL: &str = "SWITCHBOARD_NAME_RESOLVER_URL";

/// The variable with the token of clients over HTTP.
const TOKEN: &str = "SWITCHBOARD_TOKEN";

const BTE: &str = "bte";
const WORKSPACE: &str = "workspace";

impl McpServerArgs {
    /// Returns the given options that only some servers accept, with the names of those servers.
    fn given(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        const WITH_DATA: &[&str] = &["customer-service", "graph", BTE];
        let Self {
            bte, workspace: it, ..
        } = self;
        let given = [
            ("--data", WITH_DATA, self.data.is_some()),
            ("--url", &[BTE], bte.url.is_some()),
            ("--resolver-url", &[BTE], bte.resolver_url.is_some()),
            ("--call-timeout", &[BTE], bte.call_timeout.is_some()),
            ("--root", &[WORKSPACE], it.root.is_some()),
            ("--read-only", &[WORKSPACE], it.read_only),
            ("--allow", &[WORKSPACE], !it.allow.is_empty()),
            ("--allow-name", &[WORKSPACE], !it.allow_name.is_empty()),
            ("--env", &[WORKSPACE], !it.env.is_empty()),
            (
                "--command-timeout",
                &[WORKSPACE],
                it.command_timeout.is_some(),
            ),
            ("--max-file-size", &[WORKSPACE], it.max_file_size.is_some()),
        ];
        let given = given.into_iter().filter(|(.., is_given)| *is_given);
        given.map(|(option, takers, _)| (option, takers))
    }

    /// Returns an error for an option without effect.
    fn check(&self) -> Result<(), Failure> {
        let name = self.name.as_str();
        // An unknown server gets a specific error.
        let is_known = catalogue().iter().any(|server| server.name == name);
        let misplaced = self
            .given()
            .find(|(_, takers)| is_known && !takers.contains(&name));
        match misplaced {
            None => Ok(()),
            Some((option, takers)) => Err(Failure::usage(anyhow!(
                "the server `{name}` takes no {option}; that is for {}",
                takers.join(", ")
            ))),
        }
    }
}

pub(crate) async fn run(
    args: McpServerArgs,
    environment: &Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    args.check()?;
    let mut options = ServerOptions::new();
    if let Some(data) = args.data {
        options = options.with_data(data);
    }
    if args.name == BTE
        && let Some(bte) = args.bte.options(environment)
    {
        options = options.with_bte(bte);
    }
    if let Some(workspace) = args.workspace.options() {
        options = options.with_workspace(workspace);
    }
    for host in args.allow_host {
        options = options.with_allowed_host(host);
    }
    if args.http.is_some()
        && let Some(token) = environment.get(TOKEN)
    {
        let token = AccessToken::new(&SecretString::from(token)).ok_or_else(|| {
            Failure::usage(anyhow!(
                "`{TOKEN}` is not a token of at least {MIN_TOKEN_LENGTH} letters, digits or \
                 signs, without \
                 spaces; `openssl rand -hex 32` makes one"
            ))
        })?;
        options = options.with_token(token);
    }
    match args.http {
        None => serve_stdio(&args.name, options, interrupts.first())
            .await
            .map_err(failure)?,
        Some(address) => {
            let server = bind_http(&args.name, address, options)
                .await
                .map_err(failure)?;
            terminal::print_line(format_args!("{} listens at {}", args.name, server.url()));
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
    let longest = catalogue().iter().map(|server| server.name.len()).max();
    let width = longest.unwrap_or(0);
    for server in catalogue() {
        let _ = write!(text, "\n  {:width$}  {}", server.name, server.description);
    }
    text
}

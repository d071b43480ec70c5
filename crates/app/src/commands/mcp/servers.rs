//! `servers`: state of MCP servers, and logins.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use switchboard_mcp_client::{ServerState, ServerStatus};

use super::login;
use crate::{
    config::environment::Environment,
    terminal::{self, BAD, DOUBTFUL, FAINT, GOOD, STRONG, Screen, one_line},
};
use crate::{
    run_session::{
        arguments::Global,
        changed,
        context::{self, Context},
        failure::{Code, Failure},
        interrupts::Interrupts,
    },
    terminal::output::{self, ListOutput},
};

/// Arguments of `servers`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    command: Option<ServersCommand>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Subcommand)]
enum ServersCommand {
    /// Log in to a server and save the tokens
    Login {
        /// Name of the server
        server: String,
        #[command(flatten)]
        global: Global,
    },
    /// Delete the tokens of a server
    Logout {
        /// Name of the server
        server: String,
        #[command(flatten)]
        global: Global,
    },
}

pub(crate) async fn run(
    args: ServersArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    match args.command {
        Some(ServersCommand::Login { server, global }) => {
            let servers = Context::load(&global, environment)?.servers()?;
            return login::login(&servers, &server, interrupts).await;
        }
        Some(ServersCommand::Logout { server, global }) => {
            let servers = Context::load(&global, environment)?.servers()?;
            return login::logout(&servers, &server, interrupts).await;
        }
        None => {}
    }
    let context = Context::load(&args.global, environment)?;
    let servers = context.servers()?;
    if servers.bundled {
        terminal::print_note("no server is configured, so the bundled one runs");
    }
    let host = context::start(servers)?;
    let screen = Screen::new(true);
    screen.show_progress("starting MCP servers");
    tokio::select! {
        () = host.settled() => {}
        () = interrupts.first() => {
            context::close(&host, interrupts).await;
            return Ok(Code::Interrupted);
        }
    }
    screen.pause();
    let statuses = host.servers();
    context::close(&host, interrupts).await;
    match args.output {
        ListOutput::Json => output::pretty(&statuses),
        ListOutput::Text if statuses.is_empty() => output::lines("no servers are configured"),
        ListOutput::Text => output::lines(&describe(&statuses)),
    }
    .map_err(Failure::run)?;
    let missing = statuses
        .iter()
        .any(|status| status.required && !status.state.takes_calls());
    Ok(if missing { Code::Failed } else { Code::Success })
}

/// Formats the state of every server.
pub(crate) fn describe(statuses: &[ServerStatus]) -> String {
    let mut text = String::new();
    for status in statuses {
        let style = match status.state {
            ServerState::Ready => GOOD,
            ServerState::Starting | ServerState::Degraded | ServerState::Stopped => DOUBTFUL,
            _ => BAD,
        };
        let _ = write!(
            text,
            "{STRONG}{}{STRONG:#}  {style}{}{style:#}",
            one_line(&status.name, 64),
            status.state.as_str()
        );
        if status.state.takes_calls() {
            let _ = write!(text, "  {} tools", status.tools);
            if status.app_tools > 0 {
                let _ = write!(text, " ({} more for its pages)", status.app_tools);
            }
            if let Some(version) = &status.protocol_version {
                let _ = write!(text, "  MCP {}", one_line(version, 20));
            }
            if let Some(info) = &status.server_info {
                let info = format!("{} {}", info.name, info.version);
                let _ = write!(text, "  {}", one_line(&info, 60));
            }
        }
        let _ = writeln!(
            text,
            "\n  {FAINT}{}{FAINT:#}",
            one_line(&status.transport, 200)
        );
        if let Some(reason) = &status.reason {
            let _ = writeln!(text, "  {}", one_line(reason, 400));
        }
        for warning in &status.warnings {
            let _ = writeln!(text, "  {DOUBTFUL}!{DOUBTFUL:#} {}", one_line(warning, 200));
        }
        if let Some(changed) = changed::warning(&status.name, &status.changed_tools) {
            let _ = writeln!(
                text,
                "  {DOUBTFUL}!{DOUBTFUL:#} {}",
                one_line(&changed, 400)
            );
        }
        if !status.state.takes_calls() {
            for line in &status.stderr_tail {
                let _ = writeln!(text, "  {FAINT}| {}{FAINT:#}", one_line(line, 200));
            }
        }
    }
    text
}

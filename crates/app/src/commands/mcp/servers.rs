//! `servers`: state of MCP servers, and logins.

use clap::{Args, Subcommand};

use super::login;
use crate::{
    config::environment::Environment,
    terminal::{self, Screen},
};
use crate::{
    run_session::{
        arguments::Global,
        context::{self, Context},
        failure::{Code, Failure},
        interrupts::Interrupts,
        server_status::describe,
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
    },
    /// Delete the tokens of a server
    Logout {
        /// Name of the server
        server: String,
    },
}

pub(crate) async fn run(
    args: ServersArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let servers = Context::load(&args.global, environment)?.servers()?;
    match args.command {
        Some(ServersCommand::Login { server }) => {
            return login::login(servers, &server, interrupts).await;
        }
        Some(ServersCommand::Logout { server }) => {
            return login::logout(servers, &server, interrupts).await;
        }
        None => {}
    }
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
    output::print(args.output, &statuses, || match statuses.as_slice() {
        [] => "no servers are configured".to_owned(),
        statuses => describe(statuses),
    })?;
    let missing = statuses
        .iter()
        .any(|status| status.required && !status.state.takes_calls());
    Ok(if missing { Code::Failed } else { Code::Success })
}

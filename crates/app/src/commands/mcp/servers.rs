//! Command `servers`: shows the state of MCP servers, and logs in to them.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use switchboard_mcp_client::{
    McpHost,
    auth::{self, AuthError, LoginInfo},
};

use super::run_with_servers;
use crate::{
    run_session::{
        arguments::GlobalArgs,
        context::{Context, Process, keep_only_named_server},
        failure::{Code, Failure},
        servers::{Servers, status::format_server_statuses},
    },
    terminal::{
        STRONG,
        output::{self, ListFormat},
        print_line, print_note, strip_control_characters, to_one_line,
    },
};

/// Command-line arguments of `switchboard servers`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    command: Option<ServersCommand>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListFormat,
    #[command(flatten)]
    global: GlobalArgs,
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

pub(crate) async fn execute(args: ServersArgs, process: Process<'_>) -> Result<Code, Failure> {
    let mut servers =
        Context::load_context(&args.global, process.environment)?.servers_to_start()?;
    let Some(command) = args.command else {
        if servers.bundled {
            print_note("no servers are configured; starting the bundled server");
        }
        let work = async |host: &McpHost| list_servers(host, args.output);
        return run_with_servers(servers, None, process.interrupts, work).await;
    };
    let (ServersCommand::Login { server: name } | ServersCommand::Logout { server: name }) =
        &command;
    keep_only_named_server(&mut servers, name)?;
    let work = async {
        match &command {
            ServersCommand::Login { server } => log_in(&servers, server).await,
            ServersCommand::Logout { server } => log_out(&servers, server).await,
        }
    };
    let text = tokio::select! {
        text = work => text.map_err(|error| match error {
            AuthError::NotHttp { .. } | AuthError::StaticHeader { .. } => {
                Failure::usage_error(error)
            }
            error => Failure::runtime_error(error),
        })?,
        () = process.interrupts.wait_for_first_interruption() => return Ok(Code::Interrupted),
    };
    output::print_lines(&text)?;
    Ok(Code::Success)
}

fn list_servers(host: &McpHost, form: ListFormat) -> Result<Code, Failure> {
    let statuses = host.server_statuses();
    output::print_json_or_text(form, &statuses, || match statuses.as_slice() {
        [] => "no servers are configured".to_owned(),
        statuses => format_server_statuses(statuses),
    })?;
    let mut statuses = statuses.iter();
    let is_missing = statuses.any(|status| status.required && !status.state.takes_calls());
    Ok(Code::failed_if(is_missing))
}

async fn log_in(servers: &Servers, name: &str) -> Result<String, AuthError> {
    let on_url = |url: &str| {
        print_line(format_args!(
            "Open this address in a browser to log in:\n\n  {STRONG}{}{STRONG:#}\n\nWaiting for \
             the login; press Ctrl-C to cancel.",
            strip_control_characters(url)
        ));
    };
    let info = auth::login(&servers.configs[0], &servers.options.auth, on_url).await?;
    Ok(format!("{name}: {}", describe_login(&info)))
}

async fn log_out(servers: &Servers, name: &str) -> Result<String, AuthError> {
    let had_tokens = auth::logout(&servers.configs[0], &servers.options.auth).await?;
    let text = if had_tokens {
        "logged out"
    } else {
        "not logged in"
    };
    Ok(format!("{name}: {text}"))
}

fn describe_login(info: &LoginInfo) -> String {
    let issuer = to_one_line(&info.issuer, 200);
    let client_id = to_one_line(&info.client_id, 200);
    let mut text = format!("logged in at {issuer} as {client_id}");
    if !info.scopes.is_empty() {
        let _ = write!(text, ", for {}", to_one_line(&info.scopes.join(" "), 400));
    }
    text.push_str(if info.renewable {
        "; it is renewed automatically"
    } else {
        "; it is not renewed"
    });
    text
}

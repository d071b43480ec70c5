//! The command line of `switchboard`: one module for each command.

mod ask;
mod doctor;
mod eval;
pub(crate) mod mcp;
mod models;
mod recipes;
mod runs;
mod serve;
mod sessions;

use std::time::Duration;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use serde::Serialize;
use switchboard_domain::redact::Redactor;

use crate::{
    chat::{self, ChatArgs},
    config::{Config, environment::Environment},
    observe,
    run_session::{
        context::Process,
        failure::{Code, Failure},
        interrupts::Interrupts,
    },
    terminal::{
        self,
        output::{self, ListFormat},
        table::format_table,
    },
};

/// Switchboard connects any language model to any tool.
#[derive(Debug, Parser)]
#[command(
    name = "switchboard",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 answered, 1 failed, 2 wrong usage or configuration, \
                  3 a limit was reached, 4 the run waits for your approval, 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer one question, with the tools of the MCP servers
    Ask(ask::AskArgs),
    /// Chat with a model and its tools (conversations are saved)
    Chat(Box<ChatArgs>),
    /// List, show, export, import or delete saved conversations
    Sessions(sessions::SessionsArgs),
    /// Serve the web page and the HTTP interface
    Serve(serve::ServeArgs),
    /// Evaluate how well models use tools: run scenarios, print a table, write a report
    Eval(Box<eval::EvalArgs>),
    /// List, resume and analyse runs
    Runs(runs::RunsArgs),
    /// List the tools of the MCP servers, or call one
    Tools(mcp::tools::ToolsArgs),
    /// List or read MCP resources
    Resources(mcp::resources::ResourcesArgs),
    /// List or get MCP prompts
    Prompts(mcp::prompts::PromptsArgs),
    /// Show the state of every MCP server, or log in to one
    Servers(mcp::servers::ServersArgs),
    /// Show what is configured, reachable and missing, with a remedy for each problem
    Doctor(doctor::DoctorArgs),
    /// List available models
    Models(models::ModelsArgs),
    /// List recipes, or show one
    Recipes(recipes::RecipesArgs),
    /// Run a bundled MCP server on standard input and output, or over HTTP
    McpServer(mcp::mcp_server::McpServerArgs),
}

/// Runs the command that the command line names, and returns the exit code of the process.
pub fn main() -> Code {
    let matches = match ignore_empty_variables(Cli::command()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // The error is ignored: standard output or standard error is closed, so the message
            // cannot be printed.
            let _ = error.print();
            return if error.use_stderr() {
                Code::Usage
            } else {
                Code::Success
            };
        }
    };
    let parsed = Cli::from_arg_matches(&matches).map_err(Failure::usage_error);
    match parsed.and_then(start_runtime) {
        Ok(code) => code,
        // The reader of standard output has exited, as in `switchboard tools list | head -1`. This
        // is not an error.
        Err(failure) if failure.is_broken_pipe() => Code::Success,
        Err(failure) => {
            terminal::print_error(&failure.error);
            failure.code
        }
    }
}

/// Makes clap treat an environment variable with an empty value as not set.
fn ignore_empty_variables(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let value = arg.get_env().and_then(std::env::var_os);
            if value.is_some_and(|value| value.is_empty()) {
                arg.env(None::<&'static str>)
            } else {
                arg
            }
        })
        .mut_subcommands(ignore_empty_variables)
}

/// Time limit for stopping the Tokio runtime at the end of the process. Without the limit, a
/// blocked read of standard input would prevent the exit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

fn start_runtime(cli: Cli) -> Result<Code, Failure> {
    let environment = Environment::from_process()
        .context("failed to read the working directory")
        .map_err(Failure::usage_error)?;
    // At least two worker threads, because signals must be received while one thread is blocked.
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get().max(2));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .context("failed to start the runtime")
        .map_err(Failure::runtime_error)?;
    let result = runtime.block_on(run_command(cli, environment));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

async fn run_command(cli: Cli, environment: Environment) -> Result<Code, Failure> {
    let interrupts = Interrupts::listen_for_signals()
        .context("failed to listen for signals")
        .map_err(Failure::runtime_error)?;
    // The command `serve` exports its last spans itself, within its own time limit for the
    // shutdown.
    let exports_spans = matches!(cli.command, Command::Serve(_));
    let process = Process {
        environment,
        interrupts: &interrupts,
    };
    let result = Box::pin(dispatch_command(cli.command, process)).await;
    if !exports_spans {
        observe::finish_span_export().await;
    }
    result
}

async fn dispatch_command(command: Command, process: Process<'_>) -> Result<Code, Failure> {
    match command {
        Command::Ask(args) => ask::execute(args, process).await,
        Command::Chat(args) => Box::pin(chat::run_chat(*args, process)).await,
        Command::Sessions(args) => sessions::execute(args, process.environment).await,
        Command::Serve(args) => serve::execute(args, process).await,
        Command::Eval(args) => eval::execute(*args, process).await,
        Command::Runs(args) => runs::execute(args, process).await,
        Command::Tools(args) => mcp::tools::execute(args, process).await,
        Command::Resources(args) => mcp::resources::execute(args, process).await,
        Command::Prompts(args) => mcp::prompts::execute(args, process).await,
        Command::Servers(args) => mcp::servers::execute(args, process).await,
        Command::Doctor(args) => doctor::execute(args, process).await,
        Command::Models(args) => models::execute(args, process).await,
        Command::Recipes(args) => recipes::execute(&args, &process.environment),
        Command::McpServer(args) => {
            // `mcp-server` reads no configuration file, so no configured secrets are redacted.
            let live = Redactor::default();
            observe::start_observability(&Config::default(), &process.environment, &live)
                .map_err(Failure::usage_error)?;
            mcp::mcp_server::execute(args, &process).await
        }
    }
}

/// Prints items as JSON or as a table. For an empty table, prints the text `none` as
/// a note, unless `none` is empty.
fn print_table<T: Serialize, const N: usize>(
    form: ListFormat,
    items: &[T],
    none: &str,
    row: impl Fn(&T) -> [String; N],
) -> Result<Code, Failure> {
    if form == ListFormat::Text && items.is_empty() && !none.is_empty() {
        terminal::print_note(none);
        return Ok(Code::Success);
    }
    let rows = || items.iter().map(row).collect::<Vec<_>>();
    output::print_json_or_text(form, &items, || format_table(&rows()))?;
    Ok(Code::Success)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}

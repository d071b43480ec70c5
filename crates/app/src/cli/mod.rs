//! The command line.

pub(crate) mod agent;
pub(crate) mod ask;
pub(crate) mod changed;
mod chat;
pub(crate) mod context;
mod deferred;
mod doctor;
mod eval;
mod failure;
pub(crate) mod interrupt;
mod login;
mod mcp_server;
mod models;
mod offers;
pub(crate) mod output;
mod piped;
mod prompts;
mod recipes;
mod resources;
mod runs;
mod serve;
pub(crate) mod servers;
mod sessions;
mod stats;
pub(crate) mod table;
mod template;
pub(crate) mod tools;
pub(crate) mod unmatched;

use std::{path::PathBuf, time::Duration};

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue},
};
use switchboard_orchestration::ApprovalPolicy;
use tokio::runtime::{Builder, Runtime};

use crate::{environment::Environment, observe, terminal};
use deferred::Deferred;
pub use failure::{Code, Failure};
use interrupt::Interrupts;

/// Switchboard connects any language model to any tool.
#[derive(Debug, Parser)]
#[command(
    name = "switchboard",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 answered, 1 failed, 2 wrong usage or configuration, \
                  3 a limit was reached, 4 the run waits for your word, 130 interrupted."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Where the configuration of a command is read from.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Read this file instead of the project's switchboard.yaml (.toml, .json)
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "SWITCHBOARD_CONFIG",
        hide_env_values = true
    )]
    config: Option<PathBuf>,
    /// Add the MCP servers that this file lists, in the form of any known host (repeatable)
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "SWITCHBOARD_MCP_CONFIG",
        hide_env_values = true
    )]
    mcp_config: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer one question, with the tools of the MCP servers
    Ask(Deferred<ask::AskArgs>),
    /// Talk with a model and its tools, in a conversation that is kept
    Chat(Deferred<chat::ChatArgs>),
    /// List the conversations that are kept, show, export, import or delete them
    Sessions(Deferred<sessions::SessionsArgs>),
    /// Serve the web page and the HTTP interface
    Serve(Deferred<serve::ServeArgs>),
    /// Measure how well models use tools: run scenarios, print the table, write a report
    Eval(Deferred<Box<eval::EvalArgs>>),
    /// Show runs that wait for your word, go on with one, or count what runs did
    Runs(Deferred<runs::RunsArgs>),
    /// List the tools that the MCP servers offer, or call one by hand
    Tools(Deferred<tools::ToolsArgs>),
    /// List what the MCP servers let read, or read it
    Resources(Deferred<resources::ResourcesArgs>),
    /// List the prompts that the MCP servers have written, or get one
    Prompts(Deferred<prompts::PromptsArgs>),
    /// Show the state of every MCP server, or log in to one
    Servers(Deferred<servers::ServersArgs>),
    /// Show what is configured, reachable and missing, and what to do about it
    Doctor(Deferred<doctor::DoctorArgs>),
    /// List the models that can be named, and what is known of them
    Models(Deferred<models::ModelsArgs>),
    /// List the recipes that can be named, or show one
    Recipes(Deferred<recipes::RecipesArgs>),
    /// Run a bundled MCP server on standard input and output, or over HTTP
    McpServer(Deferred<mcp_server::McpServerArgs>),
}

/// The form of an answer on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum AskOutput {
    /// The answer as it comes
    #[default]
    Text,
    /// One object at the end
    Json,
    /// Every event as one line
    Jsonl,
}

/// The form of a list on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ListOutput {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Which tool calls need a person's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask before a tool that does not say it is read-only
    Ask,
    /// Every configured tool may run
    All,
    /// Run only tools that say they are read-only
    None,
    /// Stop where you would be asked and store the run; `switchboard runs resume` goes on with it
    Later,
}

impl From<Approve> for ApprovalPolicy {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask | Approve::Later => Self::Ask,
            Approve::All => Self::All,
            Approve::None => Self::None,
        }
    }
}

/// Runs the program, and says with which code it ends.
pub fn main() -> Code {
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return said(error),
    };
    let parsed = Cli::from_arg_matches(&matches).map_err(Failure::usage);
    match parsed.and_then(start) {
        Ok(code) => code,
        // `switchboard tools list | head -1` has what it wanted.
        Err(failure) if failure.is_broken_pipe() => Code::Success,
        Err(failure) => {
            terminal::say_error(&failure.error);
            failure.code
        }
    }
}

/// Says, in clap's own words, the help or the version that was asked for, or what is wrong with the command line.
fn said(error: clap::Error) -> Code {
    let (error, code) = if error.use_stderr() {
        (with_variable(error), Code::Usage)
    } else {
        (error, Code::Success)
    };
    // Nobody is left to be told that nobody reads it.
    let _ = error.print();
    code
}

/// The same error with the variable that a wrong value is from.
fn with_variable(mut error: clap::Error) -> clap::Error {
    // All commands at once, which takes a megabyte: clap itself makes only the one that is asked for.
    let mut command = Cli::command();
    command.build();
    if let Some(variable) = wrong_variable(&command, &error) {
        let tip = format!("the value is that of the variable {variable}");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// The variable that a wrong value is from, if nobody wrote the option that is complained of.
fn wrong_variable(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let arg = argument(command, named)?;
    let variable = arg
        .get_env()
        .filter(|name| std::env::var_os(name).is_some())?;
    let is_written = std::env::args().skip(1).any(|word| {
        let long = arg
            .get_long()
            .and_then(|long| word.strip_prefix("--")?.strip_prefix(long));
        let is_long = long.is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
        // Several short ones may stand together.
        let is_short = word.starts_with('-')
            && !word.starts_with("--")
            && arg.get_short().is_some_and(|short| word.contains(short));
        is_long || is_short
    });
    (!is_written).then(|| variable.to_string_lossy().into_owned())
}

/// The argument that messages call so, of a command or those below it.
fn argument<'c>(command: &'c clap::Command, named: &str) -> Option<&'c clap::Arg> {
    let mut args = command.get_arguments();
    args.find(|arg| arg.to_string() == named).or_else(|| {
        let mut below = command.get_subcommands();
        below.find_map(|command| argument(command, named))
    })
}

/// A variable that is set to nothing counts as not set, everywhere in this program. No argument is looked at again
/// unless some variable, of whomever, is set to nothing.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    if !std::env::vars_os().any(|(_, value)| value.is_empty()) {
        return command;
    }
    let is_empty = |arg: &clap::Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    command
        .mut_args(|arg| {
            if is_empty(&arg) {
                arg.env(None::<&'static str>)
            } else {
                arg
            }
        })
        .mut_subcommands(without_empty_variables)
}

/// How long it may take to drop what is under way at the end.
const TO_DROP: Duration = Duration::from_millis(100);

fn start(cli: Cli) -> Result<Code, Failure> {
    let environment = Environment::of_this_process()
        .map_err(|error| Failure::usage(error).context("the working directory cannot be read"))?;
    let runtime = runtime(&cli.command)
        .map_err(|error| Failure::run(error).context("the runtime cannot be started"))?;
    let interrupts = Interrupts::listen()
        .map_err(|error| Failure::run(error).context("interruptions cannot be listened to"))?;
    // On a worker where there are some, as everything that it waits for: going from one thread to another and back takes
    // longer than most of what is done in between.
    let result = runtime.block_on(runtime.spawn(run(cli, environment, interrupts)));
    // Whatever is still under way is dropped, and what it started ends with it. Somebody may be asked something on standard
    // input, which cannot be interrupted.
    runtime.shutdown_timeout(TO_DROP);
    context::reap();
    result.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(ended) => Err(Failure::run(ended)),
    })
}

/// Threads are for those who do many things at once. A command that waits for one model and its tools waits on the thread
/// that is there already: others have to be made first, and each word from one to another takes longer than most of what is
/// done in between. What takes long goes to threads of its own in any case.
fn runtime(command: &Command) -> std::io::Result<Runtime> {
    let threads = match command {
        Command::Serve(_) | Command::Eval(_) => {
            std::thread::available_parallelism().map_or(2, |n| n.get().max(2))
        }
        Command::McpServer(_) => 2,
        _ => return Builder::new_current_thread().enable_all().build(),
    };
    Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
}

async fn run(cli: Cli, environment: Environment, interrupts: Interrupts) -> Result<Code, Failure> {
    // A command holds everything that it waits for: too much for the stack.
    // The server does this itself, within its time to stop.
    let finishes_itself = matches!(cli.command, Command::Serve(_));
    let result = Box::pin(command(cli.command, environment, &interrupts)).await;
    if !finishes_itself {
        observe::finish().await;
    }
    result
}

async fn command(
    command: Command,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    match command {
        Command::Ask(Deferred(args)) => ask::run(args, environment, interrupts).await,
        Command::Chat(Deferred(args)) => Box::pin(chat::run(args, environment, interrupts)).await,
        Command::Sessions(Deferred(args)) => sessions::run(args, environment).await,
        Command::Serve(Deferred(args)) => Box::pin(serve::run(args, environment, interrupts)).await,
        Command::Eval(Deferred(args)) => Box::pin(eval::run(*args, environment, interrupts)).await,
        Command::Runs(Deferred(args)) => Box::pin(runs::run(args, environment, interrupts)).await,
        Command::Tools(Deferred(args)) => tools::run(args, environment, interrupts).await,
        Command::Resources(Deferred(args)) => resources::run(args, environment, interrupts).await,
        Command::Prompts(Deferred(args)) => prompts::run(args, environment, interrupts).await,
        Command::Servers(Deferred(args)) => servers::run(args, environment, interrupts).await,
        Command::Doctor(Deferred(args)) => doctor::run(args, environment, interrupts).await,
        Command::Models(Deferred(args)) => models::run(args, environment, interrupts).await,
        Command::Recipes(Deferred(args)) => recipes::run(&args, &environment),
        Command::McpServer(Deferred(args)) => {
            observe::start_log(&environment);
            mcp_server::run(args, &environment, interrupts).await
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}

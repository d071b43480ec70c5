//! The tools `compile` and `test_run`, which run configured commands.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    Command, CommandPurpose, Environment, model_arguments,
    process::{self, CommandResult},
};
use crate::{
    tool::{BundledTool, ToolOutput, ToolResult},
    workspace::root::Root,
};

/// The settings that the tools `compile` and `test_run` share.
#[derive(Debug)]
struct Runner {
    root: Arc<Root>,
    environment: Environment,
    timeout: Duration,
    /// Permit that allows only one command at a time, because two builds in one folder would
    /// interfere.
    permit: Semaphore,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The name of the command to run.
    command: Option<String>,
    /// Additional arguments of the command, such as the name of a test. Options are not possible.
    #[serde(default)]
    args: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "`output` is the usual name of the text that a command writes"
)]
pub(in crate::workspace) struct Output {
    /// The command with its arguments.
    command: String,
    /// `failed`: the exit code is not 0. `timed_out`: the command was stopped after the time limit.
    /// `signalled`: a signal ended the command.
    outcome: Outcome,
    /// The exit code, unless the command was stopped or ended by a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    exit_code: Option<i32>,
    duration_ms: u64,
    /// The end of the combined standard output and standard error.
    output: String,
    /// Number of omitted bytes before `output`.
    omitted_bytes: u64,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::workspace) enum Outcome {
    Succeeded,
    Failed,
    TimedOut,
    Signalled,
}

/// Returns the tools `compile` and `test_run`. A tool without a configured command is omitted.
pub(in crate::workspace) fn command_tools(
    root: &Arc<Root>,
    environment: Environment,
    timeout: Duration,
    commands: &[Command],
) -> impl Iterator<Item = BundledTool> {
    let runner = Arc::new(Runner {
        root: root.clone(),
        environment,
        timeout,
        permit: Semaphore::new(1),
    });
    let compile = (
        CommandPurpose::Compile,
        "compile",
        "Compile",
        "Compiles or checks the code of the workspace and returns the end of the output.",
    );
    let test = (
        CommandPurpose::Test,
        "test_run",
        "Run tests",
        "Runs the tests of the workspace and returns the end of the output. Failed tests are a \
         result, not an error.",
    );
    let tools = [compile, test].map(|(purpose, name, title, description)| {
        let commands = commands.iter().filter(|it| it.purpose == purpose).cloned();
        let commands: Arc<[Command]> = commands.collect();
        let description = describe_tool(description, &commands, runner.timeout);
        let state = (runner.clone(), commands.clone());
        // The annotations declare the tools as destructive, not idempotent and open-world, because
        // commands have all permissions of the user.
        let tool = BundledTool::new(name, title, description, state, run_tool)
            .map_annotations(|it| it.read_only(false).destructive(true))
            .map_annotations(|it| it.idempotent(false).open_world(true));
        (!commands.is_empty()).then(|| restrict_command_schema(tool, &commands))
    });
    tools.into_iter().flatten()
}

fn command_names(commands: &[Command]) -> Vec<&str> {
    commands.iter().map(|it| it.name.as_str()).collect()
}

fn describe_tool(purpose: &str, commands: &[Command], timeout: Duration) -> String {
    let names = command_names(commands).join("; ");
    let mut text = format!("{purpose} The commands are: {names}. ");
    let open: Vec<Command> = commands.iter().filter(|it| it.open).cloned().collect();
    if !open.is_empty() && open.len() < commands.len() {
        let names = command_names(&open).join("; ");
        let _ = write!(text, "Only these take args: {names}. ");
    }
    let seconds = timeout.as_secs();
    let _ = write!(text, "A command is stopped after {seconds} seconds.");
    text
}

/// Restricts the argument `command` in the input schema to the names of `commands`, and makes the
/// argument required if `commands` has several items. Removes the argument `args` if no command
/// allows added arguments.
fn restrict_command_schema(tool: BundledTool, commands: &[Command]) -> BundledTool {
    let tool = tool.map_input_schema(|schema| {
        if let Some(command) = schema
            .get_mut("properties")
            .and_then(|it| it.get_mut("command"))
        {
            command["enum"] = json!(command_names(commands));
        }
        if commands.len() > 1 {
            schema.insert("required".to_owned(), json!(["command"]));
        }
    });
    if commands.iter().any(|command| command.open) {
        tool
    } else {
        tool.without_argument("args")
    }
}

async fn run_tool(
    (runner, commands): (Arc<Runner>, Arc<[Command]>),
    Input { command, args }: Input,
) -> ToolResult<Output> {
    let is_wanted = |it: &&Command| command.as_ref().is_none_or(|name| it.name == *name);
    let command = commands
        .iter()
        .find(is_wanted)
        .ok_or("This command is not allowed.")?;
    if !command.open && !args.is_empty() {
        return Err(format!("{} does not accept args.", command.name).into());
    }
    let permit = runner.permit.acquire().await;
    let _permit = permit.map_err(|_| "The server is shutting down.")?;
    let directory = runner.root.working_directory();
    let directory =
        directory.ok_or("The root folder was moved or replaced after the start of the server.")?;
    // The arguments are checked only now, because an earlier command may have created links.
    let added = args.clone();
    runner
        .root
        .run_blocking(move |root| Ok(model_arguments::check_model_arguments(&added, root)?))
        .await?;
    let name = [std::slice::from_ref(&command.name), args.as_slice()]
        .concat()
        .join(" ");
    tracing::debug!(command = name, "running a command");
    let (environment, limit) = (&runner.environment, runner.timeout);
    let result = process::run(command, &args, directory, environment, limit).await;
    match result {
        Ok(result) => Ok(build_output(name, result, runner.timeout)),
        Err(error) => {
            tracing::warn!(command = name, %error, "failed to run a command");
            Err(format!("{name} could not be run: {}.", error.kind()).into())
        }
    }
}

fn build_output(command: String, result: CommandResult, limit: Duration) -> ToolOutput<Output> {
    let exit_code = result.status.and_then(|status| status.code());
    let seconds = result.duration.as_secs_f32();
    let (outcome, ended) = match (result.status, exit_code) {
        (None, _) => (
            Outcome::TimedOut,
            format!("was stopped after {} seconds", limit.as_secs_f32()),
        ),
        (Some(_), Some(0)) => (
            Outcome::Succeeded,
            format!("succeeded after {seconds:.1} seconds"),
        ),
        (Some(_), Some(code)) => (
            Outcome::Failed,
            format!("failed with exit code {code} after {seconds:.1} seconds"),
        ),
        (Some(status), None) => (
            Outcome::Signalled,
            format!("was terminated by {status} after {seconds:.1} seconds"),
        ),
    };
    let mut text = format!("{command} {ended}");
    if result.output.trim().is_empty() {
        text.push_str(" without output.");
    } else {
        if result.omitted > 0 {
            let _ = write!(text, "; the first {} bytes are omitted", result.omitted);
        }
        text.push_str(":\n");
        text.push_str(result.output.trim_end());
    }
    let data = Output {
        command,
        outcome,
        exit_code,
        duration_ms: u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX),
        output: result.output,
        omitted_bytes: result.omitted,
    };
    ToolOutput { text, data }
}

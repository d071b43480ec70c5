//! `compile` and `test_run`.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    Command, Environment, Purpose, added,
    process::{self, CommandResult},
};
use crate::{
    tool::{BundledTool, ToolError, ToolOutput, remove_argument},
    workspace::root::Root,
};

/// The settings that the tools `compile` and `test_run` share.
#[derive(Debug)]
pub(in crate::workspace) struct Runner {
    root: Arc<Root>,
    environment: Environment,
    timeout: Duration,
    /// Permit that allows only one command at a time, because two builds in one folder would
    /// interfere.
    permit: Semaphore,
}

impl Runner {
    pub(in crate::workspace) fn new(
        root: &Arc<Root>,
        environment: Environment,
        timeout: Duration,
    ) -> Self {
        Self {
            root: Arc::clone(root),
            environment,
            timeout,
            permit: Semaphore::new(1),
        }
    }
}

/// The tool `test_run` (`RUNS_TESTS`) or `compile`.
pub(in crate::workspace) struct CommandTool<const RUNS_TESTS: bool> {
    runner: Arc<Runner>,
    /// The configured commands of this tool, at least one.
    list: Vec<Command>,
}

pub(in crate::workspace) type Compile = CommandTool<false>;

pub(in crate::workspace) type TestRun = CommandTool<true>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The command to run.
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
    /// `signalled`: a signal ended it.
    outcome: Outcome,
    /// The exit code, unless the command was stopped or ended by a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    exit_code: Option<i32>,
    duration_ms: u64,
    /// The end of both outputs.
    output: String,
    /// Number of omitted bytes before it.
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

impl<const RUNS_TESTS: bool> BundledTool for CommandTool<RUNS_TESTS> {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = if RUNS_TESTS { "test_run" } else { "compile" };
    const TITLE: &'static str = if RUNS_TESTS { "Run tests" } else { "Compile" };
    const DESCRIPTION: &'static str = if RUNS_TESTS {
        "Runs the tests of the workspace and returns the end of the output. Failed tests are a \
         result, not an error."
    } else {
        "Compiles or checks the code of the workspace and returns the end of the output."
    };

    /// Returns annotations without restrictions, because commands have all permissions of the user.
    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(true)
    }

    fn description(&self) -> Option<String> {
        let seconds = self.runner.timeout.as_secs();
        let names = self.names().join("; ");
        let mut text = format!("{} The commands are: {names}. ", Self::DESCRIPTION);
        let open = self.list.iter().filter(|command| command.open);
        let open: Vec<&str> = open.map(|command| command.name.as_str()).collect();
        if !open.is_empty() && open.len() < self.list.len() {
            let _ = write!(text, "Only these take args: {}. ", open.join("; "));
        }
        let _ = write!(text, "A command is stopped after {seconds} seconds.");
        Some(text)
    }

    /// Lists the allowed commands in the input schema. Removes `args` if no command allows added
    /// arguments.
    fn adjust_input(&self, schema: &mut JsonObject) {
        let properties = schema.get_mut("properties");
        let command = properties.and_then(|properties| properties.get_mut("command"));
        if let Some(Value::Object(command)) = command {
            command.insert("enum".to_owned(), json!(self.names()));
        }
        if !self.list.iter().any(|command| command.open) {
            remove_argument(schema, "args");
        }
        if self.list.len() > 1 {
            schema.insert("required".to_owned(), json!(["command"]));
        }
    }

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let refuse = |text: String| Err(ToolError::Refused(text));
        let command = match &input.command {
            Some(name) => self.list.iter().find(|command| command.name == *name),
            None if self.list.len() == 1 => self.list.first(),
            None => None,
        };
        let Some(command) = command else {
            let names = self.names().join("; ");
            return refuse(format!("Only these commands are possible: {names}."));
        };
        if !command.open && !input.args.is_empty() {
            return refuse(format!("{} takes no args.", command.name));
        }
        let Ok(_permit) = self.runner.permit.acquire().await else {
            return refuse("The server is ending.".to_owned());
        };
        let Some(directory) = self.runner.root.directory() else {
            return refuse(
                "The root folder was moved or replaced after the start of the server.".to_owned(),
            );
        };
        // Arguments are checked after waiting for other commands, because those may create links.
        let args = input.args.clone();
        let check = move |root: &Root| added::check(&args, root).map_err(ToolError::Refused);
        self.runner.root.run(check).await?;
        let name = shown(&command.name, &input.args);
        let (environment, limit) = (&self.runner.environment, self.runner.timeout);
        tracing::debug!(command = name, "runs a command");
        match process::run(command, &input.args, directory, environment, limit).await {
            Ok(result) => Ok(output(name, result, limit)),
            Err(error) => {
                tracing::warn!(command = name, %error, "a command cannot be run");
                refuse(format!("{name} cannot be run: {}.", error.kind()))
            }
        }
    }
}

impl<const RUNS_TESTS: bool> CommandTool<RUNS_TESTS> {
    /// Creates the tool. Returns `None` if no command is configured for it.
    pub(in crate::workspace) fn new(runner: &Arc<Runner>, all: &[Command]) -> Option<Self> {
        let runs_tests = |command: &&Command| command.purpose == Purpose::Test;
        let list = all.iter().filter(|it| runs_tests(it) == RUNS_TESTS);
        let list: Vec<Command> = list.cloned().collect();
        let runner = Arc::clone(runner);
        (!list.is_empty()).then_some(Self { runner, list })
    }

    fn names(&self) -> Vec<&str> {
        self.list.iter().map(|it| it.name.as_str()).collect()
    }
}

fn shown(name: &str, args: &[String]) -> String {
    let mut words = vec![name];
    words.extend(args.iter().map(String::as_str));
    words.join(" ")
}

fn output(command: String, result: CommandResult, limit: Duration) -> ToolOutput<Output> {
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
            format!("was ended by {status} after {seconds:.1} seconds"),
        ),
    };
    let mut text = format!("{command} {ended}");
    if result.output.trim().is_empty() {
        text.push_str(" and wrote nothing.");
    } else {
        if result.omitted > 0 {
            let _ = write!(text, "; the first {} bytes are omitted", result.omitted);
        }
        text.push_str(":\n");
        text.push_str(result.output.trim_end());
    }
    ToolOutput {
        text,
        data: Output {
            command,
            outcome,
            exit_code,
            duration_ms: u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX),
            output: result.output,
            omitted_bytes: result.omitted,
        },
    }
}

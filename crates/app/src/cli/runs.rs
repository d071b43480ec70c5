//! `runs`: runs that wait for somebody's word and going on with them; and what runs did.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{ApprovalDecision, ApprovalScope, JsonObject, Role, ToolInput};
use switchboard_orchestration::Run;

use super::{
    Code, Failure, ListOutput,
    agent::ResumedArgs,
    ask::{self, Shown},
    interrupt::Interrupts,
    output,
    stats::{self, StatsArgs},
    table::table,
};
use crate::{
    environment::Environment,
    runs::StoredRuns,
    terminal::{self, one_line, say_note, say_warning},
};

/// Shows runs that wait for approval, goes on with one, and counts what runs did.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// The form of the list
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List the runs that wait
    List {
        /// The form of the list
        #[arg(short, long, value_enum, default_value_t)]
        output: ListOutput,
    },
    /// Go on with a run: you are asked what it was about to ask
    Resume(Box<ResumeArgs>),
    /// Forget a run
    Forget {
        /// Its id, or how that begins
        id: String,
    },
    /// Count what models and tools did, how well, how fast and at what cost, by what the audit holds
    Stats(StatsArgs),
}

#[derive(Debug, Args)]
struct ResumeArgs {
    /// Its id, or how that begins
    id: String,
    /// Allow what it waits for, instead of being asked
    #[arg(long, conflicts_with = "deny")]
    allow: bool,
    /// Allow it with this input instead of the model's (a JSON object)
    #[arg(long, value_name = "JSON", requires = "allow", value_parser = object)]
    input: Option<JsonObject>,
    /// Decline what it waits for; the model is told why
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    deny: Option<String>,
    #[command(flatten)]
    resumed: ResumedArgs,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Debug, Serialize)]
struct Row {
    run_id: String,
    model: String,
    question: String,
    waiting: Vec<Waiting>,
}

#[derive(Debug, Serialize)]
struct Waiting {
    id: String,
    server: Option<String>,
    tool: String,
    input: Value,
    expires_at: Option<String>,
}

pub(super) async fn run(
    args: RunsArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let stored = || StoredRuns::of(&environment).map_err(Failure::usage);
    match args.command {
        None => list(&stored()?, args.output),
        Some(RunsCommand::List { output }) => list(&stored()?, output),
        Some(RunsCommand::Resume(args)) => {
            Box::pin(resume(*args, stored()?, environment, interrupts)).await
        }
        Some(RunsCommand::Forget { id }) => {
            let runs = stored()?;
            let id = runs.find(&id).map_err(Failure::usage)?;
            runs.forget(&id).map_err(Failure::run)?;
            say_note(&format!("forgot {id}"));
            Ok(Code::Success)
        }
        Some(RunsCommand::Stats(args)) => stats::run(&args, environment),
    }
}

async fn resume(
    args: ResumeArgs,
    runs: StoredRuns,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let id = runs.find(&args.id).map_err(Failure::usage)?;
    let run = runs.take(&id).map_err(Failure::usage)?;
    args.resumed.check(&run)?;
    let open = run.waiting().len();
    if args.input.is_some() && open != 1 {
        return Err(Failure::usage(anyhow!(
            "--input is for one call, and the run waits for {open}"
        )));
    }
    if let (Some(input), Some(request)) = (&args.input, run.waiting().first()) {
        run.check_input(&request.tool_use.name, input)
            .map_err(|faults| Failure::usage(anyhow!("--input does not fit: {faults}")))?;
    }
    let is_decided = args.allow || args.deny.is_some() || args.resumed.decides_later(&environment);
    if open > 0 && !is_decided && !terminal::is_somebody_there() {
        return Err(Failure::usage(anyhow!(
            "the run waits for your word and nobody is there to ask: say --allow or --deny REASON"
        )));
    }
    let scope = ApprovalScope::Once;
    let answer = match args.deny {
        Some(reason) => Some(ApprovalDecision::Deny {
            reason: Some(reason).filter(|reason| !reason.is_empty()),
            scope,
        }),
        None => args.allow.then_some(ApprovalDecision::Allow {
            input: args.input,
            scope,
        }),
    };
    let how = (&args.resumed, &args.shown);
    Box::pin(ask::resume(run, runs, answer, how, environment, interrupts)).await
}

fn object(text: &str) -> Result<JsonObject, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))
}

fn list(runs: &StoredRuns, form: ListOutput) -> Result<Code, Failure> {
    let mut rows = Vec::new();
    for id in runs.ids().map_err(Failure::run)? {
        match runs.load(&id) {
            Ok(run) => rows.push(row(&run)),
            // One that cannot be read does not hide the others.
            Err(error) => say_warning(&error.to_string()),
        }
    }
    match form {
        ListOutput::Json => output::pretty(&rows).map_err(Failure::run)?,
        ListOutput::Text if rows.is_empty() => say_note("no run waits"),
        ListOutput::Text => {
            let rows: Vec<_> = rows
                .iter()
                .map(|row| {
                    let tools: Vec<_> = row
                        .waiting
                        .iter()
                        .map(|waiting| waiting.tool.as_str())
                        .collect();
                    [
                        row.run_id.clone(),
                        one_line(&tools.join(", "), 30),
                        one_line(&row.question, 60),
                    ]
                })
                .collect();
            output::lines(&table(&rows)).map_err(Failure::run)?;
        }
    }
    Ok(Code::Success)
}

fn row(run: &Run) -> Row {
    let question = run
        .messages()
        .iter()
        .rev()
        .find(|message| message.role == Role::User)
        .map(|message| message.text())
        .unwrap_or_default();
    let waiting = run.waiting().into_iter().map(|request| {
        let input = match (&request.input, &request.tool_use.input) {
            (Some(input), _) | (None, ToolInput::Object(input)) => Value::Object(input.clone()),
            (None, ToolInput::Malformed { raw, .. }) => Value::String(raw.clone()),
        };
        let origin = request.origin.as_ref();
        Waiting {
            id: request.tool_use.id.clone(),
            server: origin.map(|origin| origin.server.clone()),
            tool: origin.map_or(&request.tool_use.name, |it| &it.tool).clone(),
            input,
            expires_at: request.expires_at.clone(),
        }
    });
    Row {
        run_id: run.id().to_owned(),
        model: run.model().to_string(),
        question,
        waiting: waiting.collect(),
    }
}

//! `runs`: runs that wait for somebody's word and going on with them; and what runs did.

use std::sync::Arc;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, JsonObject, Role, RunRecord, RunState, RunStore as _,
    SessionStoreError,
};
use switchboard_orchestration::Run;

use super::{
    Code, Failure, Global, ListOutput,
    agent::ResumedArgs,
    ask::{self, Shown},
    context::Context,
    interrupt::Interrupts,
    output,
    stats::{self, StatsArgs},
    table::table,
};
use crate::{
    chat::talk::{Talks, explained},
    environment::Environment,
    runs::{StoredRunError, StoredRuns},
    sessions::{Sessions, SessionsError},
    terminal::{self, one_line, say_note, say_warning},
};

/// Runs of sessions that are looked at to find those that wait: the newest.
const MOST: u32 = 10_000;

/// Shows runs that wait for approval, goes on with one, and counts what runs did.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// The form of the list
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List the runs that wait or were interrupted
    List {
        /// The form of the list
        #[arg(short, long, value_enum, default_value_t)]
        output: ListOutput,
        #[command(flatten)]
        global: Global,
    },
    /// Go on with a run: you are asked what it was about to ask
    Resume(Box<ResumeArgs>),
    /// Forget a run; one of a session ends, and what it had done stays there
    Forget {
        /// Its id, or how that begins
        id: String,
        #[command(flatten)]
        global: Global,
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
    /// The session that it belongs to, if it is in one.
    session_id: Option<String>,
    state: RunState,
    model: String,
    question: String,
    waiting: Vec<Waiting>,
}

#[derive(Debug, Serialize)]
struct Waiting {
    id: String,
    server: Option<String>,
    tool: String,
    input: Arc<Value>,
    expires_at: Option<String>,
}

pub(super) async fn run(
    args: RunsArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let list_args = RunsCommand::List {
        output: args.output,
        global: args.global,
    };
    match args.command.unwrap_or(list_args) {
        RunsCommand::List { output, global } => {
            let files = StoredRuns::of(&environment).map_err(Failure::usage)?;
            let context = Context::load(&global, environment)?;
            list(&files, &context, output).await
        }
        RunsCommand::Resume(args) => Box::pin(resume(*args, environment, interrupts)).await,
        RunsCommand::Forget { id, global } => {
            let files = StoredRuns::of(&environment).map_err(Failure::usage)?;
            let context = Context::load(&global, environment)?;
            forget(&id, &files, &context).await
        }
        RunsCommand::Stats(args) => stats::run(&args, environment),
    }
}

/// A run that waits, by its id or how that begins.
enum Found {
    /// In a file of its own.
    File(String),
    /// In a session.
    Kept(Talks, Box<RunRecord>),
}

async fn find(id: &str, files: &StoredRuns, context: &Context) -> Result<Found, Failure> {
    let in_file = files.find(id);
    if matches!(&in_file, Err(error) if !matches!(error, StoredRunError::NotFound { .. })) {
        return in_file.map(Found::File).map_err(Failure::usage);
    }
    let Some(talks) = talks(context).await.map_err(Failure::usage)? else {
        return in_file.map(Found::File).map_err(Failure::usage);
    };
    let kept = waiting(&talks).await.map_err(Failure::run)?;
    let mut kept = kept
        .into_iter()
        .filter(|record| !id.is_empty() && record.id.starts_with(id));
    let found = match (in_file, kept.next(), kept.next()) {
        (Err(_), Some(record), None) => return Ok(Found::Kept(talks, Box::new(record))),
        (in_file, None, _) => in_file.map(Found::File),
        _ => Err(StoredRunError::Ambiguous { id: id.to_owned() }),
    };
    talks.sessions.close().await;
    found.map_err(Failure::usage)
}

/// The sessions, if there are any.
async fn talks(context: &Context) -> Result<Option<Talks>, SessionsError> {
    let sessions = Sessions::open_if_there(&context.config, &context.environment).await?;
    Ok(sessions.map(Talks::of))
}

/// The runs of sessions that wait or were interrupted, oldest first.
async fn waiting(talks: &Talks) -> Result<Vec<RunRecord>, SessionStoreError> {
    let store = talks.sessions.store();
    let mut runs = store.runs(&talks.owner, None, MOST).await?;
    runs.retain(|run| matches!(run.state, RunState::Waiting | RunState::Interrupted));
    runs.reverse();
    Ok(runs)
}

async fn forget(id: &str, files: &StoredRuns, context: &Context) -> Result<Code, Failure> {
    match find(id, files, context).await? {
        Found::File(id) => {
            files.forget(&id).map_err(Failure::run)?;
            say_note(&format!("forgot {id}"));
        }
        Found::Kept(talks, record) => {
            let ended = talks.journal.abandon(&record.id).await;
            talks.sessions.close().await;
            ended.map_err(|error| Failure::run(explained(error)))?;
            say_note(&format!(
                "ended {}; what it had done stays in session {}",
                record.id, record.session
            ));
        }
    }
    Ok(Code::Success)
}

async fn resume(
    args: ResumeArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let files = StoredRuns::of(&environment).map_err(Failure::usage)?;
    let context = Context::load(&args.shown.global, environment)?;
    match find(&args.id, &files, &context).await? {
        Found::File(id) => {
            let run = files.take(&id).map_err(Failure::usage)?;
            args.check(&run, &context.environment)?;
            let how = (&args.resumed, &args.shown);
            let answer = args.answer();
            Box::pin(ask::resume(run, files, answer, how, &context, interrupts)).await
        }
        Found::Kept(talks, record) => {
            let gone_on = Box::pin(resume_kept(&args, &talks, &record, &context, interrupts)).await;
            talks.sessions.close().await;
            gone_on
        }
    }
}

async fn resume_kept(
    args: &ResumeArgs,
    talks: &Talks,
    record: &RunRecord,
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let taken = talks.journal.take(&record.id).await;
    let taken = taken.map_err(|error| Failure::usage(explained(error)))?;
    let checked = if taken.is_bare() {
        Err(Failure::usage(anyhow!(
            "the run was interrupted before it had begun to do anything: `switchboard chat --session {}` goes on \
             with it or abandons it",
            record.session
        )))
    } else {
        args.check(taken.run(), &context.environment)
    };
    if let Err(failure) = checked {
        taken.leave().await;
        return Err(failure);
    }
    let how = (&args.resumed, &args.shown);
    ask::resume_taken(talks, taken, args.answer(), how, context, interrupts).await
}

impl ResumeArgs {
    /// What is wrong with them for this run is said before anything is started.
    fn check(&self, run: &Run, environment: &Environment) -> Result<(), Failure> {
        self.resumed.check(run)?;
        let open = run.pending_approvals().len();
        if self.input.is_some() && open != 1 {
            return Err(Failure::usage(anyhow!(
                "--input is for one call, and the run waits for {open}"
            )));
        }
        if let (Some(input), Some(request)) = (&self.input, run.pending_approvals().first()) {
            run.check_input(&request.tool_use.name, input)
                .map_err(|faults| Failure::usage(anyhow!("--input does not fit: {faults}")))?;
        }
        let is_decided =
            self.allow || self.deny.is_some() || self.resumed.decides_later(environment);
        if open > 0 && !is_decided && !terminal::is_somebody_there() {
            return Err(Failure::usage(anyhow!(
                "the run waits for your word and nobody is there to ask: say --allow or --deny REASON"
            )));
        }
        Ok(())
    }

    /// What is answered to the questions that are open.
    fn answer(&self) -> Option<ApprovalDecision> {
        let scope = ApprovalScope::Once;
        match &self.deny {
            Some(reason) => Some(ApprovalDecision::Deny {
                reason: Some(reason.clone()).filter(|reason| !reason.is_empty()),
                scope,
            }),
            None => self.allow.then(|| ApprovalDecision::Allow {
                input: self.input.clone(),
                scope,
            }),
        }
    }
}

fn object(text: &str) -> Result<JsonObject, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))
}

async fn list(files: &StoredRuns, context: &Context, form: ListOutput) -> Result<Code, Failure> {
    let mut rows = Vec::new();
    for id in files.ids().map_err(Failure::run)? {
        match files.load(&id) {
            Ok(run) => rows.push(row(&run, None)),
            // One that cannot be read does not hide the others.
            Err(error) => say_warning(&error.to_string()),
        }
    }
    match talks(context).await {
        Ok(None) => {}
        Ok(Some(talks)) => {
            let kept = kept_rows(&talks).await;
            talks.sessions.close().await;
            rows.extend(kept.map_err(Failure::run)?);
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            say_warning(&format!("runs of sessions are not listed: {error:#}"));
        }
    }
    // Ids sort by time.
    rows.sort_by(|a, b| a.run_id.cmp(&b.run_id));
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
                    let about = match row.state {
                        RunState::Waiting => tools.join(", "),
                        _ => "(interrupted)".to_owned(),
                    };
                    [
                        row.run_id.clone(),
                        one_line(&about, 30),
                        one_line(row.session_id.as_deref().unwrap_or("-"), 40),
                        one_line(&row.question, 60),
                    ]
                })
                .collect();
            output::lines(&table(&rows)).map_err(Failure::run)?;
        }
    }
    Ok(Code::Success)
}

/// The runs of sessions. Of one that cannot be read is shown what the store says of it.
async fn kept_rows(talks: &Talks) -> Result<Vec<Row>, SessionStoreError> {
    let store = talks.sessions.store();
    let mut rows = Vec::new();
    for record in waiting(talks).await? {
        let stored = match store.snapshot(&talks.owner, &record.id).await {
            Ok(None) => None,
            Ok(Some(snapshot)) => match Run::restore(snapshot) {
                Ok(run) => Some(run),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    say_warning(&format!(
                        "run {} cannot be gone on with: {error:#}",
                        record.id
                    ));
                    None
                }
            },
            Err(error @ SessionStoreError::Unreadable { .. }) => {
                let error = anyhow::Error::from(error);
                say_warning(&format!(
                    "run {} cannot be gone on with: {error:#}",
                    record.id
                ));
                None
            }
            Err(error) => return Err(error),
        };
        rows.push(match stored {
            Some(run) => row(&run, Some(&record)),
            None => Row {
                run_id: record.id,
                session_id: Some(record.session.0),
                state: record.state,
                model: record.model,
                question: String::new(),
                waiting: Vec::new(),
            },
        });
    }
    Ok(rows)
}

fn row(run: &Run, record: Option<&RunRecord>) -> Row {
    let question = run
        .messages()
        .iter()
        .rev()
        .find(|message| message.role == Role::User)
        .map(|message| message.text())
        .unwrap_or_default();
    let waiting = run.pending_approvals().into_iter().map(|request| {
        let input = request.input_shown();
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
        session_id: record.map(|record| record.session.0.clone()),
        state: record.map_or(RunState::Waiting, |record| record.state),
        model: run.model().to_string(),
        question,
        waiting: waiting.collect(),
    }
}

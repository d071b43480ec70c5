//! `runs`: resumes waiting runs, and statistics of runs.

mod stats;

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

use crate::{
    config::environment::Environment,
    run_session::conversations::{Conversations, with_remedy},
    storage::{
        runs::{StoredRunError, StoredRuns},
        sessions::{Sessions, SessionsError},
    },
    terminal::{self, one_line, print_note, print_warning},
};
use crate::{
    run_session::{
        agent::ResumedArgs,
        arguments::{Global, OutputArgs},
        context::Context,
        failure::{Code, Failure},
        follow,
        interrupts::Interrupts,
    },
    terminal::{
        output::{self, ListOutput},
        table::table,
    },
};
use stats::StatsArgs;

/// Maximum number of runs of sessions that are searched for waiting ones.
const MAX_RUNS: u32 = 10_000;

/// Arguments of `runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List waiting and interrupted runs
    List {
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: ListOutput,
        #[command(flatten)]
        global: Global,
    },
    /// Resume a run; you are asked for the pending approvals
    Resume(Box<ResumeArgs>),
    /// Discard a run; completed work of a session's run stays in the session
    Forget {
        /// Id of the run, or its first characters
        id: String,
        #[command(flatten)]
        global: Global,
    },
    /// Print statistics of models and tools from the audit
    Stats(StatsArgs),
}

#[derive(Debug, Args)]
struct ResumeArgs {
    /// Id of the run, or its first characters
    id: String,
    /// Allow the pending calls without asking
    #[arg(long, conflicts_with = "deny")]
    allow: bool,
    /// Allow the call with this input instead of the model's (a JSON object)
    #[arg(long, value_name = "JSON", requires = "allow", value_parser = object)]
    input: Option<JsonObject>,
    /// Deny the pending calls; the reason is sent to the model
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    deny: Option<String>,
    #[command(flatten)]
    resumed: ResumedArgs,
    #[command(flatten)]
    shown: OutputArgs,
}

#[derive(Debug, Serialize)]
struct Row {
    run_id: String,
    /// The session of the run.
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

pub(crate) async fn run(
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

/// A waiting run.
enum Found {
    /// A file without a session.
    File(String),
    /// A run of a session.
    Session(Conversations, Box<RunRecord>),
}

async fn find(id: &str, files: &StoredRuns, context: &Context) -> Result<Found, Failure> {
    let in_file = files.find(id);
    if matches!(&in_file, Err(error) if !matches!(error, StoredRunError::NotFound { .. })) {
        return in_file.map(Found::File).map_err(Failure::usage);
    }
    let Some(conversations) = conversations(context).await.map_err(Failure::usage)? else {
        return in_file.map(Found::File).map_err(Failure::usage);
    };
    let in_store = waiting(&conversations).await.map_err(Failure::run)?;
    let mut in_store = in_store
        .into_iter()
        .filter(|record| !id.is_empty() && record.id.starts_with(id));
    let found = match (in_file, in_store.next(), in_store.next()) {
        (Err(_), Some(record), None) => return Ok(Found::Session(conversations, Box::new(record))),
        (in_file, None, _) => in_file.map(Found::File),
        _ => Err(StoredRunError::Ambiguous { id: id.to_owned() }),
    };
    conversations.sessions.close().await;
    found.map_err(Failure::usage)
}

/// Opens the session store, if it exists.
async fn conversations(context: &Context) -> Result<Option<Conversations>, SessionsError> {
    let sessions = Sessions::open_if_there(&context.config, &context.environment).await?;
    Ok(sessions.map(Conversations::of))
}

/// Returns the waiting and interrupted runs of sessions, oldest first.
async fn waiting(conversations: &Conversations) -> Result<Vec<RunRecord>, SessionStoreError> {
    let store = conversations.sessions.store();
    let mut runs = store.runs(&conversations.owner, None, MAX_RUNS).await?;
    runs.retain(|run| matches!(run.state, RunState::Waiting | RunState::Interrupted));
    runs.reverse();
    Ok(runs)
}

async fn forget(id: &str, files: &StoredRuns, context: &Context) -> Result<Code, Failure> {
    match find(id, files, context).await? {
        Found::File(id) => {
            files.forget(&id).map_err(Failure::run)?;
            print_note(&format!("forgot {id}"));
        }
        Found::Session(conversations, record) => {
            let ended = conversations.durable_runs.abandon(&record.id).await;
            conversations.sessions.close().await;
            ended.map_err(|error| Failure::run(with_remedy(error)))?;
            print_note(&format!(
                "discarded {}; its completed work stays in session {}",
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
            Box::pin(follow::resume(
                run, files, answer, how, &context, interrupts,
            ))
            .await
        }
        Found::Session(conversations, record) => {
            let gone_on = Box::pin(resume_kept(
                &args,
                &conversations,
                &record,
                &context,
                interrupts,
            ))
            .await;
            conversations.sessions.close().await;
            gone_on
        }
    }
}

async fn resume_kept(
    args: &ResumeArgs,
    conversations: &Conversations,
    record: &RunRecord,
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let taken = conversations.durable_runs.acquire(&record.id).await;
    let taken = taken.map_err(|error| Failure::usage(with_remedy(error)))?;
    let checked = if taken.has_only_conversation() {
        Err(Failure::usage(anyhow!(
            "the run was interrupted before it had begun to do anything: `switchboard chat \
             --session {}` resumes or discards it",
            record.session
        )))
    } else {
        args.check(taken.run(), &context.environment)
    };
    if let Err(failure) = checked {
        taken.release().await;
        return Err(failure);
    }
    let how = (&args.resumed, &args.shown);
    follow::resume_taken(
        conversations,
        taken,
        args.answer(),
        how,
        context,
        interrupts,
    )
    .await
}

impl ResumeArgs {
    /// Checks the arguments against the run before anything starts.
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
        if open > 0 && !is_decided && !terminal::is_interactive() {
            return Err(Failure::usage(anyhow!(
                "the run waits for your approval and no terminal is available: pass --allow or \
                 --deny REASON"
            )));
        }
        Ok(())
    }

    /// Returns the answer to the pending approval requests.
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
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

async fn list(files: &StoredRuns, context: &Context, form: ListOutput) -> Result<Code, Failure> {
    let mut rows = Vec::new();
    for id in files.ids().map_err(Failure::run)? {
        match files.load(&id) {
            Ok(run) => rows.push(row(&run, None)),
            // An unreadable run does not hide the others.
            Err(error) => print_warning(&error.to_string()),
        }
    }
    match conversations(context).await {
        Ok(None) => {}
        Ok(Some(conversations)) => {
            let in_store = stored_rows(&conversations).await;
            conversations.sessions.close().await;
            rows.extend(in_store.map_err(Failure::run)?);
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            print_warning(&format!("runs of sessions are not listed: {error:#}"));
        }
    }
    rows.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    match form {
        ListOutput::Json => output::pretty(&rows).map_err(Failure::run)?,
        ListOutput::Text if rows.is_empty() => print_note("no run waits"),
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

/// Returns rows for the runs of sessions. An unreadable run shows the data of the store.
async fn stored_rows(conversations: &Conversations) -> Result<Vec<Row>, SessionStoreError> {
    let store = conversations.sessions.store();
    let mut rows = Vec::new();
    for record in waiting(conversations).await? {
        let stored = match store.snapshot(&conversations.owner, &record.id).await {
            Ok(None) => None,
            Ok(Some(snapshot)) => match Run::restore(snapshot) {
                Ok(run) => Some(run),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    print_warning(&format!("run {} cannot be resumed: {error:#}", record.id));
                    None
                }
            },
            Err(error @ SessionStoreError::Unreadable { .. }) => {
                let error = anyhow::Error::from(error);
                print_warning(&format!("run {} cannot be resumed: {error:#}", record.id));
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

//! Command `runs`: resumes or discards waiting runs, and prints statistics of all runs.

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

use super::print_table;
use crate::{
    config::environment::Environment,
    run_session::{
        agent::ResumedRunArgs,
        arguments::GlobalArgs,
        context::{Context, Process},
        conversations::{SavedConversations, explain_run_error},
        failure::{Code, Failure},
        interrupts::Interrupts,
        terminal_run,
    },
    storage::sessions::OpenSessionStore,
    terminal::{
        self,
        output::{AnswerFormat, ListFormat},
        print_note, print_warning, to_one_line,
    },
};
use stats::StatsArgs;

/// Maximum number of stored runs that are searched for waiting and interrupted runs. Only the
/// newest runs are searched.
const MAX_RUNS: u32 = 10_000;

/// Command-line arguments of `switchboard runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListFormat,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    #[command(flatten)]
    Stored(StoredRunCommand),
    /// Print statistics of models and tools from the audit
    Stats(StatsArgs),
}

/// Subcommands of `switchboard runs` that use the runs in the session store.
#[derive(Debug, Subcommand)]
enum StoredRunCommand {
    /// List waiting and interrupted runs
    List {
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: ListFormat,
    },
    /// Resume a run; you are asked for the pending approvals
    Resume(Box<ResumeArgs>),
    /// Discard a run; its completed work stays in the session
    Forget {
        /// Id of the run, or its first characters
        id: String,
    },
}

#[derive(Debug, Args)]
struct ResumeArgs {
    /// Id of the run, or its first characters
    id: String,
    /// Allow the pending calls without asking
    #[arg(long, conflicts_with = "deny")]
    allow: bool,
    /// Allow the call with this input instead of the model's (a JSON object)
    #[arg(long, value_name = "JSON", requires = "allow", value_parser = parse_json_object)]
    input: Option<JsonObject>,
    /// Deny the pending calls; the reason is sent to the model
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    deny: Option<String>,
    #[command(flatten)]
    resumed: ResumedRunArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, env = "SWITCHBOARD_OUTPUT")]
    output: AnswerFormat,
}

#[derive(Debug, Serialize)]
struct RunRow {
    run_id: String,
    session_id: String,
    state: RunState,
    model: String,
    question: String,
    waiting: Vec<PendingCall>,
}

#[derive(Debug, Serialize)]
struct PendingCall {
    id: String,
    server: Option<String>,
    tool: String,
    input: Arc<Value>,
    expires_at: Option<String>,
}

pub(crate) async fn execute(args: RunsArgs, process: Process<'_>) -> Result<Code, Failure> {
    let command = match args.command {
        Some(RunsCommand::Stats(stats)) => {
            return stats::print_run_statistics(&stats, &args.global, process.environment).await;
        }
        Some(RunsCommand::Stored(command)) => command,
        None => StoredRunCommand::List {
            output: args.output,
        },
    };
    let mut context = Context::load_context(&args.global, process.environment)?;
    let opened = OpenSessionStore::open_if_exists(&context.config, &context.environment).await;
    let conversations = opened
        .map_err(Failure::usage_error)?
        .map(SavedConversations::from_sessions);
    let conversations = conversations.as_ref();
    let work = async {
        match &command {
            StoredRunCommand::List { output } => list_runs(conversations, *output).await,
            StoredRunCommand::Forget { id } => {
                let (conversations, record) = find_run(conversations, id).await?;
                discard_run(conversations, &record).await
            }
            StoredRunCommand::Resume(args) => {
                let (conversations, record) = find_run(conversations, &args.id).await?;
                resume_run(
                    args,
                    conversations,
                    &record,
                    &mut context,
                    process.interrupts,
                )
                .await
            }
        }
    };
    let result = Box::pin(work).await;
    if let Some(conversations) = conversations {
        conversations.sessions.close_store().await;
    }
    result
}

/// Returns the waiting or interrupted run whose id is `id` or begins with `id`. Returns an error if
/// there is no such run or more than one.
async fn find_run<'c>(
    conversations: Option<&'c SavedConversations>,
    id: &str,
) -> Result<(&'c SavedConversations, RunRecord), Failure> {
    let unknown = || Failure::usage_error(anyhow!("unknown run `{id}`. See `switchboard runs`"));
    let conversations = conversations.ok_or_else(unknown)?;
    let runs = list_open_runs(conversations).await?.into_iter();
    let mut runs = runs.filter(|record| !id.is_empty() && record.id.starts_with(id));
    match (runs.next(), runs.next()) {
        (None, _) => Err(unknown()),
        (Some(record), None) => Ok((conversations, record)),
        (Some(_), Some(_)) => Err(Failure::usage_error(anyhow!(
            "several runs start with `{id}`: enter more of the id"
        ))),
    }
}

/// Returns the runs that are waiting or interrupted, oldest first.
async fn list_open_runs(
    conversations: &SavedConversations,
) -> Result<Vec<RunRecord>, SessionStoreError> {
    let store = &conversations.sessions.store;
    let runs = store.list_runs(&conversations.owner, None, MAX_RUNS);
    let mut runs = runs.await?;
    runs.retain(|run| matches!(run.state, RunState::Waiting | RunState::Interrupted));
    runs.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(runs)
}

async fn discard_run(
    conversations: &SavedConversations,
    record: &RunRecord,
) -> Result<Code, Failure> {
    let ended = conversations.durable_runs.abandon_run(&record.id).await;
    ended.map_err(|error| Failure::runtime_error(explain_run_error(error)))?;
    print_note(&format!(
        "discarded {}; its completed work stays in session {}",
        record.id, record.session
    ));
    Ok(Code::Success)
}

async fn resume_run(
    args: &ResumeArgs,
    conversations: &SavedConversations,
    record: &RunRecord,
    context: &mut Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let taken = conversations.durable_runs.acquire_run(&record.id).await;
    let taken = taken.map_err(|error| Failure::usage_error(explain_run_error(error)))?;
    let checked = if taken.lacks_run_settings() {
        Err(Failure::usage_error(anyhow!(
            "the run was interrupted before its first step: `switchboard chat --session {}` \
             resumes or discards it",
            record.session
        )))
    } else {
        let run = taken.restored_run();
        args.check_resume_options(run, &context.environment)
            .and_then(|()| context.add_recipe_servers(run.recipe().map(AsRef::as_ref)))
    };
    if let Err(failure) = checked {
        taken.release_run().await;
        return Err(failure);
    }
    let how = (&args.resumed, args.output);
    let answer = args.approval_decision();
    terminal_run::resume_run(conversations, taken, answer, how, context, interrupts).await
}

impl ResumeArgs {
    /// Checks that the command-line options fit the stored run, before it resumes. Returns an error
    /// if `--max-steps` is too small, if `--input` does not fit exactly one pending call, or if
    /// pending calls need a decision and no terminal is available.
    fn check_resume_options(&self, run: &Run, environment: &Environment) -> Result<(), Failure> {
        self.resumed.check_step_limit(run)?;
        let open = run.pending_approvals().len();
        if self.input.is_some() && open != 1 {
            return Err(Failure::usage_error(anyhow!(
                "--input applies to one call, but the run has {open} pending calls"
            )));
        }
        if let (Some(input), Some(request)) = (&self.input, run.pending_approvals().first()) {
            run.check_tool_input(&request.tool_use.name, input)
                .map_err(|faults| {
                    Failure::usage_error(anyhow!("--input is not valid: {faults}"))
                })?;
        }
        let is_decided =
            self.allow || self.deny.is_some() || self.resumed.stores_approval_requests(environment);
        if open > 0 && !is_decided && !terminal::is_interactive() {
            return Err(Failure::usage_error(anyhow!(
                "the run waits for your approval and no terminal is available: pass --allow or \
                 --deny REASON"
            )));
        }
        Ok(())
    }

    /// Returns the approval decision of `--allow` or `--deny`. `None` if neither option is set.
    fn approval_decision(&self) -> Option<ApprovalDecision> {
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

fn parse_json_object(text: &str) -> Result<JsonObject, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

async fn list_runs(
    conversations: Option<&SavedConversations>,
    form: ListFormat,
) -> Result<Code, Failure> {
    let rows = match conversations {
        Some(conversations) => run_rows(conversations).await?,
        None => Vec::new(),
    };
    print_table(form, &rows, "no pending runs", |row| {
        let tools = row.waiting.iter().map(|waiting| waiting.tool.as_str());
        let about = match row.state {
            RunState::Waiting => tools.collect::<Vec<_>>().join(", "),
            _ => "(interrupted)".to_owned(),
        };
        let session = to_one_line(&row.session_id, 40);
        let question = to_one_line(&row.question, 60);
        let about = to_one_line(&about, 30);
        [row.run_id.clone(), about, session, question]
    })
}

/// Returns a table row for each waiting or interrupted run. If the state of a run cannot be
/// restored, prints a warning, and the row has neither a question nor pending calls.
async fn run_rows(conversations: &SavedConversations) -> Result<Vec<RunRow>, SessionStoreError> {
    let store = &conversations.sessions.store;
    let mut rows = Vec::new();
    for record in list_open_runs(conversations).await? {
        let mut row = RunRow {
            run_id: record.id,
            session_id: record.session.0,
            state: record.state,
            model: record.model,
            question: String::new(),
            waiting: Vec::new(),
        };
        let restored = match store.load_snapshot(&conversations.owner, &row.run_id).await {
            Ok(None) => None,
            Ok(Some(snapshot)) => Some(Run::from_snapshot(snapshot).map_err(anyhow::Error::from)),
            Err(error @ SessionStoreError::Unreadable { .. }) => Some(Err(error.into())),
            Err(error) => return Err(error),
        };
        match restored {
            None => {}
            Some(Ok(run)) => {
                row.model = run.model_id().to_string();
                let mut messages = run.messages().iter().rev();
                let question = messages.find(|message| message.role == Role::User);
                row.question = question.map(|message| message.text()).unwrap_or_default();
                row.waiting = pending_calls(&run);
            }
            Some(Err(error)) => {
                print_warning(&format!("run {} cannot be resumed: {error:#}", row.run_id));
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

fn pending_calls(run: &Run) -> Vec<PendingCall> {
    let pending = run.pending_approvals().into_iter();
    let calls = pending.map(|request| {
        let origin = request.origin.as_ref();
        PendingCall {
            id: request.tool_use.id.clone(),
            server: origin.map(|origin| origin.server.clone()),
            tool: origin.map_or(&request.tool_use.name, |it| &it.tool).clone(),
            input: request.displayed_input(),
            expires_at: request.expires_at.clone(),
        }
    });
    calls.collect()
}

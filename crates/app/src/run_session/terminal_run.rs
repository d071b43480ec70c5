//! Executes a run at the terminal: starts servers, prints events and returns the exit code.

pub(crate) mod active_run;

use std::{collections::VecDeque, io, sync::Arc};

use anyhow::anyhow;
use jiff::Timestamp;
use switchboard_domain::{ApprovalDecision, Elicitor, ModelId, SessionId, Usage};
use switchboard_orchestration::{
    Agent, Outcome, RunError, RunErrorKind, RunEvent, RunEventKind, RunParameters, RunReport,
    ToolFailure,
    persistence::{LeasedRun, PersistedRunEnd},
};
use uuid::Uuid;

use super::{
    agent::{AgentArgs, AgentPlan, ResumedRunArgs},
    context::Context,
    conversations::{SavedConversations, explain_run_error},
    failure::{Code, Failure},
    interrupts::{CtrlCPresses, Interrupts, wait_for_ctrl_c_press},
    run_resources::{RunResources, StartupFailure},
};
use active_run::ActiveRun;

use crate::{
    models::{ChosenModel, ModelChoiceReason, current_model::CurrentModelSampler},
    observe::AuditRecorder,
    storage::sessions::OpenSessionStore,
    terminal::{
        self, LineReader, PresetApprovalDecision, Screen, StdinLineReader, TerminalElicitor,
        answer_output::AnswerOutput, output::AnswerFormat,
    },
};

/// Source of a run: a new question, with or without a session, or a stored run.
pub(crate) enum RunSource {
    /// A question outside a session. Its run is not stored.
    Question(String),
    /// The next question of a stored session. Its run is stored in the session.
    InSession(SavedConversations, SessionId, String, Box<AgentArgs>),
    /// A stored run that is resumed. Its lease prevents other processes from executing the run.
    Resumed(SavedConversations, Box<LeasedRun>),
}

/// Resumes a stored run. The decision in `answer` applies to all pending approval requests. If
/// `answer` is `None`, the user is asked.
pub(crate) async fn resume_run(
    conversations: &SavedConversations,
    mut taken: LeasedRun,
    answer: Option<ApprovalDecision>,
    (resumed, output): (&ResumedRunArgs, AnswerFormat),
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut plan = match resumed
        .plan_resumed_run(taken.restored_run_mut(), context)
        .await
    {
        Ok(plan) => plan,
        Err(failure) => {
            taken.release_run().await;
            return Err(failure);
        }
    };
    let begun = RunParameters::from_stored_value(taken.run_record().parameters.as_ref());
    plan.no_tools = begun.is_some_and(|begun| begun.without_tools);
    if let Some(decision) = answer {
        let pending = taken.restored_run().pending_approvals().into_iter();
        let preset = pending.map(|request| {
            let preset = PresetApprovalDecision {
                fingerprint: request.fingerprint.clone(),
                decision: decision.clone(),
            };
            (request.tool_use.id.clone(), preset)
        });
        plan.preset = preset.collect();
    }
    let start = RunSource::Resumed(conversations.clone(), Box::new(taken));
    execute_run(plan, output, context, interrupts, start).await
}

/// Starts the MCP servers, prints the events of the run until it ends, and closes the servers.
pub(crate) async fn execute_run(
    plan: AgentPlan,
    output: AnswerFormat,
    context: &Context,
    interrupts: &Interrupts,
    start: RunSource,
) -> Result<Code, Failure> {
    let screen = Screen::new(output == AnswerFormat::Text);
    let elicitor = terminal::is_interactive().then(|| {
        Arc::new(TerminalElicitor::new(
            screen.clone(),
            Arc::new(StdinLineReader),
        )) as Arc<dyn Elicitor>
    });
    let sampler = CurrentModelSampler::new(Arc::clone(&plan.sampled));
    let sessions = start.session_store();
    let resources =
        RunResources::start_resources(context, plan.no_tools, sessions, elicitor, sampler);
    let resources = match resources {
        Ok(resources) => resources,
        Err(failure) => {
            start.release_lease().await;
            return Err(failure);
        }
    };
    let session = start.session_id();
    let mut recorder = resources.audit.create_run_recorder(session.clone(), None);
    let mut answer = AnswerOutput::new(output, |name| context.environment.get(name));
    let result = match resources
        .wait_for_servers(context, &screen, interrupts.wait_for_first_interruption())
        .await
    {
        Ok(()) => {
            // The agent is built after the servers have started, because the tools with changed
            // definitions are unknown before.
            let lines = Arc::new(StdinLineReader) as Arc<dyn LineReader>;
            let agent = plan.build_terminal_agent(context, &resources, &screen, &lines);
            match start_run(&agent, start, context).await {
                Ok(run) => {
                    let (answer, recorder) = (&mut answer, &mut recorder);
                    print_run_events(run, session, &screen, answer, recorder, interrupts).await
                }
                Err(failure) => Err(failure),
            }
        }
        Err(early) => {
            start.release_lease().await;
            let report = startup_failure_report(early, session, plan.chosen.model.id().clone());
            print_run_report(report, &mut answer, &screen)
        }
    };
    resources.close_resources(interrupts).await;
    result
}

impl RunSource {
    fn session_id(&self) -> Option<String> {
        match self {
            Self::Question(_) => None,
            Self::InSession(_, session, ..) => Some(session.0.clone()),
            Self::Resumed(_, taken) => Some(taken.run_record().session.0.clone()),
        }
    }

    /// Returns the store of the run. `None` for a question outside a session.
    fn session_store(&self) -> Option<&OpenSessionStore> {
        match self {
            Self::Question(_) => None,
            Self::InSession(saved, ..) | Self::Resumed(saved, _) => Some(&saved.sessions),
        }
    }

    /// Releases the lease of a resumed run, so that another process can resume the run. Does
    /// nothing for a new question.
    async fn release_lease(self) {
        if let Self::Resumed(_, taken) = self {
            taken.release_run().await;
        }
    }
}

async fn start_run(
    agent: &Agent,
    start: RunSource,
    context: &Context,
) -> Result<ActiveRun, Failure> {
    let run = match start {
        RunSource::Question(question) => {
            return Ok(ActiveRun::Ephemeral(Box::new(agent.ask(question))));
        }
        RunSource::Resumed(conversations, taken) => {
            let agent = conversations.share_call_rates(agent);
            conversations.durable_runs.resume_run(&agent, *taken)
        }
        RunSource::InSession(conversations, session, question, args) => {
            let begun = conversations.begin_run(agent, &session, question, &args, context);
            begun
                .await
                .map_err(|error| Failure::usage_error(explain_run_error(error)))?
        }
    };
    Ok(ActiveRun::Persisted(Box::new(run)))
}

/// Creates the report of a run that ended before its first step: a server did not start, or the
/// user interrupted the command.
fn startup_failure_report(
    early: StartupFailure,
    session_id: Option<String>,
    model: ModelId,
) -> RunReport {
    let (outcome, error) = match early {
        StartupFailure::Interrupted => (Outcome::Cancelled, None),
        StartupFailure::Server(error) => (Outcome::Failed, Some(error.to_string())),
    };
    RunReport {
        run_id: Uuid::now_v7().to_string(),
        session_id,
        model,
        answer: String::new(),
        content: Vec::new(),
        thinking: None,
        outcome,
        finish_reason: None,
        steps: 0,
        usage: Usage::default(),
        tool_calls: Vec::new(),
        warnings: Vec::new(),
        error: error.map(|message| RunError {
            kind: RunErrorKind::ServerUnavailable,
            message,
            provider: None,
            status: None,
            request_id: None,
        }),
    }
}

fn print_run_report(
    report: RunReport,
    answer: &mut AnswerOutput,
    screen: &Screen,
) -> Result<Code, Failure> {
    let code = outcome_exit_code(report.outcome);
    let event = RunEvent {
        run_id: report.run_id.as_str().into(),
        seq: 1,
        time: Timestamp::now(),
        kind: RunEventKind::RunFinished {
            report: Box::new(report),
        },
    };
    answer.show_event(&event, screen)?;
    Ok(code)
}

/// Prints a note with the model and the reason if the demo model or a local model was chosen
/// because no API key is set. Prints nothing for another choice.
pub(crate) fn print_chosen_model(chosen: &ChosenModel) {
    match chosen.reason {
        ModelChoiceReason::NothingElse => terminal::print_note(
            "no API key found: using the demo model offline/planner, which is not a language \
             model. Set an API key (`switchboard doctor` lists them) or pass --model",
        ),
        ModelChoiceReason::Answers => terminal::print_note(&format!(
            "no API key found: using the local model {}",
            chosen.model.id()
        )),
        ModelChoiceReason::Named | ModelChoiceReason::Key(_) => {}
    }
}

/// Prints the events of a run until it ends, and returns the exit code.
async fn print_run_events(
    mut run: ActiveRun,
    session: Option<String>,
    screen: &Screen,
    answer: &mut AnswerOutput,
    recorder: &mut AuditRecorder,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut run_id = None;
    // If standard output is closed, `show` returns an error. Then the run is dropped and cancelled.
    let show = |event: &RunEvent| {
        run_id.get_or_insert_with(|| Arc::clone(&event.run_id));
        answer.show_event(event, screen)
    };
    let code = match process_events(&mut run, recorder, screen, interrupts, None, show).await? {
        (_, EarlyStop::Interrupted) => Code::Interrupted,
        (code, _) => code,
    };
    if let Some(PersistedRunEnd::Failed(error)) = run.run_end() {
        let failure = anyhow!("the answer could not be saved: {error}");
        return Err(Failure::runtime_error(failure));
    }
    if code == Code::Waiting {
        terminal::print_note(&format!(
            "run saved, waiting for approval. Continue with: switchboard runs resume {}, or \
             switchboard chat --session {}",
            run_id.unwrap_or_default(),
            session.unwrap_or_default()
        ));
    }
    Ok(code)
}

/// Reason why a run stopped before its normal end. `No` means that it was not stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyStop {
    No,
    /// A signal interrupted the program, which therefore ends.
    Interrupted,
    /// The user cancelled the run with Ctrl-C. The program continues.
    Cancelled,
    /// The user pressed Ctrl-C a second time and does not wait until the run has ended.
    Paused,
}

/// Passes the events of a run to `show` and the audit. Returns the exit code of the run and the
/// reason why it stopped. While a question is on the screen, events are delayed, so that their
/// output does not appear inside the question.
///
/// The first interruption cancels the run. After the second one, the function returns immediately.
/// Ctrl-C presses in `presses` have the same effects, but the program continues.
pub(crate) async fn process_events(
    run: &mut ActiveRun,
    recorder: &mut AuditRecorder,
    screen: &Screen,
    interrupts: &Interrupts,
    mut presses: Option<CtrlCPresses>,
    mut show: impl FnMut(&RunEvent) -> io::Result<()>,
) -> Result<(Code, EarlyStop), Failure> {
    let cancel = run.cancel_handle();
    let (mut code, mut stop) = (Code::Failed, EarlyStop::No);
    let mut held: VecDeque<Arc<RunEvent>> = VecDeque::new();
    let mut is_over = false;
    loop {
        let event = if screen.is_question_open() {
            None
        } else {
            held.pop_front()
        };
        if let Some(event) = event {
            recorder.record_event(&event).await;
            show(&event)?;
            match &event.kind {
                RunEventKind::RunFinished { report } => {
                    code = outcome_exit_code(report.outcome);
                    print_unapproved_calls(report);
                }
                RunEventKind::RunParked { .. } => code = Code::Waiting,
                _ => {}
            }
        } else if is_over && held.is_empty() && !screen.is_question_open() {
            return Ok((code, stop));
        }
        tokio::select! {
            biased;
            () = interrupts.wait_for_second_interruption() => {
                return Ok((code, EarlyStop::Interrupted));
            }
            () = interrupts.wait_for_first_interruption(), if stop != EarlyStop::Interrupted => {
                stop = EarlyStop::Interrupted;
                cancel.cancel_run();
            }
            () = wait_for_ctrl_c_press(presses.as_mut()), if stop != EarlyStop::Interrupted => {
                if stop == EarlyStop::Cancelled {
                    return Ok((code, EarlyStop::Paused));
                }
                stop = EarlyStop::Cancelled;
                cancel.cancel_run();
            }
            () = screen.wait_for_no_question(), if !held.is_empty() || is_over => {}
            event = run.next_event(), if !is_over => match event {
                Some(event) => held.push_back(event),
                None => is_over = true,
            },
        }
    }
}

/// Prints the tool calls that were denied because no person was present, and how to allow them.
fn print_unapproved_calls(report: &RunReport) {
    let calls = report.tool_calls.iter();
    let mut tools: Vec<String> = calls
        .filter(|call| call.failure == Some(ToolFailure::NotApproved))
        .map(|call| format!("`{}`", terminal::to_one_line(&call.tool, 64)))
        .collect();
    tools.dedup();
    if tools.is_empty() || terminal::is_interactive() {
        return;
    }
    terminal::print_note(&format!(
        "not run, because no terminal is available to approve them: {}. Allow such calls with \
         `--approve all`, or store the run for a decision with `--approve later`",
        tools.join(", ")
    ));
}

fn outcome_exit_code(outcome: Outcome) -> Code {
    match outcome {
        Outcome::Completed => Code::Success,
        Outcome::Limited => Code::Limited,
        Outcome::Failed => Code::Failed,
        Outcome::Cancelled => Code::Interrupted,
    }
}

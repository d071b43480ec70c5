//! Follows a run from the start of its servers to its exit code.

pub(crate) mod running;
pub(crate) mod startup;

use std::{io, sync::Arc};

use anyhow::anyhow;
use switchboard_domain::{ApprovalDecision, ChatModel, Elicitor, Message, SessionId};
use switchboard_mcp_client::ClientHandlers;
use switchboard_orchestration::{
    Agent, Outcome, Run, RunEvent, RunEventKind, RunParameters, RunReport, ToolFailure,
    persistence::{LeasedRun, PersistedRunEnd},
};

use super::{
    agent::{AgentArgs, Plan, ResumedArgs},
    context::{self, Context},
    conversations::{Conversations, with_remedy},
    failure::{Code, Failure},
    interrupts::{Interrupts, Presses},
    servers::Servers,
    unmatched,
};
use running::Running;
use startup::{ready, startup_wait};

use crate::{
    models::{ChoiceReason, Chosen, current_model::CurrentModel},
    observe::{AuditLog, Recorder},
    storage::decisions::SavedDecisions,
    terminal::{
        self, PlainLines, PresetAnswer, Screen, TerminalElicitor,
        output::{Answer, AskOutput},
    },
};

/// The input of a run.
pub(crate) enum RunStart {
    /// A question without a session.
    Question(String),
    /// The next question of a session.
    InSession(Conversations, SessionId, String, Box<AgentArgs>),
    /// A stored run.
    Resumed(Conversations, Box<LeasedRun>),
}

/// Resumes a stored run.
pub(crate) async fn resume(
    conversations: &Conversations,
    mut taken: LeasedRun,
    answer: Option<ApprovalDecision>,
    (resumed, output): (&ResumedArgs, AskOutput),
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut plan = match resumed.plan(taken.run_mut(), context).await {
        Ok(plan) => plan,
        Err(failure) => {
            taken.release().await;
            return Err(failure);
        }
    };
    let begun = RunParameters::read(taken.record().parameters.as_ref());
    plan.no_tools = begun.is_some_and(|begun| begun.without_tools);
    plan.preset = presets(taken.run(), answer.as_ref());
    let start = RunStart::Resumed(conversations.clone(), Box::new(taken));
    execute(plan, output, context, interrupts, start).await
}

/// Returns the same answer for every pending approval request.
fn presets(run: &Run, answer: Option<&ApprovalDecision>) -> Vec<PresetAnswer> {
    let answers = answer.into_iter().flat_map(|answer| {
        let open = run.pending_approvals().into_iter();
        open.map(|request| PresetAnswer {
            id: request.tool_use.id.clone(),
            fingerprint: request.fingerprint.clone(),
            decision: answer.clone(),
        })
    });
    answers.collect()
}

pub(crate) async fn execute(
    plan: Plan,
    output: AskOutput,
    context: &Context,
    interrupts: &Interrupts,
    start: RunStart,
) -> Result<Code, Failure> {
    let mut servers = if plan.no_tools {
        Servers::none()
    } else {
        context.servers()?
    };
    let screen = Screen::new(output == AskOutput::Text);
    servers.options.client_handlers = answering(&screen, &plan.sampled);
    let host = Arc::new(context::start(servers)?);
    let model = plan.chosen.model.id().clone();
    let (audit, decisions) = match open_stores(context) {
        Ok(read) => read,
        Err(failure) => {
            if let RunStart::Resumed(_, taken) = start {
                taken.release().await;
            }
            context::close(&host, interrupts).await;
            return Err(failure);
        }
    };
    let session = match &start {
        RunStart::InSession(_, session, ..) => Some(session.0.clone()),
        RunStart::Resumed(_, taken) => Some(taken.record().session.0.clone()),
        RunStart::Question(_) => None,
    };
    let mut recorder = audit.run(session.clone(), None);
    let mut answer = Answer::new(output);
    let result = match ready(&host, startup_wait(context), &screen, interrupts).await {
        Ok(()) => {
            unmatched::warn(&context.config, &host).await;
            // The changed tools are known only now.
            let agent = plan.agent(context, &host, &screen, &decisions);
            match begin(&agent, start, context, &screen).await {
                Ok(run) => follow(run, &screen, &mut answer, &mut recorder, interrupts).await,
                Err(failure) => Err(failure),
            }
        }
        Err(early) => {
            if let RunStart::Resumed(_, taken) = start {
                taken.release().await;
            }
            early.report(session, &model, &screen, &mut answer)
        }
    };
    if let Err(error) = decisions.save() {
        terminal::print_warning(&format!("failed to save your approval decisions: {error}"));
    }
    tokio::join!(context::close(&host, interrupts), audit.flush());
    result
}

/// Opens the audit and the remembered decisions.
fn open_stores(context: &Context) -> Result<(AuditLog, SavedDecisions), Failure> {
    let audit = AuditLog::open(&context.config, &context.environment).map_err(Failure::usage)?;
    let decisions = SavedDecisions::load(&context.environment).map_err(Failure::usage)?;
    Ok((audit, decisions))
}

async fn begin(
    agent: &Agent,
    start: RunStart,
    context: &Context,
    screen: &Screen,
) -> Result<Running, Failure> {
    let screen = screen.clone();
    Ok(match start {
        RunStart::Question(question) => Running::ephemeral(agent.ask(question), screen),
        RunStart::Resumed(conversations, taken) => {
            Running::persisted(conversations.durable_runs.resume(agent, *taken), screen)
        }
        RunStart::InSession(conversations, session, question, args) => {
            let message = Arc::new(Message::user(question));
            let parameters = args.run_parameters(context, agent).stored();
            let begun = conversations.durable_runs;
            let begun = begun.begin_with(agent, &session, vec![message], parameters);
            let run = begun
                .await
                .map_err(|error| Failure::usage(with_remedy(error)))?;
            Running::persisted(run, screen)
        }
    })
}

/// Prints the name of an automatically chosen model.
pub(crate) fn print_chosen_model(chosen: &Chosen, context: &Context) {
    match chosen.reason {
        ChoiceReason::NothingElse => terminal::print_note(&nothing_else(context)),
        ChoiceReason::Answers => terminal::print_note(&format!(
            "no key is set, so the local {} is asked",
            chosen.model.id()
        )),
        ChoiceReason::Named | ChoiceReason::Key(_) => {}
    }
}

/// Returns the handlers of server requests: the person at the terminal, and the model for sampling.
fn answering(screen: &Screen, model: &Arc<dyn ChatModel>) -> ClientHandlers {
    let elicitor = terminal::is_interactive().then(|| {
        Arc::new(TerminalElicitor::new(screen.clone(), Arc::new(PlainLines))) as Arc<dyn Elicitor>
    });
    ClientHandlers {
        elicitor,
        sampler: Some(Arc::new(CurrentModel::new(Arc::clone(model)))),
        ..ClientHandlers::default()
    }
}

/// Prints a run as it happens.
async fn follow(
    mut run: Running,
    screen: &Screen,
    answer: &mut Answer,
    recorder: &mut Recorder,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut run_id = None;
    // A closed output drops the run and with it the request and the calls.
    let show = |event: &RunEvent| {
        run_id.get_or_insert_with(|| Arc::clone(&event.run_id));
        answer.show(event, screen)
    };
    let code = match events(&mut run, recorder, interrupts, None, show).await? {
        (_, Stop::Interrupted) => Code::Interrupted,
        (code, _) => code,
    };
    if let Some(PersistedRunEnd::Failed(error)) = run.end() {
        let failure = anyhow!("the answer could not be saved: {error}");
        return Err(Failure::run(failure));
    }
    if code == Code::Waiting {
        let session = run.session().map(ToString::to_string);
        terminal::print_note(&format!(
            "run saved, waiting for approval. Continue with: switchboard runs resume {}, or \
             switchboard chat --session {}",
            run_id.unwrap_or_default(),
            session.unwrap_or_default()
        ));
    }
    Ok(code)
}

/// Why a run was left or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    /// A signal interrupted the program.
    Interrupted,
    /// Ctrl-C cancelled the run.
    Cancelled,
    /// A second Ctrl-C left the run before its end.
    Paused,
}

/// Passes the events of a run to `show` and the audit. Returns the exit code of the run.
///
/// The first interruption cancels the run; the second one returns at once. So do `presses` of
/// Ctrl-C, which do not end the program.
pub(crate) async fn events(
    run: &mut Running,
    recorder: &mut Recorder,
    interrupts: &Interrupts,
    mut presses: Option<&mut Presses>,
    mut show: impl FnMut(&RunEvent) -> io::Result<()>,
) -> Result<(Code, Stop), Failure> {
    let cancel = run.cancel_handle();
    let (mut code, mut stop) = (Code::Failed, Stop::No);
    loop {
        let key = async {
            match &mut presses {
                Some(presses) => presses.next().await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            () = interrupts.second() => return Ok((code, Stop::Interrupted)),
            () = interrupts.first(), if stop != Stop::Interrupted => {
                stop = Stop::Interrupted;
                cancel.cancel();
                continue;
            }
            () = key, if stop != Stop::Interrupted => {
                if stop == Stop::Cancelled {
                    return Ok((code, Stop::Paused));
                }
                stop = Stop::Cancelled;
                cancel.cancel();
                continue;
            }
            event = run.next() => event,
        };
        let Some(event) = event else {
            return Ok((code, stop));
        };
        recorder.observe(&event);
        show(&event)?;
        match &event.kind {
            RunEventKind::RunFinished { report } => {
                code = code_of(report.outcome);
                print_unapproved_calls(report);
            }
            RunEventKind::RunParked { .. } => code = Code::Waiting,
            _ => {}
        }
    }
}

/// Prints the calls that were not approved because no person was present, and how to allow them.
fn print_unapproved_calls(report: &RunReport) {
    let calls = report.tool_calls.iter();
    let mut tools: Vec<String> = calls
        .filter(|call| call.failure == Some(ToolFailure::NotApproved))
        .map(|call| format!("`{}`", terminal::one_line(&call.tool, 64)))
        .collect();
    tools.dedup();
    if tools.is_empty() || terminal::is_interactive() {
        return;
    }
    let (verb, them) = if tools.len() == 1 {
        ("was", "it")
    } else {
        ("were", "them")
    };
    terminal::print_note(&format!(
        "{} {verb} not run: nobody is there to approve {them}; allow {them} with `--approve all`, \
         or store the run \
         for a decision with `--approve later`",
        tools.join(", ")
    ));
}

pub(crate) fn code_of(outcome: Outcome) -> Code {
    match outcome {
        Outcome::Completed => Code::Success,
        Outcome::Limited => Code::Limited,
        Outcome::Failed => Code::Failed,
        Outcome::Cancelled => Code::Interrupted,
    }
}

fn nothing_else(context: &Context) -> String {
    let mut variables: Vec<&str> = context
        .providers
        .iter()
        .filter_map(|provider| provider.key_variable())
        .collect();
    // Two wires of one vendor share a key.
    variables.dedup();
    format!(
        "no key is set ({}), so offline/planner answers: it matches words and is not a language \
         model; \
         set a key or name a model with --model",
        variables.join(", ")
    )
}

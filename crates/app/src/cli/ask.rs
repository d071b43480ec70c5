//! `ask`: one question, one answer.

use std::{
    io::{IsTerminal as _, Read as _},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use switchboard_domain::{ApprovalDecision, ChatModel, Elicitor, ModelId, ToolHost as _, Usage};
use switchboard_mcp_client::{Answering, HostError, McpHost, ServerState};
use switchboard_orchestration::{
    Agent, Outcome, Run, RunError, RunErrorKind, RunEvent, RunEventKind, RunReport, RunStream,
};
use uuid::Uuid;

use super::{
    AskOutput, Code, Failure, Global,
    agent::{AgentArgs, Plan, ResumedArgs},
    changed,
    context::{self, Context},
    interrupt::Interrupts,
    output::Answer,
};
use crate::{
    decisions::KeptDecisions,
    environment::Environment,
    model::{Because, Chosen},
    observe::{AuditLog, Recorder},
    runs::StoredRuns,
    sampler::ModelSampler,
    servers::Servers,
    terminal::{self, PresetAnswer, Screen, TerminalElicitor},
};

/// Answers one question.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// The question; - reads it from standard input
    question: String,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    shown: Shown,
}

/// How an answer is shown, and where everything else is configured.
#[derive(Debug, Args)]
pub(super) struct Shown {
    /// The form of the answer on standard output
    #[arg(short, long, value_enum, default_value_t, env = "SWITCHBOARD_OUTPUT")]
    output: AskOutput,
    #[command(flatten)]
    global: Global,
}

pub(super) async fn run(
    args: AskArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let context = Context::load(&args.shown.global, environment)?;
    let plan = args.agent.plan(&context).await?;
    let question = question(&args.question)?;
    say_choice(&plan.chosen, &context);
    let ask = |agent: &Agent| agent.ask(question);
    carry_out(plan, args.shown.output, &context, interrupts, ask).await
}

/// Goes on with a run that was stored.
pub(super) async fn resume(
    mut run: Run,
    runs: StoredRuns,
    answer: Option<ApprovalDecision>,
    (resumed, shown): (&ResumedArgs, &Shown),
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let context = Context::load(&shown.global, environment)?;
    let mut plan = resumed.plan(&mut run, &context).await?;
    plan.runs = Some(runs);
    if let Some(answer) = answer {
        let open = run.waiting().into_iter();
        plan.preset = open
            .map(|request| PresetAnswer {
                id: request.tool_use.id.clone(),
                fingerprint: request.fingerprint.clone(),
                decision: answer.clone(),
            })
            .collect();
    }
    let resume = |agent: &Agent| agent.resume(run);
    carry_out(plan, shown.output, &context, interrupts, resume).await
}

async fn carry_out(
    plan: Plan,
    output: AskOutput,
    context: &Context,
    interrupts: &Interrupts,
    start: impl FnOnce(&Agent) -> RunStream,
) -> Result<Code, Failure> {
    let mut servers = if plan.no_tools {
        Servers::none()
    } else {
        context.servers()?
    };
    let screen = Screen::new(output == AskOutput::Text);
    servers.options.answering = answering(&screen, &plan.chosen.model);
    let audit = AuditLog::open(&context.config, &context.environment).map_err(Failure::usage)?;
    let mut recorder = audit.run(None, None);
    let decisions = KeptDecisions::load(&context.environment).map_err(Failure::usage)?;
    let host = Arc::new(context::start(servers)?);
    let model = plan.chosen.model.id().clone();
    let mut answer = Answer::new(output);
    let patience = context.config.startup_wait.unwrap_or(STARTUP_WAIT);
    let result = match ready(&host, patience, &screen, interrupts).await {
        Ok(()) => {
            // Only now is it known which tools are not what they were.
            let agent = plan.agent(context, &host, &screen, &decisions);
            let run = start(&agent);
            follow(run, &screen, &mut answer, &mut recorder, interrupts).await
        }
        Err(early) => early.report(&model, &screen, &mut answer),
    };
    if let Err(error) = decisions.keep() {
        terminal::say_warning(&format!("what you decided is not kept: {error}"));
    }
    context::close(&host, interrupts).await;
    audit.flush().await;
    result
}

/// A model that nobody named is named before it is asked.
fn say_choice(chosen: &Chosen, context: &Context) {
    match chosen.because {
        Because::NothingElse => terminal::say_note(&nothing_else(context)),
        Because::Answers => terminal::say_note(&format!(
            "no key is set, so the local {} is asked",
            chosen.model.id()
        )),
        Because::Named | Because::Key(_) => {}
    }
}

/// Who answers what servers ask: the person, if one is there, and for servers that are allowed to ask
/// it, the model.
fn answering(screen: &Screen, model: &Arc<dyn ChatModel>) -> Answering {
    let elicitor = terminal::is_somebody_there()
        .then(|| Arc::new(TerminalElicitor::new(screen.clone())) as Arc<dyn Elicitor>);
    Answering {
        elicitor,
        sampler: Some(Arc::new(ModelSampler::new(Arc::clone(model)))),
        ..Answering::default()
    }
}

/// Why a run ended before its first step.
enum Early {
    Interrupted,
    Server(HostError),
}

/// How long a question waits for servers, if the configuration does not say it: enough for what is
/// installed to start, and short enough for a person.
const STARTUP_WAIT: Duration = Duration::from_secs(5);

/// Waits for the servers: for those that are required until they are there, for the others no longer
/// than `patience`. What comes up later is offered from the next step on.
async fn ready(
    host: &McpHost,
    patience: Duration,
    screen: &Screen,
    interrupts: &Interrupts,
) -> Result<(), Early> {
    screen.wait_for("starting MCP servers");
    let result = tokio::select! {
        () = interrupts.first() => Err(Early::Interrupted),
        ready = started(host, patience) => ready.map_err(Early::Server),
    };
    screen.hold_still();
    if result.is_ok() {
        changed::warn(host);
    }
    result
}

async fn started(host: &McpHost, patience: Duration) -> Result<(), HostError> {
    let mut changes = host.changes();
    let mut settled = pin!(host.require_ready());
    if let Ok(ready) = tokio::time::timeout(patience, settled.as_mut()).await {
        return ready;
    }
    let is_missing = || {
        let servers = host.servers();
        let mut required = servers.iter().filter(|server| server.required);
        required.any(|server| server.state == ServerState::Starting)
    };
    while is_missing() {
        tokio::select! {
            ready = settled.as_mut() => return ready,
            Some(_) = changes.next() => {}
        }
    }
    Ok(())
}

impl Early {
    /// Tells it as any other end of a run: scripts wait for the object.
    fn report(
        self,
        model: &ModelId,
        screen: &Screen,
        answer: &mut Answer,
    ) -> Result<Code, Failure> {
        let (outcome, error) = match self {
            Self::Interrupted => (Outcome::Cancelled, None),
            Self::Server(error) => {
                let error = RunError {
                    kind: RunErrorKind::ServerUnavailable,
                    message: error.to_string(),
                    provider: None,
                    status: None,
                    request_id: None,
                };
                (Outcome::Failed, Some(error))
            }
        };
        let run_id = Uuid::now_v7().to_string();
        let report = RunReport {
            run_id: run_id.clone(),
            session_id: None,
            model: model.clone(),
            answer: String::new(),
            content: Vec::new(),
            outcome,
            finish_reason: None,
            steps: 0,
            usage: Usage::default(),
            tool_calls: Vec::new(),
            warnings: Vec::new(),
            error,
        };
        let event = RunEvent {
            run_id: run_id.into(),
            seq: 1,
            time: Timestamp::now(),
            kind: RunEventKind::RunFinished {
                report: Box::new(report),
            },
        };
        answer.write(&event).map_err(Failure::run)?;
        screen.show(&event.kind);
        Ok(code_of(outcome))
    }
}

/// Shows a run as it happens. The first interruption ends it properly, with every call cancelled
/// and its report written; a second one ends it at once.
async fn follow(
    mut run: RunStream,
    screen: &Screen,
    answer: &mut Answer,
    recorder: &mut Recorder,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let cancel = run.cancel_handle();
    let mut interrupted = false;
    let mut code = Code::Failed;
    loop {
        let event = tokio::select! {
            biased;
            () = interrupts.second() => return Ok(Code::Interrupted),
            () = interrupts.first(), if !interrupted => {
                interrupted = true;
                cancel.cancel();
                continue;
            }
            event = run.next() => event,
        };
        let Some(event) = event else {
            return Ok(if interrupted { Code::Interrupted } else { code });
        };
        recorder.observe(&event).await;
        // The answer's line is closed before anything else is written to the same terminal.
        let on_screen_first = matches!(event.kind, RunEventKind::TextDelta { .. });
        if on_screen_first {
            screen.show(&event.kind);
        }
        // Where nobody reads any more, the run is dropped, and with it the request and the calls.
        answer.write(&event).map_err(Failure::run)?;
        if !on_screen_first {
            screen.show(&event.kind);
        }
        match &event.kind {
            RunEventKind::RunFinished { report } => code = code_of(report.outcome),
            RunEventKind::RunParked { .. } => {
                code = Code::Waiting;
                terminal::say_note(&format!(
                    "the run waits for your word and is stored: switchboard runs resume {}",
                    event.run_id
                ));
            }
            _ => {}
        }
    }
}

fn code_of(outcome: Outcome) -> Code {
    match outcome {
        Outcome::Completed => Code::Success,
        Outcome::Limited => Code::Limited,
        Outcome::Failed => Code::Failed,
        Outcome::Cancelled => Code::Interrupted,
    }
}

fn question(text: &str) -> Result<String, Failure> {
    let question = if text == "-" {
        if std::io::stdin().is_terminal() {
            terminal::say_note("reading the question from standard input, up to Ctrl-D");
        }
        let mut question = String::new();
        std::io::stdin()
            .read_to_string(&mut question)
            .map_err(|error| {
                Failure::usage(error).context("the question on standard input is not readable text")
            })?;
        question
    } else {
        text.to_owned()
    };
    if question.trim().is_empty() {
        return Err(Failure::usage(anyhow::anyhow!(
            "the question is empty: give it as `switchboard ask \"…\"`, or `-` to read it from \
             standard input"
        )));
    }
    Ok(question)
}

fn nothing_else(context: &Context) -> String {
    let mut variables: Vec<&str> = context
        .providers
        .iter()
        .filter_map(|provider| provider.key_variable())
        .collect();
    // Two wires of one vendor share their key.
    variables.dedup();
    format!(
        "no key is set ({}), so offline/planner answers: it matches words and is no language model; \
         set a key or name a model with --model",
        variables.join(", ")
    )
}

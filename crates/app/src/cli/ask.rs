//! `ask`: one question, one answer.

use std::{
    io::{IsTerminal as _, Read as _},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use anyhow::anyhow;
use clap::Args;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use switchboard_domain::{
    ApprovalDecision, ChatModel, Elicitor, Message, ModelId, Session, SessionId, ToolHost as _,
    Usage,
};
use switchboard_mcp_client::{ClientHandlers, HostError, McpHost, ServerState};
use switchboard_orchestration::{
    Agent, BegunWith, Outcome, Run, RunError, RunErrorKind, RunEvent, RunEventKind, RunReport,
    ToolFailure,
    persistence::{KeptEnd, TakenRun},
};
use uuid::Uuid;

use super::{
    AskOutput, Code, Failure, Global,
    agent::{AgentArgs, Plan, ResumedArgs},
    changed,
    context::{self, Context},
    interrupt::Interrupts,
    output::Answer,
    piped, unmatched,
};
use crate::{
    chat::{
        Running,
        talk::{Talks, check_id, explained},
    },
    decisions::KeptDecisions,
    environment::Environment,
    model::{Because, Chosen},
    observe::{AuditLog, Recorder},
    runs::StoredRuns,
    sampler::ModelSampler,
    servers::Servers,
    tape::TapeArgs,
    terminal::{self, PresetAnswer, Screen, TerminalElicitor},
};

/// Answers one question.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// The question; - reads it from standard input. Text that is piped in beside a question is sent with it
    question: String,
    /// Go on with the conversation of this id, or begin one: it is kept
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    shown: Shown,
    #[command(flatten)]
    tape: TapeArgs,
}

/// How an answer is shown, and where everything else is configured.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// The form of the answer on standard output
    #[arg(short, long, value_enum, default_value_t, env = "SWITCHBOARD_OUTPUT")]
    pub(crate) output: AskOutput,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// What is to be answered.
enum Start {
    /// A question by itself.
    Question(String),
    /// The next question of a session.
    InSession(Talks, SessionId, String, Box<AgentArgs>),
    /// A run that was stored.
    Resumed(Box<Run>),
    /// One of a session.
    Taken(Talks, Box<TakenRun>),
}

pub(super) async fn run(
    args: AskArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut context = Context::load_for(&args.shown.global, &args.tape, environment)?;
    context.tape = args.tape.replay(&context)?;
    let mut plan = args.agent.plan(&context).await?;
    let question = question(&args.question, interrupts).await?;
    say_choice(&plan.chosen, &context);
    args.tape.begin(&mut context, &mut plan)?;
    let result = answer(args, question, plan, &context, interrupts).await;
    context.tape.finish(result)
}

async fn answer(
    args: AskArgs,
    question: String,
    plan: Plan,
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let keeps = args.session.is_some() || context.config.sessions.keep == Some(true);
    if !keeps {
        let start = Start::Question(question);
        return carry_out(plan, args.shown.output, context, interrupts, start).await;
    }
    let talks = Talks::open(&context.config, &context.environment)
        .await
        .map_err(Failure::usage)?;
    let result = match session_of(&talks, args.session.as_deref(), &question).await {
        Ok(session) => {
            let start = Start::InSession(talks.clone(), session.id, question, Box::new(args.agent));
            carry_out(plan, args.shown.output, context, interrupts, start).await
        }
        Err(failure) => Err(failure),
    };
    talks.sessions.close().await;
    result
}

/// The session that is named, begun if there is none; without a name a new one.
async fn session_of(
    talks: &Talks,
    named: Option<&str>,
    question: &str,
) -> Result<Session, Failure> {
    let found = match named {
        Some(id) => {
            check_id(id).map_err(Failure::usage)?;
            talks.named(id).await.map_err(Failure::run)?
        }
        None => None,
    };
    match found {
        Some(session) => {
            // Said before a server is started.
            let free = talks.check_free(&session.id).await;
            free.map_err(Failure::usage)?;
            Ok(session)
        }
        None => talks.begin(named, question).await.map_err(Failure::run),
    }
}

/// Goes on with a run that was stored.
pub(super) async fn resume(
    mut run: Run,
    runs: StoredRuns,
    answer: Option<ApprovalDecision>,
    (resumed, shown): (&ResumedArgs, &Shown),
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut plan = resumed.plan(&mut run, context).await?;
    plan.runs = Some(runs);
    plan.preset = presets(&run, answer.as_ref());
    let start = Start::Resumed(Box::new(run));
    carry_out(plan, shown.output, context, interrupts, start).await
}

/// Goes on with a run of a session.
pub(super) async fn resume_taken(
    talks: &Talks,
    mut taken: TakenRun,
    answer: Option<ApprovalDecision>,
    (resumed, shown): (&ResumedArgs, &Shown),
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut plan = match resumed.plan(taken.run_mut(), context).await {
        Ok(plan) => plan,
        Err(failure) => {
            taken.leave().await;
            return Err(failure);
        }
    };
    let begun = BegunWith::read(taken.record().wish.as_ref());
    plan.no_tools = begun.is_some_and(|begun| begun.without_tools);
    plan.preset = presets(taken.run(), answer.as_ref());
    let start = Start::Taken(talks.clone(), Box::new(taken));
    carry_out(plan, shown.output, context, interrupts, start).await
}

/// One answer to everything that a run waits for.
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

async fn carry_out(
    plan: Plan,
    output: AskOutput,
    context: &Context,
    interrupts: &Interrupts,
    start: Start,
) -> Result<Code, Failure> {
    let mut servers = if plan.no_tools {
        Servers::none()
    } else {
        context.servers()?
    };
    let screen = Screen::new(output == AskOutput::Text);
    servers.options.client_handlers = answering(&screen, &plan.sampled);
    // The servers are what is waited for: all else is read while they come up.
    let host = Arc::new(context::start(servers)?);
    // Now, and not when something is first waited for.
    tokio::task::yield_now().await;
    let model = plan.chosen.model.id().clone();
    let (audit, decisions) = match remembered(context) {
        Ok(read) => read,
        Err(failure) => {
            if let Start::Taken(_, taken) = start {
                // It waits as before.
                taken.leave().await;
            }
            context::close(&host, interrupts).await;
            return Err(failure);
        }
    };
    let session = match &start {
        Start::InSession(_, session, ..) => Some(session.0.clone()),
        Start::Taken(_, taken) => Some(taken.record().session.0.clone()),
        _ => None,
    };
    let mut recorder = audit.run(session.clone(), None);
    let mut answer = Answer::new(output);
    let result = match ready(&host, patience(context), &screen, interrupts).await {
        Ok(()) => {
            unmatched::warn(&context.config.run, &host).await;
            // Only now is it known which tools are not what they were.
            let agent = plan.agent(context, &host, &screen, &decisions);
            match begin(&agent, start, context, &screen).await {
                Ok(run) => follow(run, &screen, &mut answer, &mut recorder, interrupts).await,
                Err(failure) => Err(failure),
            }
        }
        Err(early) => {
            if let Start::Taken(_, taken) = start {
                // It waits as before.
                taken.leave().await;
            }
            early.report(session, &model, &screen, &mut answer)
        }
    };
    if let Err(error) = decisions.keep() {
        terminal::say_warning(&format!("what you decided is not kept: {error}"));
    }
    // Nothing more is written down, and both wait for others.
    tokio::join!(context::close(&host, interrupts), audit.flush());
    result
}

/// Where what is done is written down, and what was decided before.
fn remembered(context: &Context) -> Result<(AuditLog, KeptDecisions), Failure> {
    let audit = AuditLog::open(&context.config, &context.environment).map_err(Failure::usage)?;
    let decisions = KeptDecisions::load(&context.environment).map_err(Failure::usage)?;
    Ok((audit, decisions))
}

async fn begin(
    agent: &Agent,
    start: Start,
    context: &Context,
    screen: &Screen,
) -> Result<Running, Failure> {
    let screen = screen.clone();
    Ok(match start {
        Start::Question(question) => Running::loose(agent.ask(question), screen),
        Start::Resumed(run) => Running::loose(agent.resume(*run), screen),
        Start::Taken(talks, taken) => Running::kept(talks.journal.go_on(agent, *taken), screen),
        Start::InSession(talks, session, question, args) => {
            let message = Arc::new(Message::user(question));
            let wish = args.begun_with(context, agent).stored();
            let begun = talks.journal;
            let begun = begun.begin_with(agent, &session, vec![message], wish);
            let run = begun
                .await
                .map_err(|error| Failure::usage(explained(error)))?;
            Running::kept(run, screen)
        }
    })
}

/// A model that nobody named is named before it is asked.
pub(crate) fn say_choice(chosen: &Chosen, context: &Context) {
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
fn answering(screen: &Screen, model: &Arc<dyn ChatModel>) -> ClientHandlers {
    let elicitor = terminal::is_somebody_there()
        .then(|| Arc::new(TerminalElicitor::new(screen.clone())) as Arc<dyn Elicitor>);
    ClientHandlers {
        elicitor,
        sampler: Some(Arc::new(ModelSampler::new(Arc::clone(model)))),
        ..ClientHandlers::default()
    }
}

/// Why a run ended before its first step.
pub(crate) enum Early {
    Interrupted,
    Server(HostError),
}

/// How long a question waits for servers, if the configuration does not say it: enough for what is
/// installed to start, and short enough for a person.
const STARTUP_WAIT: Duration = Duration::from_secs(5);

/// How long a question waits for servers.
pub(crate) fn patience(context: &Context) -> Duration {
    context.config.startup_wait.unwrap_or(STARTUP_WAIT)
}

/// Waits for the servers: for those that are required until they are there, for the others no longer
/// than `patience`. What comes up later is offered from the next step on.
pub(crate) async fn ready(
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
        session_id: Option<String>,
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
            session_id,
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
    mut run: Running,
    screen: &Screen,
    answer: &mut Answer,
    recorder: &mut Recorder,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let cancel = run.cancel_handle();
    let session = run.session().cloned();
    let mut interrupted = false;
    let mut code = Code::Failed;
    loop {
        let event = tokio::select! {
            biased;
            () = interrupts.second() => {
                // What was said was said; whether anybody reads it no longer matters.
                let _ = answer.flush();
                return Ok(Code::Interrupted);
            }
            () = interrupts.first(), if !interrupted => {
                interrupted = true;
                cancel.cancel();
                continue;
            }
            event = run.next() => event,
            // What came together is written together, and before anything is waited for.
            () = std::future::ready(()), if answer.holds() => {
                answer.flush().map_err(Failure::run)?;
                continue;
            }
        };
        let Some(event) = event else {
            answer.flush().map_err(Failure::run)?;
            if let Some(KeptEnd::Failed(error)) = run.end() {
                let failure = anyhow!("the answer could not be kept: {error}");
                return Err(Failure::run(failure));
            }
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
            answer.flush().map_err(Failure::run)?;
            screen.show(&event.kind);
        }
        match &event.kind {
            RunEventKind::RunFinished { report } => {
                code = code_of(report.outcome);
                say_unapproved(report);
            }
            RunEventKind::RunParked { .. } => {
                code = Code::Waiting;
                let way_on = match &session {
                    Some(session) => format!("switchboard chat --session {session}"),
                    None => format!("switchboard runs resume {}", event.run_id),
                };
                terminal::say_note(&format!(
                    "the run waits for your word and is stored: {way_on}"
                ));
            }
            _ => {}
        }
    }
}

/// Says which calls were not run because nobody was there to approve them, and how to allow them.
pub(crate) fn say_unapproved(report: &RunReport) {
    let calls = report.tool_calls.iter();
    let mut tools: Vec<String> = calls
        .filter(|call| call.failure == Some(ToolFailure::NotApproved))
        .map(|call| format!("`{}`", terminal::one_line(&call.tool, 64)))
        .collect();
    tools.dedup();
    if tools.is_empty() || terminal::is_somebody_there() {
        return;
    }
    let (verb, them) = if tools.len() == 1 {
        ("was", "it")
    } else {
        ("were", "them")
    };
    terminal::say_note(&format!(
        "{} {verb} not run: nobody is there to approve {them}; allow {them} with `--approve all`, or store the run \
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

async fn question(text: &str, interrupts: &Interrupts) -> Result<String, Failure> {
    let is_input = text == "-";
    let question = if is_input {
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
    if is_input {
        return Ok(question);
    }
    piped::with_piped_text(question, interrupts).await
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

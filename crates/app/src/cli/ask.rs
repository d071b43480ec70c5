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
use switchboard_domain::{ChatModel, Elicitor, ModelId, Sampling, ToolHost as _, Usage};
use switchboard_mcp_client::{Answering, HostError, McpHost, ServerState};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, Limits, Outcome, RunError, RunErrorKind, RunEvent, RunEventKind,
    RunOptions, RunReport, RunStream,
};
use uuid::Uuid;

use super::{
    Approve, AskOutput, Code, Failure, Global,
    context::{self, Context},
    interrupt::Interrupts,
    output::Answer,
};
use crate::{
    environment::Environment,
    model::Because,
    sampler::ModelSampler,
    servers::Servers,
    terminal::{self, Screen, TerminalApprover, TerminalElicitor},
};

/// Answers one question.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// The question; - reads it from standard input
    question: String,
    /// The model to ask, such as anthropic/claude-sonnet-5-5; a provider alone means its default
    #[arg(short, long, value_name = "PROVIDER/MODEL", env = "SWITCHBOARD_MODEL")]
    model: Option<String>,
    /// The form of the answer on standard output
    #[arg(short, long, value_enum, default_value_t, env = "SWITCHBOARD_OUTPUT")]
    output: AskOutput,
    /// Which tool calls need your word; without this and a configuration, none do
    #[arg(long, value_enum, env = "SWITCHBOARD_APPROVE")]
    approve: Option<Approve>,
    /// Ask the model this many times at most
    #[arg(
        long,
        value_name = "N",
        env = "SWITCHBOARD_MAX_STEPS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    max_steps: Option<u32>,
    /// Start no MCP server and offer no tools
    #[arg(long)]
    no_tools: bool,
    #[command(flatten)]
    global: Global,
}

pub(super) async fn run(
    args: AskArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let context = Context::load(&args.global, environment)?;
    let chosen = context.choose_model(args.model.as_deref()).await?;
    let question = question(&args.question)?;
    match chosen.because {
        Because::NothingElse => terminal::say_note(&nothing_else(&context)),
        Because::Answers => terminal::say_note(&format!(
            "no key is set, so the local {} is asked",
            chosen.model.id()
        )),
        Because::Named | Because::Key(_) => {}
    }
    let mut servers = if args.no_tools {
        Servers::none()
    } else {
        context.servers()?
    };
    let options = options(&args, &context);
    let screen = Screen::new(args.output == AskOutput::Text);
    servers.options.answering = answering(&screen, &chosen.model);
    let host = Arc::new(context::start(servers)?);
    let model = chosen.model.id().clone();
    let mut agent = Agent::new(chosen.model)
        .with_tools(Arc::clone(&host) as _)
        .with_options(options)
        .with_approver(Arc::new(TerminalApprover::new(screen.clone())));
    if let Some(instructions) = &context.config.instructions {
        agent = agent.with_instructions(instructions);
    }
    let mut answer = Answer::new(args.output);
    let patience = context.config.startup_wait.unwrap_or(STARTUP_WAIT);
    let result = match ready(&host, patience, &screen, interrupts).await {
        Ok(()) => follow(agent.ask(question), &screen, &mut answer, interrupts).await,
        Err(early) => early.report(&model, &screen, &mut answer),
    };
    context::close(&host, interrupts).await;
    result
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
        if let RunEventKind::RunFinished { report } = &event.kind {
            code = code_of(report.outcome);
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

fn options(args: &AskArgs, context: &Context) -> RunOptions {
    let config = &context.config;
    let mut options = RunOptions {
        sampling: Sampling {
            temperature: config.temperature,
            ..Sampling::default()
        },
        max_output_tokens: config.max_output_tokens,
        reasoning: config.reasoning,
        approval: args
            .approve
            .map(ApprovalPolicy::from)
            .or(config.approve)
            .unwrap_or_default(),
        ..RunOptions::default()
    };
    if let Some(steps) = args.max_steps.or(config.max_steps) {
        options.limits = Limits::steps(steps);
    }
    options
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

//! `ask`: one question, one answer.

use std::{
    io::{IsTerminal as _, Read as _},
    sync::Arc,
};

use clap::Args;
use futures_util::StreamExt as _;
use switchboard_domain::Sampling;
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{
    Agent, ApprovalPolicy, Limits, Outcome, RunEventKind, RunOptions, RunStream,
};

use super::{
    Approve, AskOutput, Code, Failure, Global,
    context::{self, Context},
    interrupt::interrupted,
    output::Answer,
};
use crate::{
    environment::Environment,
    model::Because,
    servers::Servers,
    terminal::{self, Screen, TerminalApprover},
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
}

pub(super) async fn run(
    args: AskArgs,
    global: &Global,
    environment: Environment,
) -> Result<Code, Failure> {
    let context = Context::load(global, environment)?;
    let chosen = context.choose_model(args.model.as_deref())?;
    let question = question(&args.question)?;
    if chosen.because == Because::NothingElse {
        terminal::say_note(&nothing_else(&context));
    }
    let servers = if args.no_tools {
        Servers::none()
    } else {
        context.servers()?
    };
    let options = options(&args, &context);
    let host = Arc::new(context::start(servers)?);
    let screen = Screen::new(args.output == AskOutput::Text);
    let mut agent = Agent::new(chosen.model)
        .with_tools(Arc::clone(&host) as _)
        .with_options(options)
        .with_approver(Arc::new(TerminalApprover::new(screen.clone())));
    if let Some(instructions) = &context.config.instructions {
        agent = agent.with_instructions(instructions);
    }
    let result = answer(&agent, &host, question, &screen, Answer::new(args.output)).await;
    host.close().await;
    result
}

async fn answer(
    agent: &Agent,
    host: &McpHost,
    question: String,
    screen: &Screen,
    answer: Answer,
) -> Result<Code, Failure> {
    screen.wait_for("starting MCP servers");
    tokio::select! {
        () = interrupted() => {
            screen.hold_still();
            terminal::say_note("interrupted");
            return Ok(Code::Interrupted);
        }
        ready = host.require_ready() => {
            screen.hold_still();
            ready.map_err(Failure::run)?;
        }
    }
    follow(agent.ask(question), screen, answer).await
}

/// Shows a run as it happens. The first interruption ends it properly, with every call cancelled
/// and its report written; a second one ends the program at once.
async fn follow(mut run: RunStream, screen: &Screen, mut answer: Answer) -> Result<Code, Failure> {
    let cancel = run.cancel_handle();
    let mut stop = Box::pin(interrupted());
    let mut stopping = false;
    let mut code = Code::Failed;
    loop {
        let event = tokio::select! {
            biased;
            () = &mut stop => {
                if stopping {
                    return Ok(Code::Interrupted);
                }
                stopping = true;
                cancel.cancel();
                stop = Box::pin(interrupted());
                continue;
            }
            event = run.next() => event,
        };
        let Some(event) = event else {
            return Ok(code);
        };
        // The answer's line is closed before anything else is written to the same terminal.
        let on_screen_first = matches!(event.kind, RunEventKind::TextDelta { .. });
        if on_screen_first {
            screen.show(&event.kind);
        }
        if let Err(error) = answer.write(&event) {
            // `ask … | head -1` has what it wanted.
            return if error.kind() == std::io::ErrorKind::BrokenPipe {
                Ok(Code::Success)
            } else {
                Err(Failure::run(error).context("the answer cannot be written"))
            };
        }
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
    let variables: Vec<&str> = context
        .providers
        .iter()
        .filter_map(|provider| provider.key_variable())
        .collect();
    format!(
        "no key is set ({}), so offline/planner answers: it matches words and is no language model; \
         set a key or name a model with --model",
        variables.join(", ")
    )
}

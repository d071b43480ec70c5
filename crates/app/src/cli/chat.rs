//! `chat`: a conversation that is kept.

use clap::Args;

use super::{Code, Failure, agent::AgentArgs, ask::Shown, context::Context, interrupt::Interrupts};
use crate::{
    chat::{self, Beginning},
    environment::Environment,
    tape::TapeArgs,
};

/// Talks with a model and its tools.
#[derive(Debug, Args)]
pub(super) struct ChatArgs {
    /// Go on with the conversation of this id, or begin one
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    session: Option<String>,
    /// Go on with the last conversation
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    shown: Shown,
    #[command(flatten)]
    tape: TapeArgs,
}

pub(super) async fn run(
    args: ChatArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut context = Context::load_for(&args.shown.global, &args.tape, environment)?;
    context.tape = args.tape.replay(&context)?;
    let beginning = Beginning {
        session: args.session,
        resume: args.resume,
        tape: args.tape,
    };
    // Too much for the stack.
    Box::pin(chat::run(
        args.agent,
        args.shown.output,
        beginning,
        context,
        interrupts,
    ))
    .await
}

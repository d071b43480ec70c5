//! `chat`: a saved conversation.

use clap::Args;

use crate::run_session::{
    agent::AgentArgs,
    arguments::OutputArgs,
    context::Context,
    failure::{Code, Failure},
    interrupts::Interrupts,
};
use crate::{
    chat::{self, ChatStart},
    config::environment::Environment,
    run_session::recording::RecordingArgs,
};

/// Arguments of `chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// Continue or start the conversation with this id
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    session: Option<String>,
    /// Continue the last conversation
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    shown: OutputArgs,
    #[command(flatten)]
    recording: RecordingArgs,
}

pub(crate) async fn run(
    args: ChatArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut context = Context::load_for(&args.shown.global, &args.recording, environment)?;
    context.recording = args.recording.replay(&context)?;
    let beginning = ChatStart {
        session: args.session,
        resume: args.resume,
        recording: args.recording,
    };
    Box::pin(chat::run(
        args.agent,
        args.shown.output,
        beginning,
        context,
        interrupts,
    ))
    .await
}

//! Command `ask`: answers one question.

mod piped_input;

use std::io::{IsTerminal as _, Read as _};

use anyhow::{Context as _, anyhow};
use clap::Args;
use switchboard_domain::Session;

use crate::{
    run_session::{
        agent::{AgentPlan, ConversationArgs},
        context::{Context, Process},
        conversations::{SavedConversations, check_session_id},
        failure::{Code, Failure},
        interrupts::Interrupts,
        terminal_run::{RunSource, execute_run, print_chosen_model},
    },
    terminal,
};

/// Command-line arguments of `switchboard ask`.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Question to answer; - reads it from standard input. Piped text is appended to the question
    question: String,
    #[command(flatten)]
    conversation: ConversationArgs,
}

pub(crate) async fn execute(args: AskArgs, process: Process<'_>) -> Result<Code, Failure> {
    let (text, args) = (args.question, args.conversation);
    let mut context =
        Context::load_context_with_replay(&args.global, &args.recording, process.environment)?;
    let mut plan = args.agent.plan_agent(&context).await?;
    context.add_recipe_servers(plan.recipe.as_deref())?;
    let question = read_question(&text, process.interrupts).await?;
    print_chosen_model(&plan.chosen);
    plan.start_recording(&args.recording, &mut context)?;
    let result = answer_question(args, question, plan, &context, process.interrupts).await;
    context.recording.finish_recording(result)
}

async fn answer_question(
    args: ConversationArgs,
    question: String,
    plan: AgentPlan,
    context: &Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    // With `--approve later`, a run may be stored until the user decides, so its session must be
    // stored too.
    let keeps = args.session.is_some() || context.config.sessions.keep == Some(true) || plan.later;
    if !keeps {
        let start = RunSource::Question(question);
        return execute_run(plan, args.output, context, interrupts, start).await;
    }
    let opened = SavedConversations::open_conversations(context).await;
    let conversations = opened.map_err(Failure::usage_error)?;
    let result =
        match find_or_create_session(&conversations, args.session.as_deref(), &question).await {
            Ok(session) => {
                let (saved, agent) = (conversations.clone(), Box::new(args.agent));
                let start = RunSource::InSession(saved, session.id, question, agent);
                execute_run(plan, args.output, context, interrupts, start).await
            }
            Err(failure) => Err(failure),
        };
    conversations.sessions.close_store().await;
    result
}

/// Returns the session with the requested id, and creates it if necessary. If no id was requested,
/// creates a session with a new id.
async fn find_or_create_session(
    conversations: &SavedConversations,
    named: Option<&str>,
    question: &str,
) -> Result<Session, Failure> {
    let found = match named {
        Some(id) => {
            check_session_id(id).map_err(Failure::usage_error)?;
            conversations.find_session(id).await?
        }
        None => None,
    };
    match found {
        Some(session) => {
            // Reports an unfinished run of the session as an error before any MCP server starts.
            let free = conversations.check_no_unfinished_run(&session.id).await;
            free.map_err(Failure::usage_error)?;
            Ok(session)
        }
        None => conversations
            .create_session(named, question)
            .await
            .map_err(Failure::runtime_error),
    }
}

async fn read_question(text: &str, interrupts: &Interrupts) -> Result<String, Failure> {
    let is_input = text == "-";
    let question = if is_input {
        if std::io::stdin().is_terminal() {
            terminal::print_note(
                "reading the question from standard input; press Ctrl-D to end it",
            );
        }
        let mut question = String::new();
        std::io::stdin()
            .read_to_string(&mut question)
            .context("cannot read the question from standard input")
            .map_err(Failure::usage_error)?;
        question
    } else {
        text.to_owned()
    };
    if question.trim().is_empty() {
        return Err(Failure::usage_error(anyhow!(
            "the question is empty: give it as `switchboard ask \"…\"`, or `-` to read it from \
             standard input"
        )));
    }
    if is_input {
        return Ok(question);
    }
    piped_input::append_piped_text(question, interrupts).await
}

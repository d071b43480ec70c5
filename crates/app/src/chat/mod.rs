//! Command `chat`: a conversation at a terminal or over a pipe. [`Chat`] executes slash commands
//! and answers all other input with runs of a session. The MCP servers run during the whole
//! conversation.

mod answer_question;
mod execute_command;
mod input;
mod raw_mode;
mod resume_session;
mod server_changes;
mod session_usage;
mod slash_commands;
pub(crate) mod transcript;

use std::{
    io::IsTerminal as _,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context as _, anyhow};
use clap::Args;
use switchboard_domain::{Elicitor, ModelId, Session, SessionId};
use switchboard_orchestration::Agent;

use crate::{
    config::environment::Environment,
    models::current_model::CurrentModelSampler,
    run_session::{
        agent::{AgentArgs, AgentPlan, ConversationArgs},
        context::{Context, Process},
        conversations::{self, SavedConversations},
        failure::{Code, Failure},
        interrupts::{Interrupts, wait_for_ctrl_c_press},
        run_resources::{RunResources, StartupFailure},
        terminal_run,
    },
    terminal::{
        self, LineReader, Screen, StdinLineReader, TerminalElicitor, answer_output::AnswerOutput,
        output::AnswerFormat, print_note,
    },
};
use input::completion::SharedNames;
use input::editor::{InputLine, LineEditor};
use raw_mode::RawMode;
use server_changes::{DuringRunElicitor, ServerStateTracker};
use slash_commands::{ChatInput, parse_chat_input};

/// Command-line arguments of `switchboard chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// Continue the last conversation
    #[arg(long, conflicts_with = "session")]
    resume: bool,
    #[command(flatten)]
    conversation: ConversationArgs,
}

/// State of a conversation of the `chat` command.
pub(crate) struct Chat<'i> {
    context: Context,
    /// Command-line options, which slash commands such as `/model` change.
    args: AgentArgs,
    interrupts: &'i Interrupts,
    /// Line editor of the terminal. `None` if `needs_line_editor` returns `false`, for example
    /// because standard input is a pipe.
    editor: Option<LineEditor>,
    asking: Arc<dyn LineReader>,
    output: AnswerOutput,
    screen: Screen,
    resources: RunResources,
    servers: ServerStateTracker,
    conversations: SavedConversations,
    agent: Agent,
    model: ModelId,
    sampled: CurrentModelSampler,
    /// `true` while a run is in progress. MCP servers may ask the user only then.
    is_running: Arc<AtomicBool>,
    /// Stored session of the conversation. `None` before the first question of a new session.
    session: Option<Session>,
    /// Session id that the user requested. The next question creates a session with this id.
    requested_id: Option<String>,
    /// Sessions in the last list of `/resume`, so that the user can select one by its number.
    listed: Vec<SessionId>,
    names: SharedNames,
    /// Exit code of the last answer or command. `chat` returns it when the conversation ends.
    code: Code,
    /// Guard that hides characters typed during a run and keeps them for the next input line.
    _raw_mode: Option<RawMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatFlow {
    Continue,
    Leave(Code),
}

/// Runs the command `chat` until the user ends the conversation.
pub(crate) async fn run_chat(args: ChatArgs, process: Process<'_>) -> Result<Code, Failure> {
    let interrupts = process.interrupts;
    let (resume, args) = (args.resume, args.conversation);
    let mut context =
        Context::load_context_with_replay(&args.global, &args.recording, process.environment)?;
    if let Some(id) = &args.session {
        conversations::check_session_id(id).map_err(Failure::usage_error)?;
    }
    let mut plan = args.agent.plan_agent(&context).await?;
    context.add_recipe_servers(plan.recipe.as_deref())?;
    terminal_run::print_chosen_model(&plan.chosen);
    let opened = SavedConversations::open_conversations(&context).await;
    let conversations = opened.map_err(Failure::usage_error)?;
    let begun = plan.start_recording(&args.recording, &mut context);
    let recording = context.recording.clone();
    let result = async {
        begun?;
        let session = args.session;
        let (agent, output, saved) = (args.agent, args.output, conversations.clone());
        let chat = start_chat(agent, output, plan, saved, context, interrupts);
        let mut chat = chat.await?;
        let result = Box::pin(chat.run_input_loop(session.as_deref(), resume)).await;
        interrupts.release_ctrl_c();
        chat.resources.close_resources(interrupts).await;
        result
    };
    let result = result.await;
    conversations.sessions.close_store().await;
    match recording.finish_recording(result) {
        Err(Failure {
            code: Code::Interrupted,
            ..
        }) => Ok(Code::Interrupted),
        result => result,
    }
}

/// Starts the MCP servers, waits for them and creates the state of the conversation. Returns an
/// error if a required server does not start or if the user interrupts the wait.
async fn start_chat(
    args: AgentArgs,
    output: AnswerFormat,
    plan: AgentPlan,
    conversations: SavedConversations,
    context: Context,
    interrupts: &Interrupts,
) -> Result<Chat<'_>, Failure> {
    let screen = Screen::new(output == AnswerFormat::Text);
    let names = SharedNames::default();
    let editor = needs_line_editor(output, &context.environment)
        .then(|| LineEditor::new(&context.environment, Arc::clone(&names), interrupts));
    let raw_mode = editor.is_some().then(RawMode::enable_raw_mode);
    let asking: Arc<dyn LineReader> = match &editor {
        Some(editor) => Arc::new(editor.clone()),
        None => Arc::new(StdinLineReader),
    };
    let is_running = Arc::new(AtomicBool::new(false));
    // Without a terminal, every line of standard input is a question to the model. An MCP server
    // therefore cannot ask the user.
    let can_ask = editor.is_some() || terminal::is_interactive();
    let elicitor = can_ask.then(|| {
        Arc::new(DuringRunElicitor {
            elicitor: TerminalElicitor::new(screen.clone(), Arc::clone(&asking)),
            is_running: Arc::clone(&is_running),
        }) as Arc<dyn Elicitor>
    });
    let sampled = CurrentModelSampler::new(Arc::clone(&plan.sampled));
    let sessions = Some(&conversations.sessions);
    let no_tools = plan.no_tools;
    let resources =
        RunResources::start_resources(&context, no_tools, sessions, elicitor, sampled.clone())?;
    let mut presses = editor.as_ref().map(|editor| editor.presses.clone());
    let interrupted = async {
        tokio::select! {
            () = interrupts.wait_for_first_interruption() => {}
            () = wait_for_ctrl_c_press(presses.as_mut()) => {}
        }
    };
    if let Err(early) = resources
        .wait_for_servers(&context, &screen, interrupted)
        .await
    {
        resources.close_resources(interrupts).await;
        return Err(match early {
            StartupFailure::Interrupted => Failure {
                code: Code::Interrupted,
                error: anyhow!("interrupted"),
            },
            StartupFailure::Server(error) => Failure::runtime_error(error),
        });
    }
    Ok(Chat {
        model: plan.chosen.model.id().clone(),
        agent: plan.build_terminal_agent(&context, &resources, &screen, &asking),
        servers: ServerStateTracker::from_host(&resources.host),
        output: AnswerOutput::new(output, |name| context.environment.get(name)),
        context,
        args,
        interrupts,
        editor,
        asking,
        screen,
        resources,
        conversations,
        sampled,
        is_running,
        session: None,
        requested_id: None,
        listed: Vec::new(),
        names,
        code: Code::Success,
        _raw_mode: raw_mode,
    })
}

/// Returns whether `chat` uses the line editor. The output format must be text, standard input,
/// output and error must be terminals, and `TERM` must be set and not `dumb`.
fn needs_line_editor(output: AnswerFormat, environment: &Environment) -> bool {
    output == AnswerFormat::Text
        && std::io::stdout().is_terminal()
        && terminal::is_interactive()
        && environment.get("TERM").is_some_and(|term| term != "dumb")
}

impl Chat<'_> {
    async fn run_input_loop(
        &mut self,
        session: Option<&str>,
        resume: bool,
    ) -> Result<Code, Failure> {
        self.update_completion_names().await;
        if self.has_line_editor() {
            self.print_greeting();
        }
        self.open_session(session, resume).await?;
        loop {
            self.print_server_changes().await;
            let line = match &self.editor {
                Some(editor) => editor.read_question(self.interrupts).await,
                None => input::stdin_lines::read_input_line(self.interrupts).await,
            };
            let line = line
                .context("failed to read the input")
                .map_err(Failure::runtime_error)?;
            if let Some(editor) = &mut self.editor {
                editor.presses.clear_ctrl_c_presses();
            }
            let flow = match line {
                InputLine::End => ChatFlow::Leave(self.code),
                InputLine::Interrupted if self.has_line_editor() => {
                    print_note("press Ctrl-D or type /quit to quit");
                    ChatFlow::Continue
                }
                InputLine::Interrupted => ChatFlow::Leave(Code::Interrupted),
                InputLine::Text(text) => match parse_chat_input(&text) {
                    ChatInput::Nothing => ChatFlow::Continue,
                    ChatInput::Question(question) => self.answer_question(question).await?,
                    ChatInput::Command(command, argument) => {
                        self.execute_command(command, argument).await?
                    }
                    ChatInput::Invalid(text) => {
                        terminal::print_warning(&text);
                        self.code = Code::Usage;
                        ChatFlow::Continue
                    }
                },
            };
            if let ChatFlow::Leave(code) = flow {
                if let (Some(session), true) = (&self.session, self.has_line_editor()) {
                    let id = &session.id;
                    print_note(&format!("to continue: switchboard chat --session {id}"));
                }
                return Ok(code);
            }
        }
    }

    fn has_line_editor(&self) -> bool {
        self.editor.is_some()
    }

    fn print_greeting(&self) {
        let source = if self.context.recording.is_replay() {
            "from a recording".to_owned()
        } else {
            let (tools, servers) =
                ServerStateTracker::count_tools_and_servers(&self.resources.host);
            let plural = |number: usize| if number == 1 { "" } else { "s" };
            let (more_tools, more_servers) = (plural(tools), plural(servers));
            format!("· {tools} tool{more_tools} from {servers} server{more_servers}")
        };
        print_note(&format!(
            "{} {source} · /help for commands, Ctrl-D to quit",
            self.model
        ));
    }

    /// Rebuilds the agent with `args`, the options after a change by a slash command. On an error,
    /// the previous agent and options stay in use.
    async fn rebuild_agent(&mut self, args: AgentArgs) -> Result<(), Failure> {
        let mut plan = args.plan_agent(&self.context).await?;
        self.context
            .check_recipe_servers(&plan)
            .map_err(Failure::usage_error)?;
        if plan.no_tools && !self.args.no_tools && !self.resources.host.server_statuses().is_empty()
        {
            print_note(
                "this recipe uses no tools; the servers keep running, but the model does not get \
                 their tools",
            );
        }
        self.model = plan.chosen.model.id().clone();
        self.sampled.replace_model(Arc::clone(&plan.sampled));
        plan.record_models(&self.context.recording);
        self.agent =
            plan.build_terminal_agent(&self.context, &self.resources, &self.screen, &self.asking);
        self.args = args;
        Ok(())
    }
}

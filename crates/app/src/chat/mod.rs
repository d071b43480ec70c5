//! `chat`: a conversation at a terminal or over a pipe.
//!
//! [`Chat`] reads input, executes slash commands and answers everything else as runs of a session.
//! The servers run during the whole conversation.

mod answer;
mod execute;
mod input;
pub(crate) mod markdown;
mod output;
mod raw_mode;
mod resume;
mod servers;
mod slash_commands;
pub(crate) mod transcript;
mod usage;

use std::{
    io::IsTerminal as _,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::anyhow;
use clap::Args;
use switchboard_domain::{Elicitor, ModelId, Session, SessionId, ToolCatalog};
use switchboard_orchestration::Agent;

use crate::{
    config::environment::Environment,
    models::current_model::CurrentModel,
    run_session::{
        agent::{AgentArgs, ConversationArgs, Plan},
        context::Context,
        conversations::{self, Conversations},
        failure::{Code, Failure},
        follow,
        interrupts::{Interrupts, next_press},
        resources::{Resources, StartupFailure},
    },
    terminal::{
        self, LineReader, PlainLines, Screen, TerminalElicitor, output::AskOutput, print_note,
    },
};
use input::completion::SharedNames;
use input::editor::{Editor, Line};
use output::Output;
use raw_mode::RawMode;
use servers::{KnownServers, WhileRunning};
use slash_commands::{ParsedLine, parse};

/// Arguments of `chat`.
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
    /// Command line options, updated by slash commands such as `/model`.
    args: AgentArgs,
    interrupts: &'i Interrupts,
    /// Line editor of the terminal. `None` if input or output is not a terminal.
    editor: Option<Editor>,
    asking: Arc<dyn LineReader>,
    output: Output,
    screen: Screen,
    resources: Resources,
    servers: KnownServers,
    conversations: Conversations,
    agent: Agent,
    model: ModelId,
    sampled: CurrentModel,
    /// `true` while a run is in progress. MCP servers may ask the user only then.
    is_running: Arc<AtomicBool>,
    /// Stored session. `None` before the first question of a new session.
    session: Option<Session>,
    /// Id for the session that the next question creates.
    requested_id: Option<String>,
    /// Sessions that `/resume` listed last, so that the user can select one by its number.
    listed: Vec<SessionId>,
    names: SharedNames,
    /// Exit code of the last answer or command, returned when the conversation ends.
    code: Code,
    /// Keeps characters that the user types during a run for the next input line.
    _raw_mode: Option<RawMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Leave(Code),
}

/// Runs the `chat` command until the user leaves.
pub(crate) async fn run(
    args: ChatArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let ChatArgs {
        resume,
        conversation: args,
    } = args;
    let mut context = Context::load_with_replay(&args.global, &args.recording, environment)?;
    if let Some(id) = &args.session {
        conversations::check_id(id).map_err(Failure::usage)?;
    }
    let mut plan = args.agent.plan(&context).await?;
    follow::print_chosen_model(&plan.chosen, &context);
    let conversations = Conversations::open(&context.config, &context.environment)
        .await
        .map_err(Failure::usage)?;
    let begun = plan.begin_recording(&args.recording, &mut context);
    let recording = context.recording.clone();
    let result = async {
        begun?;
        let session = args.session;
        let output = args.output;
        let chat = begin(
            args.agent,
            output,
            plan,
            conversations.clone(),
            context,
            interrupts,
        );
        let mut chat = chat.await?;
        let result = Box::pin(chat.run_loop(session.as_deref(), resume)).await;
        interrupts.release_keys();
        chat.resources.close(interrupts).await;
        result
    };
    let result = result.await;
    conversations.sessions.close().await;
    match recording.finish(result) {
        Err(Failure {
            code: Code::Interrupted,
            ..
        }) => Ok(Code::Interrupted),
        result => result,
    }
}

/// Starts the servers and creates the conversation.
async fn begin(
    args: AgentArgs,
    output: AskOutput,
    plan: Plan,
    conversations: Conversations,
    context: Context,
    interrupts: &Interrupts,
) -> Result<Chat<'_>, Failure> {
    let screen = Screen::new(output == AskOutput::Text);
    let names = SharedNames::default();
    let editor = needs_editor(output, &context.environment)
        .then(|| Editor::new(&context.environment, Arc::clone(&names), interrupts));
    let raw_mode = editor.is_some().then(RawMode::begin);
    let asking: Arc<dyn LineReader> = match &editor {
        Some(editor) => Arc::new(editor.clone()),
        None => Arc::new(PlainLines),
    };
    let is_running = Arc::new(AtomicBool::new(false));
    // Without a terminal, every input line is a question to the model, so servers cannot ask.
    let can_ask = editor.is_some() || terminal::is_interactive();
    let elicitor = can_ask.then(|| {
        Arc::new(WhileRunning {
            elicitor: TerminalElicitor::new(screen.clone(), Arc::clone(&asking)),
            is_running: Arc::clone(&is_running),
        }) as Arc<dyn Elicitor>
    });
    let sampled = CurrentModel::new(Arc::clone(&plan.sampled));
    let resources = Resources::start(&context, plan.no_tools, elicitor, sampled.clone())?;
    let mut presses = editor.as_ref().map(|editor| editor.presses.clone());
    let interrupted = async {
        tokio::select! {
            () = interrupts.first() => {}
            () = next_press(presses.as_mut()) => {}
        }
    };
    if let Err(early) = resources.ready(&context, &screen, interrupted).await {
        resources.close(interrupts).await;
        return Err(match early {
            StartupFailure::Interrupted => Failure {
                code: Code::Interrupted,
                error: anyhow!("interrupted"),
            },
            StartupFailure::Server(error) => Failure::run(error),
        });
    }
    Ok(Chat {
        model: plan.chosen.model.id().clone(),
        agent: plan.agent(&context, &resources, &screen, &asking),
        servers: KnownServers::of(&resources.host),
        output: Output::new(output, editor.is_some(), &context.environment),
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

/// Returns whether input and output are a terminal that the line editor supports.
fn needs_editor(output: AskOutput, environment: &Environment) -> bool {
    output == AskOutput::Text
        && std::io::stdout().is_terminal()
        && terminal::is_interactive()
        && environment.get("TERM").is_some_and(|term| term != "dumb")
}

impl Chat<'_> {
    async fn run_loop(&mut self, session: Option<&str>, resume: bool) -> Result<Code, Failure> {
        self.update_completion().await;
        if self.has_editor() {
            self.greet();
        }
        self.open_session(session, resume).await?;
        loop {
            self.print_server_changes().await;
            let line = match &self.editor {
                Some(editor) => editor.read(self.interrupts).await,
                None => input::lines::read(self.interrupts).await,
            };
            let line =
                line.map_err(|error| Failure::run(error).context("failed to read the input"))?;
            if let Some(editor) = &mut self.editor {
                editor.presses.clear();
            }
            let flow = match line {
                Line::End => Flow::Leave(self.code),
                Line::Interrupted if self.has_editor() => {
                    print_note("press Ctrl-D or type /quit to quit");
                    Flow::On
                }
                Line::Interrupted => Flow::Leave(Code::Interrupted),
                Line::Text(text) => match parse(&text) {
                    ParsedLine::Nothing => Flow::On,
                    ParsedLine::Question(question) => self.ask(question).await?,
                    ParsedLine::Command(command, argument) => {
                        self.execute(command, argument).await?
                    }
                    ParsedLine::Invalid(text) => {
                        terminal::print_warning(&text);
                        self.code = Code::Usage;
                        Flow::On
                    }
                },
            };
            if let Flow::Leave(code) = flow {
                if let (Some(session), true) = (&self.session, self.has_editor()) {
                    let id = &session.id;
                    print_note(&format!("to continue: switchboard chat --session {id}"));
                }
                return Ok(code);
            }
        }
    }

    fn has_editor(&self) -> bool {
        self.editor.is_some()
    }

    async fn catalog(&self) -> ToolCatalog {
        self.context.recording.catalog(&self.resources.host).await
    }

    fn greet(&self) {
        let source = if self.context.recording.is_replay() {
            "from a recording".to_owned()
        } else {
            let (tools, servers) = KnownServers::count(&self.resources.host);
            let plural = |number: usize| if number == 1 { "" } else { "s" };
            let (more_tools, more_servers) = (plural(tools), plural(servers));
            format!("· {tools} tool{more_tools} from {servers} server{more_servers}")
        };
        print_note(&format!(
            "{} {source} · /help for commands, Ctrl-D to quit",
            self.model
        ));
    }

    /// Rebuilds the agent with changed options. On an error the previous agent stays.
    async fn replan(&mut self, args: AgentArgs) -> Result<(), Failure> {
        let mut plan = args.plan(&self.context).await?;
        if plan.no_tools && !self.args.no_tools && !self.resources.host.servers().is_empty() {
            print_note(
                "this recipe uses no tools; the servers stay, and are not offered to the model",
            );
        }
        self.model = plan.chosen.model.id().clone();
        self.sampled.replace_model(Arc::clone(&plan.sampled));
        plan.record(&self.context.recording);
        self.agent = plan.agent(&self.context, &self.resources, &self.screen, &self.asking);
        self.args = args;
        Ok(())
    }
}

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

use clap::Args;
use switchboard_domain::{Elicitor, ModelId, Session, SessionId, ToolCatalog};
use switchboard_mcp_client::{ClientHandlers, McpHost};
use switchboard_orchestration::Agent;

use crate::{
    config::environment::Environment,
    models::current_model::CurrentModel,
    observe::AuditLog,
    run_session::{
        agent::ConversationArgs,
        agent::{AgentArgs, Plan, approver},
        context::{self, Context},
        conversations::{self, Conversations},
        failure::{Code, Failure},
        follow::{
            self,
            startup::{self, StartupFailure},
        },
        interrupts::{Interrupts, Presses},
        servers::Servers,
        unmatched,
    },
    storage::decisions::SavedDecisions,
    terminal::{
        self, LineReader, PlainLines, Screen, TerminalElicitor, output::AskOutput, print_note,
    },
};
use input::completion::SharedNames;
use input::editor::{Editor, Line};
use output::Output;
use raw_mode::RawMode;
use servers::KnownServers;
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

/// The source of input.
enum Input {
    Editor(Box<Editor>),
    Lines,
}

/// A conversation.
pub(crate) struct Chat<'i> {
    context: Context,
    /// Options of the command line, with later changes.
    args: AgentArgs,
    interrupts: &'i Interrupts,
    /// Ctrl-C at a terminal with line editor. It stops a run and not the program.
    presses: Option<Presses>,
    input: Input,
    asking: Arc<dyn LineReader>,
    output: Output,
    screen: Screen,
    host: Arc<McpHost>,
    servers: KnownServers,
    conversations: Conversations,
    decisions: SavedDecisions,
    audit: AuditLog,
    agent: Agent,
    model: ModelId,
    sampled: CurrentModel,
    /// A run is in progress, so questions of servers are allowed.
    is_running: Arc<AtomicBool>,
    /// `None` before the first question of a new session.
    session: Option<Session>,
    /// The id of a new session.
    requested_id: Option<String>,
    /// The last list of sessions, for selection by number.
    listed: Vec<SessionId>,
    names: SharedNames,
    /// The exit code of the last answer.
    code: Code,
    /// Keeps typed characters for the next line while no line is read.
    _raw_mode: Option<RawMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Leave(Code),
}

/// Runs a conversation to its end.
pub(crate) async fn run(
    args: ChatArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let ChatArgs {
        resume,
        conversation: args,
    } = args;
    let mut context = args.context(environment)?;
    if let Some(id) = &args.session {
        conversations::check_id(id).map_err(Failure::usage)?;
    }
    let mut plan = args.agent.plan(&context).await?;
    follow::print_chosen_model(&plan.chosen, &context);
    let conversations = Conversations::open(&context.config, &context.environment)
        .await
        .map_err(Failure::usage)?;
    let sampled = CurrentModel::new(Arc::clone(&plan.sampled));
    if let Err(failure) = args.recording.begin(&mut context, &mut plan) {
        conversations.sessions.close().await;
        return Err(failure);
    }
    let recording = context.recording.clone();
    let begun = begin(
        args.agent,
        args.output,
        (plan, sampled),
        conversations.clone(),
        context,
        interrupts,
    );
    let begun = begun.await;
    let result = match begun {
        Ok(mut chat) => {
            let result = Box::pin(chat.run_loop(args.session.as_deref(), resume)).await;
            if let Err(error) = chat.decisions.save() {
                terminal::print_warning(&format!(
                    "failed to save your approval decisions: {error}"
                ));
            }
            interrupts.release_keys();
            context::close(&chat.host, interrupts).await;
            chat.audit.flush().await;
            result
        }
        Err(failure) => Err(failure),
    };
    conversations.sessions.close().await;
    match recording.finish(result) {
        Err(Failure {
            code: Code::Interrupted,
            ..
        }) => Ok(Code::Interrupted),
        result => result,
    }
}

/// The input and output of a conversation.
struct Console {
    input: Input,
    asking: Arc<dyn LineReader>,
    presses: Option<Presses>,
    output: Output,
}

impl Console {
    /// Uses a line editor at a terminal, otherwise plain streams.
    fn of(
        output: AskOutput,
        environment: &Environment,
        interrupts: &Interrupts,
        names: &SharedNames,
    ) -> Self {
        let is_dumb = environment.get("TERM").is_none_or(|term| term == "dumb");
        let is_seen = std::io::stdout().is_terminal() && terminal::is_interactive();
        if output != AskOutput::Text || !is_seen || is_dumb {
            return Self {
                input: Input::Lines,
                asking: Arc::new(PlainLines),
                presses: None,
                output: Output::plain(output),
            };
        }
        let keys = interrupts.capture_keys();
        interrupts.watch_terminal();
        let history = environment.data_dir.as_ref();
        let editor = Editor::new(
            history.map(|folder| folder.join("chat-history")),
            Arc::clone(names),
            environment.get("NO_COLOR").is_none(),
            keys.clone(),
        );
        Self {
            input: Input::Editor(Box::new(editor.clone())),
            asking: Arc::new(editor),
            presses: Some(keys),
            output: Output::terminal(environment),
        }
    }
}

/// Starts the servers and creates the conversation.
async fn begin(
    args: AgentArgs,
    output: AskOutput,
    (plan, sampled): (Plan, CurrentModel),
    conversations: Conversations,
    context: Context,
    interrupts: &Interrupts,
) -> Result<Chat<'_>, Failure> {
    let environment = &context.environment;
    let screen = Screen::new(output == AskOutput::Text);
    let names = SharedNames::default();
    let is_running = Arc::new(AtomicBool::new(false));
    let console = Console::of(output, environment, interrupts, &names);
    let Console {
        input,
        asking,
        mut presses,
        output,
    } = console;
    let has_editor = presses.is_some();
    let raw_mode = has_editor.then(RawMode::begin);
    let mut servers = if plan.no_tools {
        Servers::none()
    } else {
        context.servers()?
    };
    // Without a terminal, lines are questions and not answers.
    let can_ask = has_editor || terminal::is_interactive();
    let elicitor = TerminalElicitor::new(screen.clone(), Arc::clone(&asking));
    let elicitor = servers::WhileRunning::new(elicitor, Arc::clone(&is_running));
    servers.options.client_handlers = ClientHandlers {
        elicitor: can_ask.then(|| Arc::new(elicitor) as Arc<dyn Elicitor>),
        sampler: Some(Arc::new(sampled.clone())),
        ..ClientHandlers::default()
    };
    let audit = AuditLog::open(&context.config, environment).map_err(Failure::usage)?;
    let decisions = SavedDecisions::load(environment).map_err(Failure::usage)?;
    let host = Arc::new(context::start(servers)?);
    let ready = startup::ready(&host, startup::startup_wait(&context), &screen, interrupts);
    let ready = match &mut presses {
        None => ready.await,
        Some(presses) => tokio::select! {
            ready = ready => ready,
            () = presses.next() => Err(StartupFailure::Interrupted),
        },
    };
    screen.pause();
    if let Err(early) = ready {
        context::close(&host, interrupts).await;
        return Err(match early {
            StartupFailure::Interrupted => Failure {
                code: Code::Interrupted,
                error: anyhow::anyhow!("interrupted"),
            },
            StartupFailure::Server(error) => Failure::run(error),
        });
    }
    unmatched::warn(&context.config, &host).await;
    let model = plan.chosen.model.id().clone();
    let approver = approver(&context, &host, &screen, &asking, plan.later);
    let agent = plan.agent_with(&context, &host, &decisions);
    let agent = agent.with_approver(approver);
    let servers = KnownServers::of(&host);
    Ok(Chat {
        context,
        args,
        interrupts,
        presses,
        input,
        asking,
        output,
        screen,
        host,
        servers,
        conversations,
        decisions,
        audit,
        agent,
        model,
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

impl Chat<'_> {
    async fn run_loop(&mut self, session: Option<&str>, resume: bool) -> Result<Code, Failure> {
        self.update_completion().await;
        if self.has_editor() {
            self.greet();
        }
        self.open_session(session, resume).await?;
        loop {
            self.print_server_changes().await;
            let line = match &self.input {
                Input::Editor(editor) => editor.read(self.interrupts).await,
                Input::Lines => input::lines::read(self.interrupts).await,
            };
            let line =
                line.map_err(|error| Failure::run(error).context("failed to read the input"))?;
            if let Some(presses) = &mut self.presses {
                presses.clear();
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
                    ParsedLine::Command(command) => self.execute(command).await?,
                    ParsedLine::Invalid(text) => {
                        terminal::print_warning(&text);
                        self.code = Code::Usage;
                        Flow::On
                    }
                },
            };
            if let Flow::Leave(code) = flow {
                self.print_resume_hint();
                return Ok(code);
            }
        }
    }

    fn has_editor(&self) -> bool {
        matches!(self.input, Input::Editor(_))
    }

    async fn catalog(&self) -> ToolCatalog {
        self.context.recording.catalog(&self.host).await
    }

    fn greet(&self) {
        if self.context.recording.is_replay() {
            print_note(&format!(
                "{} from a recording · /help for commands, Ctrl-D to quit",
                self.model
            ));
            return;
        }
        let (tools, servers) = KnownServers::count(&self.host);
        let plural = |number: usize| if number == 1 { "" } else { "s" };
        print_note(&format!(
            "{} · {tools} tool{} from {servers} server{} · /help for commands, Ctrl-D to quit",
            self.model,
            plural(tools),
            plural(servers),
        ));
    }

    fn print_resume_hint(&self) {
        if let (Some(session), true) = (&self.session, self.has_editor()) {
            print_note(&format!(
                "to continue: switchboard chat --session {}",
                session.id
            ));
        }
    }

    /// Applies changed options. On an error nothing changes.
    async fn replan(&mut self, args: AgentArgs) -> Result<(), Failure> {
        let mut plan = args.plan(&self.context).await?;
        if plan.no_tools && !self.args.no_tools && !self.host.servers().is_empty() {
            print_note(
                "this recipe uses no tools; the servers stay, and are not offered to the model",
            );
        }
        self.model = plan.chosen.model.id().clone();
        self.sampled.set(Arc::clone(&plan.sampled));
        plan.record(&self.context.recording);
        let approver = approver(
            &self.context,
            &self.host,
            &self.screen,
            &self.asking,
            plan.later,
        );
        let agent = plan.agent_with(&self.context, &self.host, &self.decisions);
        self.agent = agent.with_approver(approver);
        self.args = args;
        Ok(())
    }
}

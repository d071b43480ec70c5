//! `chat`: a conversation at a terminal, or over a pipe.
//!
//! `Chat` is the loop: it reads what somebody says, does what begins with a slash itself, and has everything
//! else answered as a run of the session, which is kept. Servers run from its beginning to its end.

mod answer;
mod commands;
mod complete;
mod does;
mod editor;
mod lines;
pub(crate) mod markdown;
mod paper;
mod quiet;
mod resume;
mod running;
mod sampler;
mod servers;
pub(crate) mod talk;
pub(crate) mod transcript;
mod usage;

use std::{
    io::IsTerminal as _,
    sync::{Arc, atomic::AtomicBool},
};

use switchboard_domain::{Elicitor, ModelId, Session, SessionId, ToolCatalog, ToolHost as _};
use switchboard_mcp_client::{ClientHandlers, McpHost};
use switchboard_orchestration::Agent;

use crate::{
    cli::{
        AskOutput, Code, Failure,
        agent::{AgentArgs, AgentParts, Plan},
        ask::{self, Early},
        context::{self, Context},
        interrupt::{Interrupts, Presses},
        unmatched,
    },
    decisions::KeptDecisions,
    environment::Environment,
    injection,
    observe::AuditLog,
    servers::Servers,
    tape::{Tape, TapeArgs},
    terminal::{
        self, AsksForLines, PlainLines, Screen, TerminalApprover, TerminalElicitor, say_note,
    },
};
use commands::{Said, understand};
use complete::SharedKnown;
use editor::{Editor, Line};
use paper::Paper;
use quiet::Quiet;
pub(crate) use running::Running;
use sampler::CurrentModel;
use servers::Watched;
use talk::Talks;

/// How a conversation begins.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// The session of this id, which may be a new one.
    pub(crate) session: Option<String>,
    /// The last session.
    pub(crate) resume: bool,
    /// The recording that is made of it.
    pub(crate) tape: TapeArgs,
}

/// What reads what somebody says.
enum Input {
    Editor(Box<Editor>),
    Lines,
}

/// A conversation.
pub(crate) struct Chat<'i> {
    context: Context,
    /// As the command line has it, and as it was changed since.
    args: AgentArgs,
    interrupts: &'i Interrupts,
    /// Ctrl-C, where it stops a run and not the program.
    presses: Option<Presses>,
    input: Input,
    asking: Arc<dyn AsksForLines>,
    paper: Paper,
    screen: Screen,
    host: Arc<McpHost>,
    servers: Watched,
    talks: Talks,
    decisions: KeptDecisions,
    audit: AuditLog,
    agent: Agent,
    model: ModelId,
    sampled: CurrentModel,
    /// A run is under way, so somebody can be asked.
    in_run: Arc<AtomicBool>,
    /// The session; `None` before the first question of a new one.
    session: Option<Session>,
    /// The id that a new session gets.
    wished_id: Option<String>,
    /// The sessions that were listed last.
    listed: Vec<SessionId>,
    known: SharedKnown,
    /// How the last answer ended.
    code: Code,
    /// Whenever no line is read, what is typed waits for the next one.
    _quiet: Option<Quiet>,
}

/// Whether the loop goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Leave(Code),
}

/// Talks until somebody leaves.
pub(crate) async fn run(
    args: AgentArgs,
    output: AskOutput,
    beginning: Beginning,
    mut context: Context,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    if let Some(id) = &beginning.session {
        talk::check_id(id).map_err(Failure::usage)?;
    }
    let mut plan = args.plan(&context).await?;
    ask::say_choice(&plan.chosen, &context);
    let talks = Talks::open(&context.config, &context.environment)
        .await
        .map_err(Failure::usage)?;
    let sampled = CurrentModel::new(Arc::clone(&plan.sampled));
    if let Err(failure) = beginning.tape.begin(&mut context, &mut plan) {
        talks.sessions.close().await;
        return Err(failure);
    }
    let tape = context.tape.clone();
    let begun = begin(
        args,
        output,
        (plan, sampled),
        talks.clone(),
        context,
        interrupts,
    );
    let begun = begun.await;
    let result = match begun {
        Ok(mut chat) => {
            let result = Box::pin(chat.talk(&beginning)).await;
            if let Err(error) = chat.decisions.keep() {
                terminal::say_warning(&format!("what you decided is not kept: {error}"));
            }
            interrupts.give_keys_back();
            context::close(&chat.host, interrupts).await;
            chat.audit.flush().await;
            result
        }
        Err(failure) => Err(failure),
    };
    talks.sessions.close().await;
    match tape.finish(result) {
        Err(Failure {
            code: Code::Interrupted,
            ..
        }) => Ok(Code::Interrupted),
        result => result,
    }
}

/// How somebody is heard, and what answers are written on.
struct Desk {
    input: Input,
    asking: Arc<dyn AsksForLines>,
    presses: Option<Presses>,
    paper: Paper,
}

impl Desk {
    /// A terminal with a line editor, or else plain streams.
    fn of(
        output: AskOutput,
        environment: &Environment,
        interrupts: &Interrupts,
        known: &SharedKnown,
    ) -> Self {
        let is_dumb = environment.get("TERM").is_none_or(|term| term == "dumb");
        let is_seen = std::io::stdout().is_terminal() && terminal::is_somebody_there();
        if output != AskOutput::Text || !is_seen || is_dumb {
            return Self {
                input: Input::Lines,
                asking: Arc::new(PlainLines),
                presses: None,
                paper: Paper::plain(output),
            };
        }
        let keys = interrupts.take_keys();
        interrupts.watch_terminal();
        let history = environment.data_dir.as_ref();
        let editor = Editor::new(
            history.map(|folder| folder.join("chat-history")),
            Arc::clone(known),
            environment.get("NO_COLOR").is_none(),
            keys.clone(),
        );
        Self {
            input: Input::Editor(Box::new(editor.clone())),
            asking: Arc::new(editor),
            presses: Some(keys),
            paper: Paper::terminal(environment),
        }
    }
}

/// Starts the servers and everything else that stays for the whole conversation.
async fn begin(
    args: AgentArgs,
    output: AskOutput,
    (plan, sampled): (Plan, CurrentModel),
    talks: Talks,
    context: Context,
    interrupts: &Interrupts,
) -> Result<Chat<'_>, Failure> {
    let environment = &context.environment;
    let screen = Screen::new(output == AskOutput::Text);
    let known = SharedKnown::default();
    let in_run = Arc::new(AtomicBool::new(false));
    let desk = Desk::of(output, environment, interrupts, &known);
    let Desk {
        input,
        asking,
        mut presses,
        paper,
    } = desk;
    let has_editor = presses.is_some();
    let quiet = has_editor.then(Quiet::begin);
    let mut servers = if plan.no_tools {
        Servers::none()
    } else {
        context.servers()?
    };
    // Where lines are read from standard input, these are questions to the model, not answers.
    let can_ask = has_editor || terminal::is_somebody_there();
    let elicitor = TerminalElicitor::new(screen.clone()).reading(Arc::clone(&asking));
    let elicitor = servers::WhileRunning::new(elicitor, Arc::clone(&in_run));
    servers.options.client_handlers = ClientHandlers {
        elicitor: can_ask.then(|| Arc::new(elicitor) as Arc<dyn Elicitor>),
        sampler: Some(Arc::new(sampled.clone())),
        ..ClientHandlers::default()
    };
    let audit = AuditLog::open(&context.config, environment).map_err(Failure::usage)?;
    let decisions = KeptDecisions::load(environment).map_err(Failure::usage)?;
    let host = Arc::new(context::start(servers)?);
    let ready = ask::ready(&host, ask::patience(&context), &screen, interrupts);
    let ready = match &mut presses {
        None => ready.await,
        Some(presses) => tokio::select! {
            ready = ready => ready,
            () = presses.next() => Err(Early::Interrupted),
        },
    };
    screen.hold_still();
    if let Err(early) = ready {
        context::close(&host, interrupts).await;
        return Err(match early {
            Early::Interrupted => Failure {
                code: Code::Interrupted,
                error: anyhow::anyhow!("interrupted"),
            },
            Early::Server(error) => Failure::run(error),
        });
    }
    unmatched::warn(&context.config.run, &host).await;
    let model = plan.chosen.model.id().clone();
    let approver = approver(&context, &host, &screen, &asking, plan.later);
    let parts = AgentParts {
        approver,
        decisions: &decisions,
        checkpoints: None,
    };
    let agent = plan.agent_with(&context, &host, parts);
    let servers = Watched::of(&host);
    Ok(Chat {
        context,
        args,
        interrupts,
        presses,
        input,
        asking,
        paper,
        screen,
        host,
        servers,
        talks,
        decisions,
        audit,
        agent,
        model,
        sampled,
        in_run,
        session: None,
        wished_id: None,
        listed: Vec::new(),
        known,
        code: Code::Success,
        _quiet: quiet,
    })
}

fn approver(
    context: &Context,
    host: &Arc<McpHost>,
    screen: &Screen,
    asking: &Arc<dyn AsksForLines>,
    later: bool,
) -> Arc<TerminalApprover> {
    let approver = TerminalApprover::new(screen.clone())
        .reading(Arc::clone(asking))
        .checking(
            context.tape.tools(Arc::clone(host) as _),
            injection::configured(&context.config),
        );
    Arc::new(if later {
        approver.who_decides_later()
    } else {
        approver
    })
}

impl Chat<'_> {
    async fn talk(&mut self, beginning: &Beginning) -> Result<Code, Failure> {
        self.learn().await;
        if self.has_editor() {
            self.greet();
        }
        self.take_up(beginning).await?;
        loop {
            self.tell_server_changes().await;
            let line = match &self.input {
                Input::Editor(editor) => editor.read(self.interrupts).await,
                Input::Lines => lines::read(self.interrupts).await,
            };
            let line =
                line.map_err(|error| Failure::run(error).context("what is said cannot be read"))?;
            if let Some(presses) = &mut self.presses {
                presses.forget();
            }
            let flow = match line {
                Line::End => Flow::Leave(self.code),
                Line::Interrupted if self.has_editor() => {
                    say_note("Ctrl-D or /quit leaves");
                    Flow::On
                }
                Line::Interrupted => Flow::Leave(Code::Interrupted),
                Line::Text(text) => match understand(&text) {
                    Said::Nothing => Flow::On,
                    Said::Question(question) => self.ask(question).await?,
                    Said::Command(command) => self.carry_out(command).await?,
                    Said::Wrong(text) => {
                        terminal::say_warning(&text);
                        self.code = Code::Usage;
                        Flow::On
                    }
                },
            };
            if let Flow::Leave(code) = flow {
                self.say_how_to_return();
                return Ok(code);
            }
        }
    }

    fn has_editor(&self) -> bool {
        matches!(self.input, Input::Editor(_))
    }

    /// The tools there are now; those that were recorded where a recording is had again.
    async fn catalog(&self) -> ToolCatalog {
        match &self.context.tape {
            tape @ Tape::Replay(_) => tape.tools(Arc::clone(&self.host) as _).tools().await,
            Tape::Off | Tape::Recording(_) => self.host.tools().await,
        }
    }

    fn greet(&self) {
        if self.context.tape.is_replay() {
            say_note(&format!(
                "{} from a recording; /help lists what you can say, Ctrl-D leaves",
                self.model
            ));
            return;
        }
        let (tools, servers) = Watched::count(&self.host);
        let plural = |number: usize| if number == 1 { "" } else { "s" };
        say_note(&format!(
            "{} with {tools} tool{} of {servers} server{}; /help lists what you can say, Ctrl-D leaves",
            self.model,
            plural(tools),
            plural(servers),
        ));
    }

    fn say_how_to_return(&self) {
        if let (Some(session), true) = (&self.session, self.has_editor()) {
            say_note(&format!(
                "switchboard chat --session {} goes on with this conversation",
                session.id
            ));
        }
    }

    /// Plans anew what was changed, and says what is wrong with it. Nothing is changed then.
    async fn plan_anew(&mut self, args: AgentArgs) -> Result<(), Failure> {
        let mut plan = args.plan(&self.context).await?;
        if plan.no_tools && !self.args.no_tools && !self.host.servers().is_empty() {
            say_note(
                "this recipe uses no tools; the servers stay, and are not offered to the model",
            );
        }
        self.model = plan.chosen.model.id().clone();
        self.sampled.set(Arc::clone(&plan.sampled));
        plan.record(&self.context.tape);
        let approver = approver(
            &self.context,
            &self.host,
            &self.screen,
            &self.asking,
            plan.later,
        );
        let parts = AgentParts {
            approver,
            decisions: &self.decisions,
            checkpoints: None,
        };
        self.agent = plan.agent_with(&self.context, &self.host, parts);
        self.args = args;
        Ok(())
    }
}

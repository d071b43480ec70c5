//! Going on with what was begun another time.

use std::sync::{Arc, PoisonError};

use anyhow::anyhow;
use switchboard_domain::{Message, Part, Role, RunRecord, RunState, Session, SessionStore as _};
use switchboard_orchestration::{
    Agent, BegunWith, persistence::TakenRun, tools::functions::ToolSet,
};

use super::{
    Beginning, Chat, Flow, commands::Command, talk::explained, transcript::last_questions,
};
use crate::{
    cli::{Code, Failure},
    terminal::{FAINT, STRONG, one_line, say, say_note, say_warning, without_controls},
};

/// Questions of a session that are shown again, with their answers.
const SHOWN_AGAIN: usize = 3;
/// Sessions that are listed.
const LISTED: u32 = 12;

impl Chat<'_> {
    /// The session that the command line names.
    pub(super) async fn take_up(&mut self, beginning: &Beginning) -> Result<(), Failure> {
        let session = match &beginning.session {
            Some(id) => {
                let found = self.talks.named(id).await.map_err(Failure::run)?;
                if found.is_none() {
                    self.wished_id = Some(id.clone());
                }
                found
            }
            None if beginning.resume => {
                let last = self.talks.list(1).await.map_err(Failure::run)?;
                if last.is_empty() {
                    say_note("there is no session to go on with, so this is a new one");
                }
                last.into_iter().next()
            }
            None => None,
        };
        match session {
            Some(session) => self.enter(session).await,
            None => Ok(()),
        }
    }

    /// Goes on with a session: shows how it stood, and what of it waits.
    async fn enter(&mut self, session: Session) -> Result<(), Failure> {
        let store = self.talks.sessions.store();
        let messages = store
            .messages(&self.talks.owner, &session.id, 0)
            .await
            .map_err(Failure::run)?;
        say_note(&format!(
            "session {}{}",
            session.id,
            match session.title.trim() {
                "" => String::new(),
                title => format!(": {}", one_line(title, 80)),
            }
        ));
        self.session = Some(session);
        self.wished_id = None;
        if self.has_editor() {
            let from = last_questions(&messages, SHOWN_AGAIN);
            if from > 0 {
                say(format_args!("{FAINT}… {from} messages before{FAINT:#}"));
            }
            for message in messages.iter().skip(from) {
                self.show_again(message)?;
            }
        }
        self.offer_open_run().await
    }

    fn show_again(&mut self, message: &Message) -> Result<(), Failure> {
        match message.role {
            Role::User => say(format_args!(
                "{STRONG}❯{STRONG:#} {}",
                without_controls(&message.text())
            )),
            Role::Assistant => {
                for part in &message.parts {
                    match part {
                        Part::Text(text) if !text.text.trim().is_empty() => {
                            self.paper.text(&text.text).map_err(Failure::run)?;
                        }
                        Part::ToolUse(tool_use) => say(format_args!(
                            "{FAINT}· {} {}{FAINT:#}",
                            one_line(&tool_use.name, 80),
                            one_line(&tool_use.input.shown().to_string(), 120)
                        )),
                        _ => {}
                    }
                }
            }
            Role::Tool | Role::System => {}
        }
        Ok(())
    }

    /// A run of the session that is not over: somebody says what becomes of it.
    pub(super) async fn offer_open_run(&mut self) -> Result<(), Failure> {
        let run = match self.open_run().await {
            Ok(Some(run)) => run,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.failed(&error.into());
                return Ok(());
            }
        };
        let how = match run.state {
            RunState::Waiting => "waits for your word",
            RunState::Interrupted => "was interrupted",
            RunState::Running | RunState::Finished => {
                say_warning(
                    "another process is at work on this session: say nothing until it is done",
                );
                return Ok(());
            }
        };
        say_note(&format!(
            "a run of this session {how} (begun {})",
            run.created_at
        ));
        if !self.has_editor() {
            say_note("/continue goes on with it, /abandon ends it");
            return Ok(());
        }
        loop {
            let question = "  what becomes of it? [c]ontinue, [a]bandon, or [l]eave it as it is";
            let Ok(line) = self.asking.ask(question.to_owned()).await else {
                break;
            };
            match line.trim().to_ascii_lowercase().as_str() {
                "c" | "continue" => return self.go_on(&run).await.map(|_| ()),
                "a" | "abandon" => return self.abandon(&run).await.map(|_| ()),
                "l" | "leave" | "" => break,
                _ => {}
            }
        }
        say_note(
            "/continue goes on with it, /abandon ends it; until then this session takes no question",
        );
        Ok(())
    }

    /// `/continue` and `/abandon`.
    pub(super) async fn open_run_command(&mut self, command: &Command) -> Result<Flow, Failure> {
        match self.open_run().await {
            Ok(Some(run)) if *command == Command::Abandon => self.abandon(&run).await,
            Ok(Some(run)) => self.go_on(&run).await,
            Ok(None) => {
                say_note("no run of this session waits");
                Ok(Flow::On)
            }
            Err(error) => Ok(self.failed(&error.into())),
        }
    }

    async fn go_on(&mut self, run: &RunRecord) -> Result<Flow, Failure> {
        let journal = self.talks.journal.clone();
        match journal.take(&run.id).await {
            Ok(taken) => {
                // Whoever says so now is there to be asked.
                let approver =
                    super::approver(&self.context, &self.host, &self.screen, &self.asking, false);
                match self.agent_of(&taken) {
                    Ok(agent) => {
                        let run = journal.go_on(&agent.with_approver(approver), taken);
                        Box::pin(self.follow(run)).await
                    }
                    Err(error) => {
                        taken.leave().await;
                        Ok(self.failed(&error))
                    }
                }
            }
            Err(error) => Ok(self.failed(&explained(error))),
        }
    }

    /// The agent, as far as it fits what the run was begun with: no tools for one that had none, and for one that had not
    /// begun to do anything, its own approvals and limits.
    fn agent_of(&self, taken: &TakenRun) -> anyhow::Result<Agent> {
        let begun = BegunWith::read(taken.record().wish.as_ref());
        let mut agent = self.agent_now();
        if begun.as_ref().is_some_and(|begun| begun.without_tools) {
            agent = agent.with_tools(Arc::new(ToolSet::new()));
        }
        if !taken.is_bare() {
            // The rest is in the run.
            return Ok(agent);
        }
        let ask_again = |why: &str| {
            anyhow!(
                "the run was interrupted before it had begun to do anything, and {why}: /abandon ends it, and then ask \
                 again"
            )
        };
        let options = begun.as_ref().and_then(BegunWith::options);
        let (Some(begun), Some(options)) = (begun, options) else {
            return Err(ask_again("what it was to be like is not known"));
        };
        if begun.recipe != self.args.recipe_name(&self.context) {
            let followed = begun.recipe.map_or_else(
                || "no recipe".to_owned(),
                |name| format!("the recipe {}", one_line(&name, 80)),
            );
            return Err(ask_again(&format!("it was to follow {followed}")));
        }
        Ok(agent.with_options(options))
    }

    async fn abandon(&mut self, run: &RunRecord) -> Result<Flow, Failure> {
        let journal = self.talks.journal.clone();
        match journal.abandon(&run.id).await {
            Ok(_) => {
                say_note("the run is over; what it had done stays in the conversation");
                Ok(Flow::On)
            }
            Err(error) => Ok(self.failed(&explained(error))),
        }
    }

    /// `/resume`.
    pub(super) async fn resume(&mut self, named: Option<String>) -> Result<Flow, Failure> {
        let Some(named) = named else {
            return self.list_sessions().await;
        };
        let by_number = named
            .parse::<usize>()
            .ok()
            .and_then(|number| self.listed.get(number.checked_sub(1)?).cloned());
        let id = by_number.map_or(named, |id| id.0);
        let found = self.talks.sessions.find(&self.talks.owner, &id).await;
        match found {
            Ok(session) => {
                self.enter(session).await?;
                Ok(Flow::On)
            }
            Err(error) => Ok(self.failed(&error.into())),
        }
    }

    async fn list_sessions(&mut self) -> Result<Flow, Failure> {
        let sessions = match self.talks.list(LISTED).await {
            Ok(sessions) => sessions,
            Err(error) => return Ok(self.failed(&error.into())),
        };
        if sessions.is_empty() {
            say_note("there is no session yet");
            return Ok(Flow::On);
        }
        for (number, session) in (1..).zip(&sessions) {
            let here = self.session.as_ref().map(|it| &it.id) == Some(&session.id);
            say(format_args!(
                "{:>4}  {}  {FAINT}{} messages{}{FAINT:#}  {}",
                number,
                one_line(&session.id.0, 40),
                session.messages,
                if here { ", this one" } else { "" },
                one_line(&session.title, 60)
            ));
        }
        say_note("/resume NUMBER goes on with one");
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.sessions = sessions
            .iter()
            .map(|session| (session.id.0.clone(), one_line(&session.title, 60)))
            .collect();
        drop(known);
        self.listed = sessions.into_iter().map(|session| session.id).collect();
        Ok(Flow::On)
    }

    /// `/new`.
    pub(super) fn leave_session(&mut self) -> Flow {
        if let Some(session) = self.session.take() {
            say_note(&format!("a new session; the one before was {}", session.id));
        }
        self.code = Code::Success;
        Flow::On
    }
}

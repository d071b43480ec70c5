//! Resumes sessions and unfinished runs in `chat`.

use std::{collections::HashMap, sync::Arc};

use anyhow::anyhow;
use switchboard_domain::{Message, Part, Role, RunRecord, RunState, Session, SessionStore as _};
use switchboard_orchestration::{
    Agent, RunParameters, persistence::LeasedRun, tools::functions::ToolSet,
};

use super::{Chat, ChatFlow, slash_commands::SlashCommand, transcript::find_last_questions_start};
use crate::run_session::{agent::create_approver, conversations::explain_run_error};
use crate::{
    run_session::failure::Failure,
    terminal::{
        FAINT, STRONG, print_line, print_note, print_warning, strip_control_characters, to_one_line,
    },
};

/// Maximum number of earlier questions that are printed with their answers when a session resumes.
const MAX_SHOWN: usize = 3;
/// Maximum number of sessions that `/resume` lists.
const LISTED: u32 = 12;

impl Chat<'_> {
    /// Opens the session with the id of `--session`, or the newest session for `--resume`. If no
    /// session has the requested id, the first question creates a session with this id. Does
    /// nothing if neither option is set.
    pub(super) async fn open_session(
        &mut self,
        session: Option<&str>,
        resume: bool,
    ) -> Result<(), Failure> {
        let session = match session {
            Some(id) => {
                let found = self.conversations.find_session(id).await?;
                if found.is_none() {
                    self.requested_id = Some(id.to_owned());
                }
                found
            }
            None if resume => {
                let last = self.conversations.list_sessions(1).await?;
                if last.is_empty() {
                    print_note("no session to continue, so this is a new one");
                }
                last.into_iter().next()
            }
            None => None,
        };
        match session {
            Some(session) => self.continue_session(session).await,
            None => Ok(()),
        }
    }

    /// Continues a stored session: prints its last messages and offers to resume its unfinished
    /// run.
    async fn continue_session(&mut self, session: Session) -> Result<(), Failure> {
        let store = &self.conversations.sessions.store;
        let messages = store
            .load_messages(&self.conversations.owner, &session.id, 0)
            .await?;
        let title = match session.title.trim() {
            "" => String::new(),
            title => format!(": {}", to_one_line(title, 80)),
        };
        print_note(&format!("session {}{title}", session.id));
        self.session = Some(session);
        self.requested_id = None;
        if self.has_line_editor() {
            let from = find_last_questions_start(&messages, MAX_SHOWN);
            if from > 0 {
                print_line(format_args!("{FAINT}… {from} messages before{FAINT:#}"));
            }
            for message in messages.iter().skip(from) {
                self.reprint_message(message)?;
            }
        }
        self.ask_about_unfinished_run().await
    }

    fn reprint_message(&mut self, message: &Message) -> Result<(), Failure> {
        match message.role {
            Role::User => print_line(format_args!(
                "{STRONG}❯{STRONG:#} {}",
                strip_control_characters(&message.text())
            )),
            Role::Assistant => {
                for part in &message.parts {
                    match part {
                        Part::Text(text) if !text.text.trim().is_empty() => {
                            self.output.print_text(&text.text)?;
                        }
                        Part::ToolUse(tool_use) => print_line(format_args!(
                            "{FAINT}· {} {}{FAINT:#}",
                            to_one_line(&tool_use.name, 80),
                            to_one_line(&tool_use.input.to_display_value().to_string(), 120)
                        )),
                        _ => {}
                    }
                }
            }
            Role::Tool | Role::System => {}
        }
        Ok(())
    }

    /// Asks the user whether to resume or discard the unfinished run of the session. Does nothing
    /// if there is no such run. Without a line editor, prints the slash commands for both and asks
    /// nothing.
    pub(super) async fn ask_about_unfinished_run(&mut self) -> Result<(), Failure> {
        let run = match self.find_unfinished_run().await {
            Ok(Some(run)) => run,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.report_error(&error.into());
                return Ok(());
            }
        };
        let how = match run.state {
            RunState::Waiting => "is waiting for your approval",
            RunState::Interrupted => "was interrupted",
            RunState::Running | RunState::Finished => {
                print_warning(
                    "another process is running this session: wait until it has finished",
                );
                return Ok(());
            }
        };
        print_note(&format!(
            "the last run of this session {how} (started {})",
            run.created_at
        ));
        if !self.has_line_editor() {
            print_note("/continue resumes it, /abandon discards it");
            return Ok(());
        }
        loop {
            let question = "  What now? [c]ontinue, [a]bandon, [l]ater";
            let Ok(line) = self.asking.prompt_for_line(question.to_owned()).await else {
                break;
            };
            let flow = match line.trim().to_ascii_lowercase().as_str() {
                "c" | "continue" => self.continue_run(&run).await,
                "a" | "abandon" => self.abandon_run(&run).await,
                "l" | "later" | "" => break,
                _ => continue,
            };
            return self.print_failure(flow).map(|_| ());
        }
        print_note(
            "/continue resumes it, /abandon discards it; until then, this session does not accept \
             questions",
        );
        Ok(())
    }

    /// Executes the slash commands `/continue`, which resumes the unfinished run of the session,
    /// and `/abandon`, which discards it.
    pub(super) async fn continue_or_abandon_run(
        &mut self,
        command: SlashCommand,
    ) -> Result<ChatFlow, Failure> {
        match self.find_unfinished_run().await? {
            Some(run) if command == SlashCommand::Abandon => self.abandon_run(&run).await,
            Some(run) => self.continue_run(&run).await,
            None => {
                print_note("this session has no pending run");
                Ok(ChatFlow::Continue)
            }
        }
    }

    async fn continue_run(&mut self, run: &RunRecord) -> Result<ChatFlow, Failure> {
        let durable_runs = self.conversations.durable_runs.clone();
        let taken = durable_runs.acquire_run(&run.id).await;
        let taken = taken.map_err(|error| Failure::runtime_error(explain_run_error(error)))?;
        // The user is at the terminal, so approval requests are shown immediately and are not
        // stored for later.
        let approver = create_approver(
            &self.context,
            &self.resources.host,
            &self.screen,
            &self.asking,
            false,
            HashMap::new(),
        );
        match self.build_resumed_run_agent(&taken) {
            Ok(agent) => {
                let agent = self.conversations.share_call_rates(&agent);
                let run = durable_runs.resume_run(&agent.with_approver(approver), taken);
                Box::pin(self.show_run_until_end(run)).await
            }
            Err(error) => {
                taken.release_run().await;
                Err(Failure::runtime_error(error))
            }
        }
    }

    /// Returns the agent that executes a resumed run. A run that was started without tools gets an
    /// agent without tools. If the process ended before it stored the state of the run, the agent
    /// gets the options from the parameters of the run. Returns an error if these parameters are
    /// missing or name another recipe than the current one.
    fn build_resumed_run_agent(&self, taken: &LeasedRun) -> anyhow::Result<Agent> {
        let begun = RunParameters::from_stored_value(taken.run_record().parameters.as_ref());
        let mut agent = self.current_agent();
        if begun.as_ref().is_some_and(|begun| begun.without_tools) {
            agent = agent.with_tools(Arc::new(ToolSet::new()));
        }
        if !taken.lacks_run_settings() {
            // The run restores its approvals, limits and other options from its stored state, so
            // they are not set here.
            return Ok(agent);
        }
        let ask_again = |why: &str| {
            anyhow!(
                "the run was interrupted before its first step, and {why}. Discard it with \
                 /abandon and ask again"
            )
        };
        let options = begun.as_ref().and_then(RunParameters::run_options);
        let (Some(begun), Some(options)) = (begun, options) else {
            return Err(ask_again("its parameters are unknown"));
        };
        if begun.recipe.as_deref() != self.args.recipe_name(&self.context) {
            let followed = begun.recipe.map_or_else(
                || "without a recipe".to_owned(),
                |name| format!("with the recipe {}", to_one_line(&name, 80)),
            );
            return Err(ask_again(&format!("it was started {followed}")));
        }
        Ok(agent.with_options(options))
    }

    async fn abandon_run(&self, run: &RunRecord) -> Result<ChatFlow, Failure> {
        let ended = self.conversations.durable_runs.abandon_run(&run.id).await;
        ended.map_err(|error| Failure::runtime_error(explain_run_error(error)))?;
        print_note("the run is discarded; its completed work stays in the conversation");
        Ok(ChatFlow::Continue)
    }

    /// Executes the slash command `/resume`. Opens the stored session that `named` selects: by its
    /// id, the beginning of its id, or its number in the list that `/resume` printed last. Without
    /// `named`, lists the newest sessions.
    pub(super) async fn resume_session(&mut self, named: Option<String>) -> Result<(), Failure> {
        let Some(named) = named else {
            return self.list_sessions().await;
        };
        let number = named.parse::<usize>().ok();
        let by_number = number.and_then(|it| self.listed.get(it.checked_sub(1)?).cloned());
        let id = by_number.map_or(named, |id| id.0);
        let (sessions, owner) = (&self.conversations.sessions, &self.conversations.owner);
        let session = sessions.find_session(owner, &id).await?;
        self.continue_session(session).await
    }

    async fn list_sessions(&mut self) -> Result<(), Failure> {
        let sessions = self.conversations.list_sessions(LISTED).await?;
        if sessions.is_empty() {
            print_note("no sessions yet");
            return Ok(());
        }
        for (number, session) in (1..).zip(&sessions) {
            let here = self.session.as_ref().map(|it| &it.id) == Some(&session.id);
            print_line(format_args!(
                "{:>4}  {}  {FAINT}{} messages{}{FAINT:#}  {}",
                number,
                to_one_line(&session.id.0, 40),
                session.messages,
                if here { ", current" } else { "" },
                to_one_line(&session.title, 60)
            ));
        }
        print_note("/resume NUMBER continues a session");
        self.update_completion_names().await;
        self.listed = sessions.into_iter().map(|session| session.id).collect();
        Ok(())
    }

    /// Executes the slash command `/new`, which starts a conversation in a new session.
    pub(super) fn start_new_session(&mut self) {
        if let Some(session) = self.session.take() {
            print_note(&format!(
                "started a new session; the previous one is {}",
                session.id
            ));
        }
    }
}

//! Answers the questions of a `chat` conversation with one run each.

use std::sync::atomic::Ordering;

use switchboard_domain::RunRecord;
use switchboard_orchestration::{
    Agent, RunEvent,
    persistence::{PersistedRun, PersistedRunEnd},
};

use super::{Chat, ChatFlow};
use crate::{
    run_session::{
        conversations::explain_run_error,
        failure::{Code, Failure},
        terminal_run::{EarlyStop, active_run::ActiveRun, process_events},
    },
    storage::sessions::SessionsError,
    terminal::{self, print_error, print_line, print_note},
};

impl Chat<'_> {
    /// Answers a question of the user with a new run in the session of the conversation. Creates
    /// the session if the conversation has none yet. If the run cannot start, prints the error, and
    /// the conversation continues.
    pub(super) async fn answer_question(&mut self, question: String) -> Result<ChatFlow, Failure> {
        let id = if let Some(session) = &self.session {
            session.id.clone()
        } else {
            let wished = self.requested_id.take();
            let conversations = &self.conversations;
            let created = conversations.create_session(wished.as_deref(), &question);
            match created.await {
                Ok(session) => self.session.insert(session).id.clone(),
                Err(error) => return Ok(self.report_error(&error.into())),
            }
        };
        let agent = self.current_agent();
        let conversations = self.conversations.clone();
        let begun = conversations.begin_run(&agent, &id, question, &self.args, &self.context);
        match begun.await {
            Ok(run) => self.show_run_until_end(run).await,
            Err(error) => {
                let flow = self.report_error(&explain_run_error(error));
                self.ask_about_unfinished_run().await?;
                Ok(flow)
            }
        }
    }

    /// Returns a copy of the agent with the current list of redefined tools. The definition of such
    /// a tool differs from the stored definition. Approval checks therefore do not trust its
    /// annotations, such as read-only.
    pub(super) fn current_agent(&self) -> Agent {
        let redefined = self.resources.host.redefined_tool_names();
        self.agent.clone().with_redefined_tools(redefined)
    }

    /// Prints an error and sets the exit code of `chat` to [`Code::Failed`]. The conversation
    /// continues.
    pub(super) fn report_error(&mut self, error: &anyhow::Error) -> ChatFlow {
        print_error(error);
        self.code = Code::Failed;
        ChatFlow::Continue
    }

    /// Prints the events of a run until it ends. The first Ctrl-C cancels the run. After a second
    /// Ctrl-C, the function does not wait until the run has ended. The conversation continues in
    /// both cases.
    pub(super) async fn show_run_until_end(
        &mut self,
        run: PersistedRun,
    ) -> Result<ChatFlow, Failure> {
        let mut run = ActiveRun::Persisted(Box::new(run));
        self.is_running.store(true, Ordering::Relaxed);
        let followed = self.show_run_events(&mut run).await;
        self.is_running.store(false, Ordering::Relaxed);
        self.screen.remove_spinner();
        if self.has_line_editor() {
            print_line("");
        }
        let flow = followed?;
        match run.run_end() {
            Some(PersistedRunEnd::Failed(error)) => {
                terminal::print_warning(&format!("the answer could not be saved: {error}"));
                self.code = Code::Failed;
            }
            Some(PersistedRunEnd::Waiting(waiting)) => {
                let tools = waiting.iter().map(|it| it.tool_use.name.as_str());
                let tools: Vec<&str> = tools.collect();
                print_note(&format!(
                    "the run waits for your approval of {}: /continue resumes it, /abandon \
                     discards it",
                    tools.join(", ")
                ));
            }
            _ => {}
        }
        self.resources.save_approval_decisions();
        // Reloads the session, because the run has added messages to the stored session.
        if let Some(session) = &mut self.session
            && let Ok(Some(now)) = self.conversations.find_session(&session.id.0).await
        {
            *session = now;
        }
        Ok(flow)
    }

    async fn show_run_events(&mut self, run: &mut ActiveRun) -> Result<ChatFlow, Failure> {
        let session = self.session.as_ref().map(|session| session.id.0.clone());
        let owner = self.conversations.owner.clone();
        let audit = &self.resources.audit;
        let mut recorder = audit.create_run_recorder(session, Some(owner));
        let presses = self.editor.as_ref().map(|editor| editor.presses.clone());
        let (output, screen) = (&mut self.output, &self.screen);
        let show = |event: &RunEvent| output.show_event(event, screen);
        let (code, stop) =
            process_events(run, &mut recorder, screen, self.interrupts, presses, show).await?;
        match stop {
            EarlyStop::Interrupted => return Ok(ChatFlow::Leave(Code::Interrupted)),
            EarlyStop::Paused => {
                print_note("the run is paused: /continue resumes it, /abandon discards it");
            }
            // A run that the user cancelled does not change the exit code of `chat` to an error.
            EarlyStop::Cancelled if code == Code::Interrupted => self.code = Code::Success,
            EarlyStop::Cancelled | EarlyStop::No => self.code = code,
        }
        Ok(ChatFlow::Continue)
    }

    pub(super) async fn find_unfinished_run(&self) -> Result<Option<RunRecord>, SessionsError> {
        match &self.session {
            Some(session) => self.conversations.find_unfinished_run(&session.id).await,
            None => Ok(None),
        }
    }
}

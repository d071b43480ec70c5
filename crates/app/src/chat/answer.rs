//! Questions and answers of a conversation.

use std::sync::{Arc, atomic::Ordering};

use switchboard_domain::{Message, RunRecord};
use switchboard_orchestration::{
    Agent, Outcome, RunEventKind,
    persistence::{PersistedRun, PersistedRunEnd},
};

use super::{Chat, Flow};
use crate::run_session::{conversations::with_remedy, follow::running::Running};
use crate::{
    run_session::{
        failure::{Code, Failure},
        follow::{code_of, print_unapproved_calls},
        interrupts::Presses,
    },
    storage::sessions::SessionsError,
    terminal::{self, print_error, print_line, print_note},
};

impl Chat<'_> {
    /// Answers a question as a run of the session.
    pub(super) async fn ask(&mut self, question: String) -> Result<Flow, Failure> {
        let id = if let Some(session) = &self.session {
            session.id.clone()
        } else {
            let wished = self.requested_id.take();
            match self.conversations.begin(wished.as_deref(), &question).await {
                Ok(session) => self.session.insert(session).id.clone(),
                Err(error) => return Ok(self.failed(&error.into())),
            }
        };
        let message = Arc::new(Message::user(question));
        let durable_runs = self.conversations.durable_runs.clone();
        let agent = self.agent_now();
        let parameters = self.args.run_parameters(&self.context, &agent).stored();
        let begun = durable_runs.begin_with(&agent, &id, vec![message], parameters);
        match begun.await {
            Ok(run) => self.follow(run).await,
            Err(error) => {
                let flow = self.failed(&with_remedy(error));
                self.offer_open_run().await?;
                Ok(flow)
            }
        }
    }

    /// Returns the agent with the currently changed tools.
    pub(super) fn agent_now(&self) -> Agent {
        let redefined = self.host.redefined_tools();
        self.agent.clone().with_redefined_tools(redefined)
    }

    /// Prints an error. The conversation continues.
    pub(super) fn failed(&mut self, error: &anyhow::Error) -> Flow {
        print_error(error);
        self.code = Code::Failed;
        Flow::On
    }

    /// Shows a run as it happens. Ctrl-C cancels it; a second Ctrl-C returns at once. Neither ends
    /// the conversation.
    pub(super) async fn follow(&mut self, run: PersistedRun) -> Result<Flow, Failure> {
        let mut run = Running::persisted(run, self.screen.clone());
        self.is_running.store(true, Ordering::Relaxed);
        let followed = self.events(&mut run).await;
        self.is_running.store(false, Ordering::Relaxed);
        self.screen.pause();
        if self.has_editor() {
            print_line("");
        }
        let flow = followed?;
        match run.end() {
            Some(PersistedRunEnd::Failed(error)) => {
                terminal::print_warning(&format!("the answer could not be saved: {error}"));
                self.code = Code::Failed;
            }
            Some(PersistedRunEnd::Waiting(waiting)) => {
                let tools: Vec<&str> = waiting
                    .iter()
                    .map(|request| request.tool_use.name.as_str())
                    .collect();
                print_note(&format!(
                    "the run waits for your approval of {}: /continue resumes it, /abandon \
                     discards it",
                    tools.join(", ")
                ));
            }
            _ => {}
        }
        if let Err(error) = self.decisions.save() {
            terminal::print_warning(&format!("failed to save your approval decisions: {error}"));
        }
        // The stored session has a new message count.
        if let Some(session) = &mut self.session
            && let Ok(Some(now)) = self.conversations.named(&session.id.0).await
        {
            *session = now;
        }
        Ok(flow)
    }

    async fn events(&mut self, run: &mut Running) -> Result<Flow, Failure> {
        let session = self.session.as_ref().map(|session| session.id.0.clone());
        let mut recorder = self
            .audit
            .run(session, Some(self.conversations.owner.clone()));
        let cancel = run.cancel_handle();
        let mut presses = self.presses.clone();
        let (mut stopped, mut leaving) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                () = self.interrupts.second() => return Ok(Flow::Leave(Code::Interrupted)),
                () = self.interrupts.first(), if !leaving => {
                    leaving = true;
                    cancel.cancel();
                    continue;
                }
                () = pressed(&mut presses) => {
                    if stopped {
                        print_note("the run is paused: /continue resumes it, /abandon discards it");
                        return Ok(Flow::On);
                    }
                    stopped = true;
                    cancel.cancel();
                    continue;
                }
                event = run.next() => event,
            };
            let Some(event) = event else { break };
            recorder.observe(&event).await;
            self.output
                .show(&event, &self.screen)
                .map_err(Failure::run)?;
            match &event.kind {
                RunEventKind::RunFinished { report } => {
                    self.code = code_of(report.outcome);
                    print_unapproved_calls(report);
                    if report.outcome == Outcome::Cancelled && stopped {
                        // A cancelled run is not a failure.
                        self.code = Code::Success;
                    }
                }
                RunEventKind::RunParked { .. } => self.code = Code::Waiting,
                _ => {}
            }
        }
        Ok(if leaving {
            Flow::Leave(Code::Interrupted)
        } else {
            Flow::On
        })
    }

    pub(super) async fn open_run(&self) -> Result<Option<RunRecord>, SessionsError> {
        match &self.session {
            Some(session) => self.conversations.open_run(&session.id).await,
            None => Ok(None),
        }
    }
}

async fn pressed(presses: &mut Option<Presses>) {
    match presses {
        Some(presses) => presses.next().await,
        None => std::future::pending().await,
    }
}

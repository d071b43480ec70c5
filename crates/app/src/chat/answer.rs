//! A question and its answer.

use std::sync::{Arc, atomic::Ordering};

use switchboard_domain::{Message, RunRecord};
use switchboard_orchestration::{
    Agent, Outcome, RunEventKind,
    persistence::{KeptEnd, KeptRun},
};

use super::{Chat, Flow, Running, talk::explained};
use crate::{
    cli::{
        Code, Failure,
        ask::{code_of, say_unapproved},
        interrupt::Presses,
    },
    sessions::SessionsError,
    terminal::{self, say, say_error, say_note},
};

impl Chat<'_> {
    /// Has a question answered, as a run of the session.
    pub(super) async fn ask(&mut self, question: String) -> Result<Flow, Failure> {
        let id = if let Some(session) = &self.session {
            session.id.clone()
        } else {
            let wished = self.wished_id.take();
            match self.talks.begin(wished.as_deref(), &question).await {
                Ok(session) => self.session.insert(session).id.clone(),
                Err(error) => return Ok(self.failed(&error.into())),
            }
        };
        let message = Arc::new(Message::user(question));
        let journal = self.talks.journal.clone();
        let agent = self.agent_now();
        let wish = self.args.begun_with(&self.context, &agent).stored();
        let begun = journal.begin_with(&agent, &id, vec![message], wish);
        match begun.await {
            Ok(run) => self.follow(run).await,
            Err(error) => {
                let flow = self.failed(&explained(error));
                self.offer_open_run().await?;
                Ok(flow)
            }
        }
    }

    /// The agent, which knows which tools are not what they were by now.
    pub(super) fn agent_now(&self) -> Agent {
        let redefined = self.host.redefined_tools();
        self.agent.clone().with_redefined_tools(redefined)
    }

    /// Tells what went wrong; the conversation goes on.
    pub(super) fn failed(&mut self, error: &anyhow::Error) -> Flow {
        say_error(error);
        self.code = Code::Failed;
        Flow::On
    }

    /// Shows a run as it happens. Ctrl-C ends it properly, a second one at once; neither ends the conversation.
    pub(super) async fn follow(&mut self, run: KeptRun) -> Result<Flow, Failure> {
        let mut run = Running::kept(run, self.screen.clone());
        self.in_run.store(true, Ordering::Relaxed);
        let followed = self.events(&mut run).await;
        self.in_run.store(false, Ordering::Relaxed);
        self.screen.hold_still();
        if self.has_editor() {
            // The next prompt is set apart.
            say("");
        }
        let flow = followed?;
        match run.end() {
            Some(KeptEnd::Failed(error)) => {
                terminal::say_warning(&format!("the answer could not be kept: {error}"));
                self.code = Code::Failed;
            }
            Some(KeptEnd::Waiting(waiting)) => {
                let tools: Vec<&str> = waiting
                    .iter()
                    .map(|request| request.tool_use.name.as_str())
                    .collect();
                say_note(&format!(
                    "the run waits for your word about {}: /continue goes on with it, /abandon ends it",
                    tools.join(", ")
                ));
            }
            _ => {}
        }
        if let Err(error) = self.decisions.keep() {
            terminal::say_warning(&format!("what you decided is not kept: {error}"));
        }
        // What it holds now, for lists and for the next one who looks.
        if let Some(session) = &mut self.session
            && let Ok(Some(now)) = self.talks.named(&session.id.0).await
        {
            *session = now;
        }
        Ok(flow)
    }

    async fn events(&mut self, run: &mut Running) -> Result<Flow, Failure> {
        let session = self.session.as_ref().map(|session| session.id.0.clone());
        let mut recorder = self.audit.run(session, Some(self.talks.owner.clone()));
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
                        say_note("left as it is: /continue goes on with it, /abandon ends it");
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
            self.paper
                .show(&event, &self.screen)
                .map_err(Failure::run)?;
            match &event.kind {
                RunEventKind::RunFinished { report } => {
                    self.code = code_of(report.outcome);
                    say_unapproved(report);
                    if report.outcome == Outcome::Cancelled && stopped {
                        // It was stopped, and nothing failed.
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

    /// The run of this session that is not over, if there is one.
    pub(super) async fn open_run(&self) -> Result<Option<RunRecord>, SessionsError> {
        match &self.session {
            Some(session) => self.talks.open_run(&session.id).await,
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

//! Runs begin, and go on.

use std::sync::Arc;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use switchboard_domain::{
    ApprovalDecision, Approver, Message, Principal, Role, RunRecord, RunState, Session, SessionId,
    SessionStoreError,
};
use switchboard_orchestration::{Agent, RunEventKind, journal::TakenRun};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::{
    Active, Hub, RunLog, Start, Started, Talk,
    desk::{Desk, Who},
    drive::Driven,
    unhindered,
};
use crate::{Problem, Wish};

/// Characters of a session's title at most, where it is made of the first message.
const TITLE: usize = 80;

impl Hub {
    /// Begins a run. It goes on whether or not anybody reads it.
    pub(crate) async fn start(&self, start: Start) -> Result<Started, Problem> {
        if matches!(start.talk, Talk::Loose { .. }) {
            // Nothing of it is kept: with its client it is gone.
            return self.start_now(start).await;
        }
        let hub = self.clone();
        unhindered(async move { hub.start_now(start).await }).await
    }

    async fn start_now(&self, start: Start) -> Result<Started, Problem> {
        let Start {
            principal,
            wish,
            talk,
            shape,
        } = start;
        wish.parameters.check()?;
        let slot = self.slot(&principal)?;
        let agent = self.engine().agent(&wish, &principal).await?;
        let agent = shape.map_or(agent.clone(), |shape| shape(agent));
        match talk {
            Talk::Loose { messages } => self.begin_loose(agent, principal, messages, slot).await,
            Talk::Session {
                id,
                create,
                messages,
            } => {
                let (session, is_new) = match id {
                    Some(id) if !create => (id, false),
                    id => self.session(&principal, id, &messages).await?,
                };
                let begun = self
                    .begin(agent, &principal, &session, messages, slot)
                    .await;
                if begun.is_err() && is_new {
                    // A session that nobody was told of, and that holds nothing.
                    let _ = self.sessions().delete(&principal, &session).await;
                }
                begun
            }
        }
    }

    /// Goes on with a run that waits or was interrupted, with a word about one of its calls if there is one.
    pub(crate) async fn resume(
        &self,
        principal: &Principal,
        run: &str,
        word: Option<(&str, ApprovalDecision)>,
    ) -> Result<Started, Problem> {
        let slot = self.slot(principal)?;
        let taken = self.journal(principal).take(run).await?;
        if taken.is_bare() {
            // With other approvals and limits than it was begun with it does not go on.
            return Err(Problem::conflict(format!(
                "run `{run}` was interrupted before it had begun to do anything: end it (POST /runs/{run}/cancel) and \
                 ask again"
            )));
        }
        if let Some((call, _)) = &word {
            is_open(&taken, call)?;
        }
        let agent = self.agent_for(&taken, principal).await?;
        let record = taken.record().clone();
        let open = taken.run().waiting().into_iter().cloned().collect();
        let patience = self.options().approval_time;
        let desk = Arc::new(Desk::new(Who::IsKept, patience, open));
        if let Some((call, word)) = word {
            desk.leave(call, word);
        }
        let agent = agent.with_approver(Arc::clone(&desk) as Arc<dyn Approver>);
        let kept = self.journal(principal).go_on(&agent, taken);
        let run = Driven::Kept(Box::new(kept));
        Ok(self.started(principal.clone(), record, desk, run, slot))
    }

    /// The agent that goes on: with the run's own model, or with the configured one if that is no longer there.
    async fn agent_for(&self, taken: &TakenRun, principal: &Principal) -> Result<Agent, Problem> {
        let wish = Wish {
            model: Some(taken.run().model().to_string()),
            ..Wish::default()
        };
        match self.engine().agent(&wish, principal).await {
            Ok(agent) => Ok(agent),
            Err(error) => {
                tracing::warn!(run = taken.record().id, %error, "a run goes on with another model");
                Ok(self.engine().agent(&Wish::default(), principal).await?)
            }
        }
    }

    async fn begin(
        &self,
        agent: Agent,
        principal: &Principal,
        session: &SessionId,
        messages: Vec<Arc<Message>>,
        slot: OwnedSemaphorePermit,
    ) -> Result<Started, Problem> {
        let patience = self.options().approval_time;
        let desk = Arc::new(Desk::new(Who::IsKept, patience, Vec::new()));
        let agent = agent.with_approver(Arc::clone(&desk) as Arc<dyn Approver>);
        let journal = self.journal(principal);
        let kept = journal.begin(&agent, session, messages).await?;
        let record = kept.record().clone();
        let run = Driven::Kept(Box::new(kept));
        Ok(self.started(principal.clone(), record, desk, run, slot))
    }

    async fn begin_loose(
        &self,
        agent: Agent,
        principal: Principal,
        messages: Vec<Arc<Message>>,
        slot: OwnedSemaphorePermit,
    ) -> Result<Started, Problem> {
        let patience = self.options().approval_time;
        let desk = Arc::new(Desk::new(Who::Expires, patience, Vec::new()));
        let agent = agent
            .on_behalf_of(principal.clone(), None)
            .with_approver(Arc::clone(&desk) as Arc<dyn Approver>);
        let mut stream = agent.run(messages);
        // It says at once which run it is.
        let first = stream.next().await.ok_or_else(Problem::internal)?;
        let model = match &first.kind {
            RunEventKind::RunStarted { model, .. } => model.to_string(),
            _ => String::new(),
        };
        let record = RunRecord {
            id: first.run_id.to_string(),
            session: SessionId(String::new()),
            state: RunState::Running,
            model,
            created_at: first.time.to_string(),
            updated_at: first.time.to_string(),
            events_before: 0,
            last_event: 0,
            outcome: None,
        };
        let run = Driven::Loose(Some(first), Box::new(stream));
        Ok(self.started(principal, record, desk, run, slot))
    }

    fn started(
        &self,
        owner: Principal,
        record: RunRecord,
        desk: Arc<Desk>,
        run: Driven,
        slot: OwnedSemaphorePermit,
    ) -> Started {
        let is_kept = matches!(run, Driven::Kept(_));
        let active = Active {
            log: Arc::new(RunLog::new(record.last_event, self.options().log_bytes)),
            cancel: run.cancel_handle(),
            record,
            owner,
            is_kept,
            desk,
        };
        let active = Arc::new(active);
        let started = Started {
            hub: self.clone(),
            run: active.id(),
            session: is_kept.then(|| active.record.session.clone()),
            last_event: active.record.last_event,
            active: Arc::clone(&active),
        };
        self.drive(active, run, slot);
        started
    }

    /// A place for one more run.
    fn slot(&self, principal: &Principal) -> Result<OwnedSemaphorePermit, Problem> {
        if self.shared.stopping.is_cancelled() {
            return Err(Problem::unavailable(
                "the server is about to stop: send the request again when it is back",
                None,
            ));
        }
        let most = self.options().max_runs_each;
        let theirs = self
            .active()
            .values()
            .filter(|it| it.owner == *principal)
            .count();
        if theirs >= most {
            return Err(Problem::too_many(format!(
                "{most} runs of yours are under way, and more are not allowed: wait for one to end, or end one \
                 (POST /runs/{{id}}/cancel)"
            )));
        }
        Arc::clone(&self.shared.slots)
            .try_acquire_owned()
            .map_err(|_| {
                let most = self.options().max_runs;
                Problem::unavailable(
                    format!(
                        "{most} runs are under way, and the server takes no more at once: try again"
                    ),
                    None,
                )
            })
    }

    /// The session of this id, which is made if there is none; and whether it was.
    async fn session(
        &self,
        principal: &Principal,
        id: Option<SessionId>,
        messages: &[Arc<Message>],
    ) -> Result<(SessionId, bool), Problem> {
        if let Some(id) = &id
            && self.sessions().get(principal, id).await?.is_some()
        {
            return Ok((id.clone(), false));
        }
        let said = messages.iter().find(|message| message.role == Role::User);
        let title = said
            .map(|message| title_of(&message.text()))
            .unwrap_or_default();
        let given = id.clone();
        match self.create(principal, id, title).await {
            Ok(session) => Ok((session.id, true)),
            // Somebody else made it meanwhile, on the same principal's behalf.
            Err(SessionStoreError::Exists { .. }) => match given {
                Some(id) if self.sessions().get(principal, &id).await?.is_some() => Ok((id, false)),
                _ => Err(Problem::invalid(
                    "session_id",
                    "the session's id is taken: choose another one",
                )),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a session.
    pub(crate) async fn create(
        &self,
        principal: &Principal,
        id: Option<SessionId>,
        title: String,
    ) -> Result<Session, SessionStoreError> {
        let session = Session {
            id: id.unwrap_or_else(|| SessionId(Uuid::now_v7().to_string())),
            title,
            created_at: Timestamp::now().to_string(),
            messages: 0,
        };
        self.sessions().create(principal, &session).await?;
        Ok(session)
    }
}

/// A call that waits for a word is among these.
fn is_open(taken: &TakenRun, call: &str) -> Result<(), Problem> {
    let waiting = taken.run().waiting();
    if waiting.iter().any(|request| request.tool_use.id == call) {
        return Ok(());
    }
    Err(not_open(
        call,
        waiting.iter().map(|it| it.tool_use.id.as_str()),
    ))
}

/// A word about a call that waits for none.
pub(super) fn not_open<'w>(call: &str, waiting: impl Iterator<Item = &'w str>) -> Problem {
    let waiting: Vec<&str> = waiting.collect();
    let others = if waiting.is_empty() {
        "the run waits for none".to_owned()
    } else {
        format!("the run waits for words about: {}", waiting.join(", "))
    };
    Problem::conflict(format!(
        "the call `{call}` waits for no word, or has one already; {others}"
    ))
}

/// The first line of a message, cut at a word.
fn title_of(text: &str) -> String {
    // A store may refuse control characters, and a list has no use for them.
    let mut lines = text.lines().map(|line| line.replace(char::is_control, " "));
    let line = lines.find(|line| !line.trim().is_empty());
    let line = line.as_deref().unwrap_or_default().trim();
    if line.chars().count() <= TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE).collect();
    let at_word = cut.rfind(' ').filter(|at| *at > TITLE / 2);
    format!("{}…", cut[..at_word.unwrap_or(cut.len())].trim_end())
}

#[cfg(test)]
mod tests {
    use super::title_of;

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        assert_eq!(title_of("\n  Hello  \nthere"), "Hello");
        assert_eq!(title_of(""), "");
        assert_eq!(title_of("\u{0}\nA\u{0}tab\there"), "A tab here");
        let long = "account ".repeat(20);
        let title = title_of(&long);
        assert!(
            title.ends_with("account…") && title.chars().count() <= 81,
            "{title}"
        );
        let title = title_of(&"ß".repeat(100));
        assert_eq!(title.chars().count(), 81);
    }
}

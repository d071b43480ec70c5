//! The saved conversations that belong to the terminal user.

use std::sync::Arc;

use anyhow::anyhow;
use jiff::Timestamp;
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore as _, Session, SessionId, SessionStore as _,
    SessionStoreError,
};
use switchboard_orchestration::{
    Agent,
    persistence::{DurableRunError, DurableRuns, PersistedRun},
};
use uuid::Uuid;

use super::{agent::AgentArgs, context::Context};
use crate::{
    storage::sessions::{OpenSessionStore, SessionsError},
    terminal::to_one_line,
};

/// Maximum length of a session title in characters. Longer titles are cut.
const MAX_TITLE_LENGTH: usize = 80;
/// Maximum length of a session id in characters. Longer ids are an error.
const MAX_ID_LENGTH: usize = 128;

/// The saved conversations of the terminal user, and the durable runs that continue them.
#[derive(Clone)]
pub(crate) struct SavedConversations {
    pub(crate) sessions: OpenSessionStore,
    pub(crate) durable_runs: DurableRuns,
    pub(crate) owner: Principal,
}

impl SavedConversations {
    pub(crate) async fn open_conversations(context: &Context) -> Result<Self, SessionsError> {
        let opened = OpenSessionStore::open_and_prune(&context.config, &context.environment);
        Ok(Self::from_sessions(opened.await?))
    }

    pub(crate) fn from_sessions(sessions: OpenSessionStore) -> Self {
        let owner = Principal::default();
        let durable_runs = DurableRuns::new(
            sessions.session_store(),
            sessions.run_store(),
            owner.clone(),
        );
        Self {
            sessions,
            durable_runs,
            owner,
        }
    }

    /// Returns the session with exactly this id. `None` if it does not exist.
    pub(crate) async fn find_session(&self, id: &str) -> Result<Option<Session>, SessionsError> {
        let id = SessionId(id.to_owned());
        let store = &self.sessions.store;
        Ok(store.find_session(&self.owner, &id).await?)
    }

    /// Returns at most `limit` sessions of the terminal user, newest first.
    pub(crate) async fn list_sessions(&self, limit: u32) -> Result<Vec<Session>, SessionsError> {
        let store = &self.sessions.store;
        Ok(store.list_sessions(&self.owner, limit).await?)
    }

    /// Creates a session with the start of `message` as its title.
    pub(crate) async fn create_session(
        &self,
        id: Option<&str>,
        message: &str,
    ) -> Result<Session, SessionsError> {
        let session = Session {
            id: SessionId(id.map_or_else(|| Uuid::now_v7().to_string(), ToOwned::to_owned)),
            title: to_one_line(message, MAX_TITLE_LENGTH),
            created_at: Timestamp::now().to_string(),
            messages: 0,
        };
        let store = &self.sessions.store;
        let created = store.create_session(&self.owner, &session).await;
        match created {
            // Another process has just created the requested session, so it exists.
            Err(SessionStoreError::Exists { .. }) if id.is_some() => {}
            created => created?,
        }
        Ok(session)
    }

    /// Begins a durable run that answers a question in a session.
    pub(crate) async fn begin_run(
        &self,
        agent: &Agent,
        session: &SessionId,
        question: String,
        args: &AgentArgs,
        context: &Context,
    ) -> Result<PersistedRun, DurableRunError> {
        let messages = vec![Arc::new(Message::user(question))];
        let parameters = args.run_parameters(context, agent).into_stored_value();
        let agent = self.share_call_rates(agent);
        let runs = &self.durable_runs;
        runs.begin_run(&agent, session, messages, parameters).await
    }

    /// Makes the agent count tool calls together with the other processes of this store.
    pub(crate) fn share_call_rates(&self, agent: &Agent) -> Agent {
        let rates = self.sessions.call_rates();
        agent.clone().with_shared_call_rates(rates)
    }

    /// Returns the newest run of a session if it is not finished: the run waits for a decision, was
    /// interrupted or is in progress.
    pub(crate) async fn find_unfinished_run(
        &self,
        session: &SessionId,
    ) -> Result<Option<RunRecord>, SessionsError> {
        let store = &self.sessions.store;
        let runs = store.list_runs(&self.owner, Some(session), 1).await?;
        Ok(runs.into_iter().find(|run| run.state != RunState::Finished))
    }

    /// Returns an error if a session has a run that is not finished.
    pub(crate) async fn check_no_unfinished_run(&self, session: &SessionId) -> anyhow::Result<()> {
        match self.find_unfinished_run(session).await? {
            Some(run) => Err(session_busy_error(session, &run.id, Some(run.state))),
            None => Ok(()),
        }
    }
}

/// Returns an error if a session id is too long or contains invalid characters.
pub(crate) fn check_session_id(id: &str) -> anyhow::Result<()> {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@');
    if id.is_empty() || id.chars().count() > MAX_ID_LENGTH || !id.chars().all(is_fine) {
        return Err(anyhow!(
            "`{}` is not a valid session id: use up to {MAX_ID_LENGTH} letters, digits, and - _ . \
             : @",
            to_one_line(id, 40)
        ));
    }
    Ok(())
}

fn session_busy_error(session: &SessionId, run: &str, state: Option<RunState>) -> anyhow::Error {
    let (how, way_out) = match state {
        Some(RunState::Waiting) => (
            "has a run that waits for your approval",
            format!("`switchboard chat --session {session}` resumes or discards it"),
        ),
        Some(RunState::Interrupted) => (
            "has a run that was interrupted",
            format!("`switchboard chat --session {session}` resumes or discards it"),
        ),
        _ => (
            "is busy: another process executes its run",
            "wait until the run ends, or choose another session".to_owned(),
        ),
    };
    anyhow!("session `{session}` {how} ({run}): {way_out}")
}

/// Converts an error of a durable run to a message that also states what the user can do.
pub(crate) fn explain_run_error(error: DurableRunError) -> anyhow::Error {
    match error {
        DurableRunError::Store(SessionStoreError::Busy { session, run }) => {
            session_busy_error(&session, &run, None)
        }
        DurableRunError::Store(SessionStoreError::Conflict { id, .. }) => {
            anyhow!("session `{id}` was changed by another process: send the question again")
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_words_that_a_command_line_takes_as_they_are() {
        for id in ["a", "nightly-2026.11", "team:ada@home", "Ü_1"] {
            assert!(check_session_id(id).is_ok(), "{id}");
        }
        for id in ["", "a b", "a/b", "../x", "x\u{1b}[2J", &"a".repeat(129)] {
            assert!(check_session_id(id).is_err(), "{id:?}");
        }
    }
}

//! Starts runs, and creates sessions for them.

use std::{future::ready, sync::Arc};

use futures_util::{StreamExt as _, stream};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::Sha256;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, Approver, IdKey, Message, Principal, Role, RunRecord,
    RunState, Session, SessionId, SessionStoreError,
};
use switchboard_orchestration::{
    Agent, CancelHandle, RunEventKind, RunParameters,
    persistence::{DurableRunError, PersistedRun},
};
use uuid::Uuid;

use super::{
    ActiveRun, CLIENT_SERVER, ConversationInput, LoggedEvent, PendingApprovals, RunHub, RunLog,
    RunStartRequest, StartedRun, run_execution::RunExecution, run_limits::RunSlots,
    spawn_and_await,
};
use crate::Problem;

/// Maximum number of characters of a session title that is derived from the first message.
const MAX_TITLE: usize = 80;
/// Maximum number of characters of the client's session id at the start of the stored session id. A
/// dot and 32 hex digits follow, so that the stored id has at most 128 characters, like the session
/// ids that clients may send.
const ID_PREFIX_LENGTH: usize = 95;

impl RunHub {
    /// Starts a run. The run continues if the client disconnects, unless the run is ephemeral.
    pub(crate) async fn start_run(&self, start: RunStartRequest) -> Result<StartedRun, Problem> {
        if matches!(start.conversation, ConversationInput::Ephemeral { .. }) {
            // An ephemeral run is started in the task of the request, so that the start ends when
            // the client disconnects.
            return self.start_run_inner(start).await;
        }
        let hub = self.clone();
        spawn_and_await(async move { hub.start_run_inner(start).await }).await
    }

    async fn start_run_inner(&self, start: RunStartRequest) -> Result<StartedRun, Problem> {
        let (principal, settings) = (start.principal, start.settings);
        settings.parameters.validate_parameters()?;
        let slots = self.acquire_run_slots(&principal)?;
        // A new session gets its id before it is stored, because the agent may depend on the id.
        let (session, is_new) = match &start.conversation {
            ConversationInput::Ephemeral { .. } => (None, false),
            ConversationInput::Session { id, .. } => (
                Some(id.clone().unwrap_or_else(new_session_id)),
                id.is_none(),
            ),
        };
        let agent = self
            .engine()
            .create_agent(&settings, &principal, session.as_ref());
        let mut agent = agent.await?;
        if let Some(form) = start.answer_form {
            agent = agent.with_answer_schema(&form);
        }
        if let Some(tools) = start.client_tools {
            agent = agent.with_tools_requiring_approval(CLIENT_SERVER, tools);
        }
        match start.conversation {
            ConversationInput::Ephemeral { messages } => {
                self.start_ephemeral_run(agent, principal, messages, slots)
                    .await
            }
            ConversationInput::Session {
                id: _,
                create,
                keep,
                messages,
            } => {
                let id = session.unwrap_or_else(new_session_id);
                let is_known = !create || (!is_new && self.has_session(&principal, &id).await?);
                let mut parameters = RunParameters::from_agent(&agent);
                parameters.recipe.clone_from(&settings.recipe);
                parameters.without_tools = settings.parameters.tools == Some(false);
                parameters.parameters = serde_json::to_value(&settings.parameters).ok();
                let parameters = parameters.into_stored_value();
                let approvals = self.durable_approvals(Vec::new());
                let agent = agent.with_approver(Arc::clone(&approvals) as Arc<dyn Approver>);
                let runs = self.durable_runs(&principal);
                if !is_known {
                    if keep.is_some() {
                        // The request keeps stored messages (`keep`), but the session does not
                        // exist.
                        return Err(Problem::session_not_found(&id.0));
                    }
                    let session = new_session(id.clone(), title_from_messages(&messages));
                    let (messages, parameters) = (messages.clone(), parameters.clone());
                    let begun =
                        runs.begin_run_in_new_session(&agent, &session, messages, parameters);
                    match begun.await {
                        // Another request has just created the session, so the run starts in this
                        // session below.
                        Err(DurableRunError::Store(SessionStoreError::Exists { .. })) => {}
                        run => {
                            return Ok(self.execute_durable_run(principal, run?, approvals, slots));
                        }
                    }
                    if !self.has_session(&principal, &id).await? {
                        let detail = "the session id is in use: choose another one";
                        return Err(Problem::invalid_field("session_id", detail));
                    }
                }
                let run = match keep {
                    None => runs.begin_run(&agent, &id, messages, parameters).await?,
                    Some(keep) => {
                        runs.begin_run_after_truncation(&agent, &id, keep, messages, parameters)
                            .await?
                    }
                };
                Ok(self.execute_durable_run(principal, run, approvals, slots))
            }
        }
    }

    pub(super) fn durable_approvals(&self, waiting: Vec<ApprovalRequest>) -> Arc<PendingApprovals> {
        let time_limit = self.options().approval_time;
        let approvals = PendingApprovals::new(ApprovalDecision::Later, time_limit, waiting);
        Arc::new(approvals)
    }

    async fn start_ephemeral_run(
        &self,
        agent: Agent,
        principal: Principal,
        messages: Vec<Arc<Message>>,
        slots: RunSlots,
    ) -> Result<StartedRun, Problem> {
        let time_limit = self.options().approval_time;
        let approvals = PendingApprovals::new(ApprovalDecision::Expired, time_limit, Vec::new());
        let approvals = Arc::new(approvals);
        let agent = agent
            .with_principal(principal.clone(), None)
            .with_approver(Arc::clone(&approvals) as Arc<dyn Approver>);
        let mut run = agent.run(messages);
        // The first event contains the run id, which the response headers need.
        let first = run.next().await.ok_or_else(Problem::internal_error)?;
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
            parameters: None,
        };
        let cancel = run.cancel_handle();
        let events = stream::once(ready(first)).chain(run);
        let execution = RunExecution::Ephemeral(events.map(LoggedEvent::from).boxed());
        Ok(self.execute_new_run(principal, record, approvals, cancel, execution, slots))
    }

    pub(super) fn execute_durable_run(
        &self,
        owner: Principal,
        run: PersistedRun,
        approvals: Arc<PendingApprovals>,
        slots: RunSlots,
    ) -> StartedRun {
        let mut record = run.run_record().clone();
        // Clients do not need the stored parameters, which may be large.
        record.parameters = None;
        let cancel = run.cancel_handle();
        let execution = RunExecution::Durable(Box::new(run));
        self.execute_new_run(owner, record, approvals, cancel, execution, slots)
    }

    fn execute_new_run(
        &self,
        owner: Principal,
        record: RunRecord,
        approvals: Arc<PendingApprovals>,
        cancel: CancelHandle,
        execution: RunExecution,
        slots: RunSlots,
    ) -> StartedRun {
        let is_durable = matches!(execution, RunExecution::Durable(_));
        let active = Arc::new(ActiveRun {
            log: Arc::new(RunLog::new(record.last_event, self.options().log_bytes)),
            cancel,
            record,
            owner,
            is_durable,
            approvals,
        });
        let started = StartedRun {
            hub: self.clone(),
            run: active.id(),
            session: is_durable.then(|| active.record.session.clone()),
            active: Arc::clone(&active),
        };
        self.execute_in_background(active, execution, slots);
        started
    }

    /// Acquires the slots for one more run. Fails if all slots are in use or the server shuts down.
    pub(super) fn acquire_run_slots(&self, principal: &Principal) -> Result<RunSlots, Problem> {
        if self.shared.stopping.is_cancelled() {
            return Err(Problem::server_unavailable(
                "the server is shutting down: send the request again after the restart",
            ));
        }
        self.shared.limits.acquire_slots(principal)
    }

    /// Returns the id under which the store keeps a session that a client identifies by `id`. Ids
    /// are unique in a store, and a client must not detect sessions of other principals. The stored
    /// id of a principal with a tenant or user therefore ends with a hash that only requests of
    /// this principal produce. A session that the principal already has under `id` keeps this id.
    pub(crate) async fn stored_session_id(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<SessionId, Problem> {
        if *principal == Principal::default() || self.has_session(principal, &id).await? {
            return Ok(id);
        }
        let key = self.session_store().load_session_id_key().await?;
        derive_id(&key, principal, &id)
    }

    pub(crate) async fn has_session(
        &self,
        principal: &Principal,
        id: &SessionId,
    ) -> Result<bool, Problem> {
        let found = self.session_store().find_session(principal, id).await?;
        Ok(found.is_some())
    }

    /// Creates a session without messages and runs.
    pub(crate) async fn create_session(
        &self,
        principal: &Principal,
        title: String,
    ) -> Result<Session, SessionStoreError> {
        let session = new_session(new_session_id(), title);
        let sessions = self.session_store();
        sessions.create_session(principal, &session).await?;
        Ok(session)
    }
}

fn new_session_id() -> SessionId {
    SessionId(Uuid::now_v7().to_string())
}

fn new_session(id: SessionId, title: String) -> Session {
    Session {
        id,
        title,
        created_at: Timestamp::now().to_string(),
        messages: 0,
    }
}

/// Derives the stored session id from the principal and the id that the client chose. The result
/// begins with `id`, cut at [`ID_PREFIX_LENGTH`] characters. The rest is the first 16 bytes of a
/// keyed hash of tenant, user and `id`, as hexadecimal text. Other clients do not know the key of
/// the store, so they cannot compute this id and create the session first.
fn derive_id(key: &IdKey, principal: &Principal, id: &SessionId) -> Result<SessionId, Problem> {
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes());
    // HMAC accepts keys of any length, so this error does not occur.
    let mut mac = mac.map_err(|_| Problem::internal_error())?;
    for part in [&principal.tenant, &principal.user, &id.0] {
        mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        mac.update(part.as_bytes());
    }
    let hash = mac.finalize().into_bytes();
    let start = hash.first_chunk().copied().map_or(0, u128::from_be_bytes);
    let prefix: String = id.0.chars().take(ID_PREFIX_LENGTH).collect();
    Ok(SessionId(format!("{prefix}.{start:032x}")))
}

/// Returns the title of a new session that begins with these messages: the first line of the first
/// user message, or an empty string.
fn title_from_messages(messages: &[Arc<Message>]) -> String {
    let mut messages = messages.iter();
    let question = messages.find(|message| message.role == Role::User);
    question.map_or_else(String::new, |message| title_from_text(&message.text()))
}

/// Returns the first line of a message as a title. A long line is cut at a word.
fn title_from_text(text: &str) -> String {
    // Stores may reject control characters in titles.
    let mut lines = text.lines().map(|line| line.replace(char::is_control, " "));
    let line = lines.find(|line| !line.trim().is_empty());
    let line = line.as_deref().unwrap_or_default().trim();
    if line.chars().count() <= MAX_TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(MAX_TITLE).collect();
    let end = cut.rfind(' ').filter(|end| *end > MAX_TITLE / 2);
    format!("{}…", cut[..end.unwrap_or(cut.len())].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derived_id_depends_on_the_key_and_on_each_part_of_the_principal() {
        let principal = |tenant: &str, user: &str| Principal {
            tenant: tenant.to_owned(),
            user: user.to_owned(),
        };
        let id = |key: &str, tenant: &str, user: &str, id: &str| {
            let client_id = SessionId(id.to_owned());
            let id = derive_id(&IdKey::new(key), &principal(tenant, user), &client_id);
            id.unwrap().0
        };
        let stored = id("key", "acme", "ann", "chat");
        assert_eq!(stored, id("key", "acme", "ann", "chat"));
        let other_ids = [
            id("other", "acme", "ann", "chat"),
            id("key", "acm", "eann", "chat"),
            id("key", "acme", "annc", "hat"),
            id("key", "", "ann", "chat"),
            id("key", "acme", "bob", "chat"),
            id("key", "acme", "ann", "chats"),
        ];
        let hash = |id: &str| id.rsplit_once('.').unwrap().1.to_owned();
        for other in other_ids {
            assert_ne!(hash(&stored), hash(&other));
        }
        let long = id("key", "acme", "ann", &"x".repeat(128));
        assert_eq!(long.len(), 128, "a client can use the stored id");
    }

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        assert_eq!(title_from_text("\n  Hello  \nthere"), "Hello");
        assert_eq!(title_from_text(""), "");
        assert_eq!(title_from_text("\u{0}\nA\u{0}tab\there"), "A tab here");
        let long = "account ".repeat(20);
        let title = title_from_text(&long);
        assert!(
            title.ends_with("account…") && title.chars().count() <= 81,
            "{title}"
        );
        let title = title_from_text(&"ß".repeat(100));
        assert_eq!(title.chars().count(), 81);
    }
}

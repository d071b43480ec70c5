//! Start and continuation of runs.

use std::{fmt::Write as _, sync::Arc};

use futures_util::StreamExt as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::Sha256;
use switchboard_domain::{
    ApprovalDecision, Approver, IdKey, Message, Principal, Role, RunRecord, RunState, Session,
    SessionId, SessionStoreError,
};
use switchboard_orchestration::{
    Agent, RunEventKind, RunParameters,
    persistence::{DurableRunError, LeasedRun, PersistedRun},
};
use uuid::Uuid;

use super::{
    Active, Hub, RunLog, Start, Started, Talk,
    desk::{Desk, Who},
    drive::Driven,
    place::{Full, Place},
    unhindered,
};
use crate::{Parameters, Problem, Wish, WishError, project::CLIENT};

/// Maximum characters of a session's title that is made from the first message.
const TITLE: usize = 80;
/// Characters of a client's id in the stored id. With a dot and the hash the stored id has at most
/// 128 characters, so that a client can use it too.
const SHOWN_OF_ID: usize = 95;
/// Bytes of the keyed hash in a stored id.
const BYTES_OF_TAG: usize = 16;

impl Hub {
    /// Begins a run. It continues without readers.
    pub(crate) async fn start(&self, start: Start) -> Result<Started, Problem> {
        if matches!(start.talk, Talk::Loose { .. }) {
            // An ephemeral run ends with its client.
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
        let place = self.place(&principal)?;
        // The id of a new session is created here, because the agent may depend on it.
        let (session, is_new) = match &talk {
            Talk::Loose { .. } => (None, false),
            Talk::Session { id, .. } => (Some(id.clone().unwrap_or_else(new_id)), id.is_none()),
        };
        let agent = self.engine().agent(&wish, &principal, session.as_ref());
        let agent = agent.await?;
        let agent = shape.map_or(agent.clone(), |shape| shape(agent));
        match talk {
            Talk::Loose { messages } => self.begin_loose(agent, principal, messages, place).await,
            Talk::Session {
                id: _,
                create,
                keep,
                messages,
            } => {
                let id = session.unwrap_or_else(new_id);
                let beginning = Beginning {
                    agent,
                    wish: &wish,
                    principal: &principal,
                    keep,
                    messages,
                };
                let is_there = !create || (!is_new && self.has_session(&principal, &id).await?);
                let (kept, desk) = if is_there {
                    self.begin(beginning, &id).await?
                } else {
                    self.begin_new(beginning, id).await?
                };
                let record = kept.record().clone();
                let run = Driven::Kept(Box::new(kept));
                Ok(self.started(principal, record, desk, run, place))
            }
        }
    }

    /// Resumes a waiting or interrupted run, optionally with a decision about one call.
    pub(crate) async fn resume(
        &self,
        principal: &Principal,
        run: &str,
        word: Option<(&str, ApprovalDecision)>,
    ) -> Result<Started, Problem> {
        let place = self.place(principal)?;
        let taken = self.durable_runs(principal).acquire(run).await?;
        let is_open = word
            .as_ref()
            .map_or(Ok(()), |(call, _)| is_open(&taken, call));
        let agent = match is_open {
            Ok(()) => self.agent_for(&taken, principal).await,
            Err(problem) => Err(problem),
        };
        let agent = match agent {
            Ok(agent) => agent,
            Err(problem) => {
                // Released before the error is returned, because the client may retry at once.
                taken.release().await;
                return Err(problem);
            }
        };
        let record = taken.record().clone();
        let open = taken
            .run()
            .pending_approvals()
            .into_iter()
            .cloned()
            .collect();
        let patience = self.options().approval_time;
        let desk = Arc::new(Desk::new(Who::IsKept, patience, open));
        if let Some((call, word)) = word {
            desk.leave(call, word);
        }
        let agent = agent.with_approver(Arc::clone(&desk) as Arc<dyn Approver>);
        let kept = self.durable_runs(principal).resume(&agent, taken);
        let run = Driven::Kept(Box::new(kept));
        Ok(self.started(principal.clone(), record, desk, run, place))
    }

    /// Returns the agent for a resumed run, equal to the one at its start.
    async fn agent_for(&self, taken: &LeasedRun, principal: &Principal) -> Result<Agent, Problem> {
        let begun = RunParameters::read(taken.record().parameters.as_ref());
        if taken.has_only_conversation() {
            return self.agent_anew(taken, begun, principal).await;
        }
        // The run contains its options, recipe and instructions.
        let begun = begun.unwrap_or_default();
        let parameters = Parameters {
            tools: begun.without_tools.then_some(false),
            ..Parameters::default()
        };
        let model = Some(taken.run().model().to_string());
        let wishes = [
            (model.clone(), begun.recipe.clone()),
            (None, begun.recipe.clone()),
            // The run keeps its recipe, even if the file no longer exists.
            (model, None),
            (None, None),
        ];
        let wishes = wishes.map(|(model, recipe)| Wish {
            model,
            recipe,
            parameters: parameters.clone(),
            ..Wish::default()
        });
        Ok(self.first_agent(taken, &wishes, principal).await?)
    }

    /// Returns the agent for a run that was interrupted before its first step. Only its parameters
    /// are known.
    async fn agent_anew(
        &self,
        taken: &LeasedRun,
        begun: Option<RunParameters>,
        principal: &Principal,
    ) -> Result<Agent, Problem> {
        let run = &taken.record().id;
        let ask_again = |why: &str| {
            Problem::conflict(format!(
                "run `{run}` was interrupted before it had begun to do anything, and {why}: end it (POST \
                 /runs/{run}/cancel) and ask again"
            ))
        };
        // The run does not continue with other approvals and limits.
        let options = begun.as_ref().and_then(RunParameters::options);
        let (Some(begun), Some(options)) = (begun, options) else {
            return Err(ask_again("what it was to be like is not known"));
        };
        let parameters = match begun.parameters {
            None => Ok(Parameters::default()),
            Some(stored) => serde_json::from_value(stored),
        };
        let mut parameters =
            parameters.map_err(|_| ask_again("what it was to be like cannot be read"))?;
        if begun.without_tools {
            parameters.tools = Some(false);
        }
        let wishes = [Some(taken.run().model().to_string()), None].map(|model| Wish {
            model,
            recipe: begun.recipe.clone(),
            parameters: parameters.clone(),
            ..Wish::default()
        });
        let agent = self.first_agent(taken, &wishes, principal).await;
        let agent = agent.map_err(|error| match &error {
            WishError::Unavailable { .. } => error.into(),
            WishError::Unknown { .. } | WishError::Invalid { .. } => ask_again(&error.to_string()),
        })?;
        Ok(agent.with_options(options))
    }

    /// Returns the agent for the first usable parameters: a model or a recipe may no longer exist.
    async fn first_agent(
        &self,
        taken: &LeasedRun,
        wishes: &[Wish],
        principal: &Principal,
    ) -> Result<Agent, WishError> {
        let mut refused = None;
        for wish in wishes {
            let session = &taken.record().session;
            match self.engine().agent(wish, principal, Some(session)).await {
                Ok(agent) => {
                    if let Some(error) = refused {
                        let run = &taken.record().id;
                        tracing::warn!(run, %error, "a run goes on with another model or recipe");
                    }
                    return Ok(agent);
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| WishError::Unavailable {
            message: "there is no agent".to_owned(),
            retry_after: None,
        }))
    }

    /// Begins a run in an existing session.
    async fn begin(
        &self,
        begun: Beginning<'_>,
        session: &SessionId,
    ) -> Result<(PersistedRun, Arc<Desk>), Problem> {
        let (agent, desk, parameters) = self.prepared(&begun);
        let durable_runs = self.durable_runs(begun.principal);
        let messages = begun.messages;
        let kept = match begun.keep {
            None => {
                durable_runs
                    .begin_with(&agent, session, messages, parameters)
                    .await?
            }
            Some(keep) => {
                let again = durable_runs.begin_again(&agent, session, keep, messages, parameters);
                again.await?
            }
        };
        Ok((kept, desk))
    }

    /// Begins a run in a new session.
    async fn begin_new(
        &self,
        begun: Beginning<'_>,
        id: SessionId,
    ) -> Result<(PersistedRun, Arc<Desk>), Problem> {
        if let Some(keep) = begun.keep.filter(|keep| *keep > 0) {
            // A new session has no messages to remove.
            return Err(SessionStoreError::Conflict {
                id,
                expected: keep,
                actual: 0,
            }
            .into());
        }
        let mut said = begun.messages.iter();
        let said = said.find(|message| message.role == Role::User);
        let title = said
            .map(|message| title_of(&message.text()))
            .unwrap_or_default();
        let session = session_of(Some(id.clone()), title);
        let (agent, desk, parameters) = self.prepared(&begun);
        let durable_runs = self.durable_runs(begun.principal);
        let made = durable_runs.begin_session(&agent, &session, begun.messages.clone(), parameters);
        match made.await {
            Ok(kept) => Ok((kept, desk)),
            // Another request of the principal created it meanwhile.
            Err(DurableRunError::Store(SessionStoreError::Exists { .. })) => {
                if self.has_session(begun.principal, &id).await? {
                    self.begin(begun, &id).await
                } else {
                    Err(Problem::invalid(
                        "session_id",
                        "the session's id is taken: choose another one",
                    ))
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the agent of a durable run, the target of its questions, and the stored parameters.
    fn prepared(&self, begun: &Beginning<'_>) -> (Agent, Arc<Desk>, Option<serde_json::Value>) {
        let mut begun_with = RunParameters::of(&begun.agent);
        begun_with.recipe.clone_from(&begun.wish.recipe);
        begun_with.without_tools = begun.wish.parameters.tools == Some(false);
        begun_with.parameters = serde_json::to_value(&begun.wish.parameters).ok();
        let patience = self.options().approval_time;
        let desk = Arc::new(Desk::new(Who::IsKept, patience, Vec::new()));
        let approver = Arc::clone(&desk) as Arc<dyn Approver>;
        let agent = begun.agent.clone().with_approver(approver);
        (agent, desk, begun_with.stored())
    }

    async fn begin_loose(
        &self,
        agent: Agent,
        principal: Principal,
        messages: Vec<Arc<Message>>,
        place: Place,
    ) -> Result<Started, Problem> {
        let patience = self.options().approval_time;
        let desk = Arc::new(Desk::new(Who::Expires, patience, Vec::new()));
        let agent = agent
            .with_principal(principal.clone(), None)
            .with_approver(Arc::clone(&desk) as Arc<dyn Approver>);
        let mut stream = agent.run(messages);
        // The response names the run immediately.
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
            parameters: None,
        };
        let run = Driven::Loose(Some(first), Box::new(stream));
        Ok(self.started(principal, record, desk, run, place))
    }

    fn started(
        &self,
        owner: Principal,
        mut record: RunRecord,
        desk: Arc<Desk>,
        run: Driven,
        place: Place,
    ) -> Started {
        let is_kept = matches!(run, Driven::Kept(_));
        // Only this program and its store need the parameters.
        record.parameters = None;
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
        self.drive(active, run, place);
        started
    }

    /// Acquires a slot for one more run.
    fn place(&self, principal: &Principal) -> Result<Place, Problem> {
        if self.shared.stopping.is_cancelled() {
            return Err(Problem::unavailable(
                "the server is about to stop: send the request again when it is back",
                None,
            ));
        }
        let options = self.options();
        self.shared.places.take(principal).map_err(|full| match full {
            Full::Each => Problem::too_many(format!(
                "{} runs of yours are under way, and more are not allowed: wait for one to end, or end one (POST \
                 /runs/{{id}}/cancel)",
                options.max_runs_each
            )),
            Full::All => Problem::unavailable(
                format!(
                    "{} runs are under way, and the server takes no more at once: try again",
                    options.max_runs
                ),
                None,
            ),
        })
    }

    /// Returns the session for an id that a client chose. Ids are unique in a store, and sessions
    /// of other principals do not exist for a client. The id of a named principal is therefore
    /// derived, so that only this principal can use it.
    pub(crate) async fn session_named(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<SessionId, Problem> {
        if *principal == Principal::default() || self.has_session(principal, &id).await? {
            return Ok(id);
        }
        let key = self.sessions().id_key().await?;
        id_of(&key, principal, &id)
    }

    async fn has_session(&self, principal: &Principal, id: &SessionId) -> Result<bool, Problem> {
        Ok(self.sessions().get(principal, id).await?.is_some())
    }

    /// Creates a session.
    pub(crate) async fn create(
        &self,
        principal: &Principal,
        id: Option<SessionId>,
        title: String,
    ) -> Result<Session, SessionStoreError> {
        let session = session_of(id, title);
        self.sessions().create(principal, &session).await?;
        Ok(session)
    }
}

/// A run to begin in a session.
struct Beginning<'a> {
    agent: Agent,
    wish: &'a Wish,
    principal: &'a Principal,
    /// The number of messages to keep, if not all.
    keep: Option<u64>,
    messages: Vec<Arc<Message>>,
}

fn new_id() -> SessionId {
    SessionId(Uuid::now_v7().to_string())
}

/// A session to create.
fn session_of(id: Option<SessionId>, title: String) -> Session {
    Session {
        id: id.unwrap_or_else(new_id),
        title,
        created_at: Timestamp::now().to_string(),
        messages: 0,
    }
}

/// Returns the stored id for the client's id of a principal. It begins with `id`, cut at
/// [`SHOWN_OF_ID`] characters. The rest is a keyed hash of tenant, user and `id`. Nobody can
/// compute it without the key of the store, so nobody can take the id first.
fn id_of(key: &IdKey, principal: &Principal, id: &SessionId) -> Result<SessionId, Problem> {
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes());
    // HMAC accepts keys of any length.
    let mut mac = mac.map_err(|_| Problem::internal())?;
    for part in [&principal.tenant, &principal.user, &id.0] {
        mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        mac.update(part.as_bytes());
    }
    let tag = mac.finalize().into_bytes();
    let mut mark = String::new();
    for byte in tag.iter().take(BYTES_OF_TAG) {
        // Writing to a string cannot fail.
        let _ = write!(mark, "{byte:02x}");
    }
    let shown: String = id.0.chars().take(SHOWN_OF_ID).collect();
    Ok(SessionId(format!("{shown}.{mark}")))
}

/// Checks that a call waits for a decision.
fn is_open(taken: &LeasedRun, call: &str) -> Result<(), Problem> {
    let waiting = taken.run().pending_approvals();
    if let Some(request) = waiting.iter().find(|it| it.tool_use.id == call) {
        let server = request.origin.as_ref().map(|origin| origin.server.as_str());
        return if server == Some(CLIENT) {
            Err(of_client(&taken.record().id, call))
        } else {
            Ok(())
        };
    }
    Err(not_open(
        call,
        waiting.iter().map(|it| it.tool_use.id.as_str()),
    ))
}

/// Returns the error for a decision about a client call.
pub(super) fn of_client(run: &str, call: &str) -> Problem {
    Problem::conflict(format!(
        "the call `{call}` is of a tool of the client that asked: the client makes it, and answers it with the results that \
         its next request brings; POST /runs/{run}/cancel ends the run"
    ))
}

/// Returns the error for a decision about a call that does not wait.
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

/// Returns the first line of a message, cut at a word.
fn title_of(text: &str) -> String {
    // Stores may reject control characters.
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
    use super::*;

    #[test]
    fn an_id_depends_on_the_key_and_on_each_part_of_the_principal() {
        let principal = |tenant: &str, user: &str| Principal {
            tenant: tenant.to_owned(),
            user: user.to_owned(),
        };
        let id = |key: &str, tenant: &str, user: &str, id: &str| {
            let named = SessionId(id.to_owned());
            let id = id_of(&IdKey::new(key), &principal(tenant, user), &named);
            id.unwrap().0
        };
        let stored = id("key", "acme", "ann", "chat");
        assert_eq!(stored, id("key", "acme", "ann", "chat"));
        let others = [
            id("other", "acme", "ann", "chat"),
            id("key", "acm", "eann", "chat"),
            id("key", "acme", "annc", "hat"),
            id("key", "", "ann", "chat"),
            id("key", "acme", "bob", "chat"),
            id("key", "acme", "ann", "chats"),
        ];
        let mark = |id: &str| id.rsplit_once('.').unwrap().1.to_owned();
        for other in others {
            assert_ne!(mark(&stored), mark(&other));
        }
        let long = id("key", "acme", "ann", &"x".repeat(128));
        assert_eq!(long.len(), 128, "a client can use the stored id");
    }

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

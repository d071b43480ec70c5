//! A store in memory that several simulated processes share. A process may end at any store
//! operation.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use switchboard_domain::{
    IdKey, Message, Principal, RunRecord, RunSnapshot, RunState, RunStore, Session, SessionId,
    SessionStore, SessionStoreError, StoredEvent,
};
use switchboard_orchestration::RunEvent;
use tokio::sync::watch;

type Stored<T> = Result<T, SessionStoreError>;

/// The data that survives a process.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sessions: BTreeMap<String, KeptSession>,
    runs: BTreeMap<String, PersistedRun>,
    processes: u64,
    alive: BTreeSet<u64>,
    /// The total number of messages in all snapshots.
    written: usize,
    /// Whether the stored messages of runs cannot be read by this version.
    is_garbled: bool,
    /// Number of releases.
    releases: usize,
}

struct KeptSession {
    owner: Principal,
    session: Session,
    messages: Vec<Arc<Message>>,
}

struct PersistedRun {
    owner: Principal,
    record: RunRecord,
    /// The process that holds the lease of the run.
    of: Option<u64>,
    events: Vec<StoredEvent>,
    state: Option<Arc<str>>,
    messages: Vec<Arc<Message>>,
}

/// The result of a store operation after the allowed number of operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wall {
    /// The process ends before the operation.
    Before,
    /// The operation is executed, and the process ends before it gets the result.
    Behind,
    /// Every operation returns an error.
    Fails,
    /// One operation returns an error without effect.
    FailsOnce,
    /// One operation returns an error and has its effect.
    LostOnce,
    /// One operation is refused, because the store is unavailable.
    UnavailableOnce,
}

/// One process's view of the disk.
#[derive(Clone)]
pub(crate) struct Process {
    disk: Disk,
    number: u64,
    left: Arc<Mutex<Option<(usize, Wall)>>>,
    /// Whether the process has ended.
    stuck: Arc<watch::Sender<bool>>,
    /// A test holds the write lock to block all appends.
    pub(crate) appending: Arc<tokio::sync::RwLock<()>>,
}

pub(crate) fn session_id() -> SessionId {
    SessionId("s".into())
}

fn no_such_run(run: &str) -> SessionStoreError {
    SessionStoreError::NoSuchRun { run: run.into() }
}

fn conflict(run: &str, reason: &str) -> SessionStoreError {
    SessionStoreError::RunConflict {
        run: run.into(),
        reason: reason.into(),
    }
}

impl Disk {
    /// Creates a store with session `s` and these messages.
    pub(crate) fn with_session(messages: impl IntoIterator<Item = Message>) -> Self {
        let disk = Self::default();
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let session = Session {
            id: session_id(),
            title: String::new(),
            created_at: "2026-11-21T00:00:00Z".into(),
            messages: 0,
        };
        disk.lock().sessions.insert(
            "s".into(),
            KeptSession {
                owner: Principal::default(),
                session,
                messages,
            },
        );
        disk
    }

    /// Creates a process with this number of allowed store operations.
    pub(crate) fn process(&self, left: Option<(usize, Wall)>) -> Process {
        let mut state = self.lock();
        state.processes += 1;
        let number = state.processes;
        state.alive.insert(number);
        Process {
            disk: self.clone(),
            number,
            left: Arc::new(Mutex::new(left)),
            stuck: Arc::default(),
            appending: Arc::default(),
        }
    }

    pub(crate) fn messages(&self) -> Vec<Arc<Message>> {
        self.lock().sessions["s"].messages.clone()
    }

    pub(crate) fn records(&self) -> Vec<RunRecord> {
        let state = self.lock();
        let records = state.runs.values().map(|run| run.seen(&state.alive));
        records.collect()
    }

    pub(crate) fn record(&self) -> RunRecord {
        self.records().pop().expect("a run was begun")
    }

    /// Returns the events of the last run.
    pub(crate) fn events(&self) -> Vec<RunEvent> {
        let state = self.lock();
        let events = state.runs.values().next_back().map(|run| &run.events);
        let events = events.into_iter().flatten();
        events
            .map(|event| serde_json::from_str(&event.json).unwrap())
            .collect()
    }

    /// Returns the total number of messages in all snapshots.
    pub(crate) fn written(&self) -> usize {
        self.lock().written
    }

    pub(crate) fn releases(&self) -> usize {
        self.lock().releases
    }

    /// Changes the state of the last run.
    pub(crate) fn change_state(&self, change: impl FnOnce(&str) -> String) {
        let mut disk = self.lock();
        let run = disk.runs.values_mut().next_back().unwrap();
        run.state = run.state.as_deref().map(change).map(Into::into);
    }

    /// Makes the stored messages of all runs unreadable.
    pub(crate) fn garble(&self) {
        self.lock().is_garbled = true;
    }

    pub(crate) fn has_state(&self) -> bool {
        let state = self.lock();
        let run = state.runs.values().next_back();
        run.is_some_and(|run| run.state.is_some())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl PersistedRun {
    fn append(&mut self, run: &str, events: &[StoredEvent]) -> Stored<()> {
        for event in events {
            if event.seq != self.record.last_event + 1 {
                return Err(conflict(run, "there is a gap"));
            }
            self.record.last_event = event.seq;
            self.events.push(event.clone());
        }
        Ok(())
    }

    fn seen(&self, alive: &BTreeSet<u64>) -> RunRecord {
        let mut record = self.record.clone();
        let is_gone = !self.of.is_some_and(|of| alive.contains(&of));
        if record.state == RunState::Running && is_gone {
            record.state = RunState::Interrupted;
        }
        record
    }
}

impl State {
    fn run(&mut self, owner: &Principal, run: &str) -> Stored<&mut PersistedRun> {
        let found = self.runs.get_mut(run).filter(|found| found.owner == *owner);
        found.ok_or_else(|| no_such_run(run))
    }

    fn own(&mut self, run: &str, process: u64) -> Stored<&mut PersistedRun> {
        let found = self.runs.get_mut(run).ok_or_else(|| no_such_run(run))?;
        if found.of == Some(process) && found.record.state == RunState::Running {
            return Ok(found);
        }
        Err(conflict(run, "it is not this process's"))
    }

    fn session(&mut self, owner: &Principal, id: &SessionId) -> Stored<&mut KeptSession> {
        let found = self.sessions.get_mut(&id.0);
        let found = found.filter(|found| found.owner == *owner);
        found.ok_or_else(|| SessionStoreError::NotFound { id: id.clone() })
    }

    fn add(&mut self, session: &SessionId, after: u64, messages: &[Arc<Message>]) -> Stored<()> {
        let found = self.sessions.get_mut(&session.0).unwrap();
        let actual = found.messages.len() as u64;
        if actual != after {
            return Err(SessionStoreError::Conflict {
                id: session.clone(),
                expected: after,
                actual,
            });
        }
        found.messages.extend_from_slice(messages);
        Ok(())
    }
}

impl Process {
    /// Ends the process, so that others can acquire its runs.
    pub(crate) fn ends(&self) {
        *self.left.lock().unwrap() = Some((0, Wall::Before));
        self.disk.lock().alive.remove(&self.number);
    }

    /// Sets the number of allowed store operations.
    pub(crate) fn may_do(&self, left: usize, wall: Wall) {
        *self.left.lock().unwrap() = Some((left, wall));
    }

    /// Returns the remaining number of store operations.
    pub(crate) fn left(&self) -> Option<(usize, Wall)> {
        *self.left.lock().unwrap()
    }

    pub(crate) fn is_stuck(&self) -> bool {
        *self.stuck.borrow()
    }

    /// Waits until the process has ended.
    pub(crate) async fn stuck(&self) {
        let mut stuck = self.stuck.subscribe();
        stuck.wait_for(|stuck| *stuck).await.unwrap();
    }

    async fn changes<T>(&self, act: impl FnOnce(&mut State) -> Stored<T> + Send) -> Stored<T> {
        // Other tasks can run between two operations.
        tokio::task::yield_now().await;
        let wall = {
            let mut left = self.left.lock().unwrap();
            match &mut *left {
                None => None,
                Some((0, wall @ (Wall::FailsOnce | Wall::LostOnce | Wall::UnavailableOnce))) => {
                    let wall = *wall;
                    *left = None;
                    Some(wall)
                }
                Some((0, wall)) => Some(*wall),
                Some((more, _)) => {
                    *more -= 1;
                    None
                }
            }
        };
        match wall {
            None => act(&mut self.disk.lock()),
            Some(Wall::Fails | Wall::FailsOnce) => Err(SessionStoreError::Storage {
                operation: "write",
                source: "the disk is full".into(),
            }),
            Some(Wall::UnavailableOnce) => Err(SessionStoreError::Unavailable {
                operation: "write",
                source: "the database is locked".into(),
            }),
            Some(Wall::LostOnce) => {
                act(&mut self.disk.lock())?;
                Err(SessionStoreError::Storage {
                    operation: "write",
                    source: "the connection was lost".into(),
                })
            }
            Some(wall) => {
                let is_first = !self.stuck.send_replace(true);
                if wall == Wall::Behind && is_first {
                    let _ = act(&mut self.disk.lock());
                }
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl SessionStore for Process {
    async fn create_session(&self, owner: &Principal, session: &Session) -> Stored<()> {
        let kept = KeptSession {
            owner: owner.clone(),
            session: session.clone(),
            messages: Vec::new(),
        };
        self.disk.lock().sessions.insert(session.id.0.clone(), kept);
        Ok(())
    }

    async fn find_session(&self, owner: &Principal, id: &SessionId) -> Stored<Option<Session>> {
        let mut state = self.disk.lock();
        let found = state.session(owner, id).ok();
        Ok(found.map(|found| Session {
            messages: found.messages.len() as u64,
            ..found.session.clone()
        }))
    }

    async fn list_sessions(&self, _: &Principal, _: u32) -> Stored<Vec<Session>> {
        Ok(Vec::new())
    }

    async fn load_messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Stored<Vec<Arc<Message>>> {
        let mut state = self.disk.lock();
        let messages = &state.session(owner, id)?.messages;
        Ok(messages[usize::try_from(from).unwrap()..].to_vec())
    }

    async fn append_messages(
        &self,
        _: &Principal,
        id: &SessionId,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Stored<u64> {
        let mut state = self.disk.lock();
        state.add(id, after, messages)?;
        Ok(after + messages.len() as u64)
    }

    async fn rename_session(&self, _: &Principal, _: &SessionId, _: &str) -> Stored<()> {
        Ok(())
    }

    async fn delete_session(&self, _: &Principal, id: &SessionId) -> Stored<()> {
        self.disk.lock().sessions.remove(&id.0);
        Ok(())
    }

    async fn load_session_id_key(&self) -> Stored<IdKey> {
        Ok(IdKey::new("the key of this test"))
    }
}

#[async_trait]
impl RunStore for Process {
    async fn begin_run(
        &self,
        owner: &Principal,
        run: &RunRecord,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Stored<RunRecord> {
        let number = self.number;
        self.changes(|state| {
            state.session(owner, &run.session)?;
            let of_session = state.runs.values().map(|run| &run.record);
            let of_session = of_session.filter(|record| record.session == run.session);
            let mut before = 0;
            for other in of_session {
                if other.state != RunState::Finished {
                    return Err(SessionStoreError::Busy {
                        session: run.session.clone(),
                        run: other.id.clone(),
                    });
                }
                before += other.last_event;
            }
            state.add(&run.session, after, messages)?;
            let record = RunRecord {
                events_before: before,
                ..run.clone()
            };
            state.runs.insert(
                run.id.clone(),
                PersistedRun {
                    owner: owner.clone(),
                    record: record.clone(),
                    of: Some(number),
                    events: Vec::new(),
                    state: None,
                    messages: Vec::new(),
                },
            );
            Ok(record)
        })
        .await
    }

    async fn begin_run_in_new_session(
        &self,
        owner: &Principal,
        session: &Session,
        run: &RunRecord,
        messages: &[Arc<Message>],
    ) -> Stored<RunRecord> {
        self.create_session(owner, session).await?;
        self.begin_run(owner, run, 0, messages).await
    }

    async fn begin_run_after_truncation(
        &self,
        owner: &Principal,
        run: &RunRecord,
        keep: u64,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Stored<RunRecord> {
        {
            let mut state = self.disk.lock();
            state.add(&run.session, after, &[])?;
            let said = &mut state.session(owner, &run.session)?.messages;
            said.truncate(usize::try_from(keep).unwrap());
        }
        self.begin_run(owner, run, keep, messages).await
    }

    async fn acquire_run(&self, owner: &Principal, run: &str) -> Stored<RunRecord> {
        let number = self.number;
        self.changes(|state| {
            let alive = state.alive.clone();
            let found = state.run(owner, run)?;
            match found.seen(&alive).state {
                RunState::Finished => return Err(conflict(run, "it is over")),
                RunState::Running => {
                    return Err(SessionStoreError::Busy {
                        session: found.record.session.clone(),
                        run: run.into(),
                    });
                }
                RunState::Waiting | RunState::Interrupted => {}
            }
            found.record.state = RunState::Running;
            found.of = Some(number);
            Ok(found.record.clone())
        })
        .await
    }

    async fn append_events(&self, run: &str, events: &[StoredEvent]) -> Stored<()> {
        drop(self.appending.read().await);
        let number = self.number;
        self.changes(|state| {
            assert!(!events.is_empty(), "nothing is written in vain");
            state.own(run, number)?.append(run, events)
        })
        .await
    }

    async fn load_events(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Stored<Vec<StoredEvent>> {
        let mut state = self.disk.lock();
        let events = state.run(owner, run)?.events.iter();
        let events = events.filter(|event| event.seq > after);
        Ok(events.take(limit as usize).cloned().collect())
    }

    async fn save_snapshot_with_events(
        &self,
        run: &str,
        events: &[StoredEvent],
        snapshot: &RunSnapshot,
    ) -> Stored<()> {
        drop(self.appending.read().await);
        let number = self.number;
        self.changes(|state| {
            let found = state.own(run, number)?;
            found.append(run, events)?;
            let from = usize::try_from(snapshot.from).unwrap();
            assert!(from <= found.messages.len(), "messages are missing");
            found.messages.truncate(from);
            found.messages.extend_from_slice(&snapshot.messages);
            found.state = Some(Arc::clone(&snapshot.state));
            state.written += snapshot.messages.len();
            Ok(())
        })
        .await
    }

    async fn load_snapshot(&self, owner: &Principal, run: &str) -> Stored<Option<RunSnapshot>> {
        let mut state = self.disk.lock();
        if state.is_garbled {
            return Err(SessionStoreError::Unreadable {
                operation: "read the state of a run",
                source: "a message of another version".into(),
            });
        }
        let found = state.run(owner, run)?;
        let snapshot = found.state.as_ref().map(|state| RunSnapshot {
            state: Arc::clone(state),
            from: 0,
            messages: found.messages.clone(),
        });
        Ok(snapshot)
    }

    async fn release_run_with_events(
        &self,
        run: &str,
        events: &[StoredEvent],
        to: RunState,
        outcome: Option<String>,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Stored<()> {
        let number = self.number;
        self.changes(|state| {
            let session = state.own(run, number)?.record.session.clone();
            state.add(&session, after, messages)?;
            let found = state.own(run, number)?;
            found.append(run, events)?;
            found.of = None;
            found.record.state = to;
            found.record.outcome = outcome;
            if to == RunState::Finished {
                found.state = None;
                found.messages.clear();
            }
            state.releases += 1;
            Ok(())
        })
        .await
    }

    async fn find_run(&self, owner: &Principal, run: &str) -> Stored<Option<RunRecord>> {
        let mut state = self.disk.lock();
        let alive = state.alive.clone();
        let found = state.run(owner, run).ok();
        Ok(found.map(|found| found.seen(&alive)))
    }

    async fn list_runs<'s>(
        &self,
        _: &Principal,
        _: Option<&'s SessionId>,
        _: u32,
    ) -> Stored<Vec<RunRecord>> {
        Ok(self.disk.records())
    }
}

//! Compares the store with a simple model in memory, for generated operations of two principals on
//! two instances.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "functions of tests: a failure ends the test"
)]

use std::sync::Arc;

use futures_util::StreamExt as _;
use proptest::prelude::*;
use switchboard_domain::{
    Message, Principal, RunRecord, RunSnapshot, RunState, RunStore as _, Session, SessionId,
    SessionStore as _, SessionStoreError as Error, StoredEvent,
};
use switchboard_sessions::{Durability, ImportIdPolicy, Store, StoreOptions};

const SESSIONS: [&str; 3] = ["a", "b", "c"];
const RUNS: [&str; 4] = ["p", "q", "r", "s"];

#[derive(Debug, Clone)]
enum Op {
    Create {
        owner: usize,
        session: usize,
        second: u8,
    },
    Append {
        owner: usize,
        session: usize,
        off: i64,
        count: usize,
    },
    Rename {
        owner: usize,
        session: usize,
        title: u8,
    },
    Delete {
        owner: usize,
        session: usize,
    },
    Begin {
        owner: usize,
        session: usize,
        run: usize,
        off: i64,
        count: usize,
        second: u8,
    },
    Take {
        owner: usize,
        run: usize,
    },
    Events {
        run: usize,
        off: i64,
        count: u64,
    },
    Save {
        run: usize,
        from: u64,
        count: usize,
    },
    Release {
        run: usize,
        state: RunState,
        off: i64,
        count: usize,
    },
    /// The process ends without closing the store, and another process opens it.
    Crash,
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    let (owner, session, run) = (|| 0..2_usize, || 0..SESSIONS.len(), || 0..RUNS.len());
    // Most positions are correct, and some are off by one.
    let off = || prop_oneof![9 => Just(0_i64), 1 => -1..=1_i64];
    let state = prop_oneof![
        4 => Just(RunState::Finished),
        2 => Just(RunState::Waiting),
        1 => Just(RunState::Interrupted),
        1 => Just(RunState::Running),
    ];
    prop_oneof![
        3 => (owner(), session(), 0..3_u8)
            .prop_map(|(owner, session, second)| Op::Create { owner, session, second }),
        2 => (owner(), session(), off(), 0..3_usize)
            .prop_map(|(owner, session, off, count)| Op::Append { owner, session, off, count }),
        1 => (owner(), session(), any::<u8>())
            .prop_map(|(owner, session, title)| Op::Rename { owner, session, title }),
        1 => (owner(), session()).prop_map(|(owner, session)| Op::Delete { owner, session }),
        5 => (owner(), session(), run(), off(), 0..3_usize, 0..3_u8).prop_map(
            |(owner, session, run, off, count, second)| {
                Op::Begin { owner, session, run, off, count, second }
            }
        ),
        3 => (owner(), run()).prop_map(|(owner, run)| Op::Take { owner, run }),
        6 => (run(), off(), 1..4_u64).prop_map(|(run, off, count)| Op::Events { run, off, count }),
        4 => (run(), 0..5_u64, 0..4_usize)
            .prop_map(|(run, from, count)| Op::Save { run, from, count }),
        4 => (run(), state, off(), 0..3_usize)
            .prop_map(|(run, state, off, count)| Op::Release { run, state, off, count }),
        1 => Just(Op::Crash),
        1 => Just(Op::Close),
    ]
}

#[derive(Debug, Clone)]
struct ModelSession {
    owner: usize,
    session: Session,
    messages: Vec<Arc<Message>>,
}

#[derive(Debug, Clone)]
struct ModelRun {
    record: RunRecord,
    /// Index of the instance that executes the run.
    holder: Option<usize>,
    events: Vec<StoredEvent>,
    snapshot: Option<(Arc<str>, Vec<Arc<Message>>)>,
}

/// A model of the store. Sessions and runs are in the order of their creation.
#[derive(Debug, Default)]
struct Model {
    sessions: Vec<ModelSession>,
    runs: Vec<ModelRun>,
}

/// Returns the kind of an error as text.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::NotFound { .. } => "not found",
        Error::Exists { .. } => "exists",
        Error::Conflict { .. } => "conflict",
        Error::Busy { .. } => "busy",
        Error::NoSuchRun { .. } => "no such run",
        Error::RunConflict { .. } => "run conflict",
        error => panic!("{error:?}"),
    }
}

type Outcome = Result<(), &'static str>;

impl Model {
    fn session(&mut self, owner: usize, id: &str) -> Result<&mut ModelSession, &'static str> {
        let mut all = self.sessions.iter_mut();
        all.find(|one| one.owner == owner && one.session.id.0 == id)
            .ok_or("not found")
    }

    fn is_busy(&self, session: &str) -> bool {
        self.runs
            .iter()
            .any(|run| run.record.session.0 == session && run.record.state != RunState::Finished)
    }

    fn add(&mut self, owner: usize, id: &str, after: u64, new: &[Arc<Message>]) -> Outcome {
        let session = self.session(owner, id)?;
        if session.session.messages != after {
            return Err("conflict");
        }
        session.messages.extend_from_slice(new);
        session.session.messages += new.len() as u64;
        Ok(())
    }

    fn held(&mut self, instance: usize, id: &str) -> Result<&mut ModelRun, &'static str> {
        let run = self
            .runs
            .iter_mut()
            .find(|run| run.record.id == id)
            .ok_or("no such run")?;
        if run.holder == Some(instance) {
            Ok(run)
        } else {
            Err("run conflict")
        }
    }

    fn owner_of(&self, session: &str) -> usize {
        self.sessions
            .iter()
            .find(|one| one.session.id.0 == session)
            .unwrap()
            .owner
    }

    fn interrupt(&mut self, instance: usize) {
        for run in self
            .runs
            .iter_mut()
            .filter(|run| run.holder == Some(instance))
        {
            run.holder = None;
            run.record.state = RunState::Interrupted;
        }
    }
}

fn principal(at: usize) -> Principal {
    Principal {
        tenant: "t".into(),
        user: format!("u{at}"),
    }
}

fn texts(count: usize, about: &str) -> Vec<Arc<Message>> {
    (0..count)
        .map(|at| Message::assistant(format!("{about} {at}")).into())
        .collect()
}

fn shifted(number: u64, off: i64) -> u64 {
    number.saturating_add_signed(off)
}

fn at_second(second: u8) -> String {
    format!("2026-11-21T20:00:0{second}Z")
}

struct Stores {
    options: StoreOptions,
    stores: [Store; 2],
}

/// Performs an operation on the store and on the model. Returns both outcomes.
#[allow(clippy::too_many_lines, reason = "one arm for each operation")]
async fn perform(op: Op, at: usize, stores: &mut Stores, model: &mut Model) -> (Outcome, Outcome) {
    let store = stores.stores[at].clone();
    let failed = |error: Error| kind(&error);
    match op {
        Op::Create {
            owner,
            session,
            second,
        } => {
            let session = Session {
                id: SessionId(SESSIONS[session].into()),
                title: "new".into(),
                created_at: at_second(second),
                messages: 0,
            };
            let done = store
                .create_session(&principal(owner), &session)
                .await
                .map_err(failed);
            let is_taken = model
                .sessions
                .iter()
                .any(|one| one.session.id == session.id);
            if is_taken {
                return (done, Err("exists"));
            }
            model.sessions.push(ModelSession {
                owner,
                session,
                messages: Vec::new(),
            });
            (done, Ok(()))
        }
        Op::Append {
            owner,
            session,
            off,
            count,
        } => {
            let id = SESSIONS[session];
            let now = model
                .session(owner, id)
                .map_or(0, |one| one.session.messages);
            let (after, new) = (shifted(now, off), texts(count, "appended"));
            let found = model.session(owner, id).map(|_| ());
            let expected = match found {
                Err(error) => Err(error),
                Ok(()) if model.is_busy(id) => Err("busy"),
                Ok(()) => model.add(owner, id, after, &new),
            };
            let id = SessionId(id.into());
            let done = store
                .append_messages(&principal(owner), &id, after, &new)
                .await;
            if let Ok(total) = done {
                assert_eq!(total, after + count as u64);
            }
            (done.map(|_| ()).map_err(failed), expected)
        }
        Op::Rename {
            owner,
            session,
            title,
        } => {
            let (id, title) = (SESSIONS[session], title.to_string());
            let expected = model
                .session(owner, id)
                .map(|one| one.session.title.clone_from(&title));
            let id = SessionId(id.into());
            let done = store.rename_session(&principal(owner), &id, &title).await;
            (done.map_err(failed), expected)
        }
        Op::Delete { owner, session } => {
            let id = SESSIONS[session];
            let exists = model.session(owner, id).is_ok();
            let is_held = |run: &ModelRun| run.record.session.0 == id && run.holder.is_some();
            let expected = if exists && model.runs.iter().any(is_held) {
                Err("busy")
            } else {
                if exists {
                    model.sessions.retain(|one| one.session.id.0 != id);
                    model.runs.retain(|run| run.record.session.0 != id);
                }
                Ok(())
            };
            let done = store
                .delete_session(&principal(owner), &SessionId(id.into()))
                .await;
            (done.map_err(failed), expected)
        }
        Op::Begin {
            owner,
            session,
            run,
            off,
            count,
            second,
        } => {
            let id = SESSIONS[session];
            let now = model
                .session(owner, id)
                .map_or(0, |one| one.session.messages);
            let (after, new) = (shifted(now, off), texts(count, "asked"));
            let record = RunRecord {
                id: RUNS[run].into(),
                session: SessionId(id.into()),
                state: RunState::Running,
                model: "m".into(),
                created_at: at_second(second),
                updated_at: String::new(),
                events_before: 0,
                last_event: 0,
                outcome: None,
                parameters: (count > 0).then(|| serde_json::json!({ "count": count })),
            };
            let found = model.session(owner, id).map(|one| one.session.messages);
            let expected = match found {
                Err(error) => Err(error),
                Ok(_) if model.is_busy(id) => Err("busy"),
                Ok(messages) if messages != after => Err("conflict"),
                Ok(_) if model.runs.iter().any(|other| other.record.id == record.id) => {
                    Err("run conflict")
                }
                Ok(_) => model.add(owner, id, after, &new),
            };
            let done = store
                .begin_run(&principal(owner), &record, after, &new)
                .await;
            if expected.is_ok() {
                let earlier = model
                    .runs
                    .iter()
                    .filter(|other| other.record.session.0 == id);
                let events_before = earlier.map(|other| other.events.len() as u64).sum();
                let record = RunRecord {
                    events_before,
                    ..record
                };
                model.runs.push(ModelRun {
                    record,
                    holder: Some(at),
                    events: Vec::new(),
                    snapshot: None,
                });
            }
            (done.map(|_| ()).map_err(failed), expected)
        }
        Op::Take { owner, run } => {
            let id = RUNS[run];
            let found = model.runs.iter().position(|run| run.record.id == id);
            let found =
                found.filter(|found| model.owner_of(&model.runs[*found].record.session.0) == owner);
            let expected = match found.map(|found| &mut model.runs[found]) {
                None => Err("no such run"),
                Some(run) => match run.record.state {
                    RunState::Finished => Err("run conflict"),
                    RunState::Running => Err("busy"),
                    RunState::Waiting | RunState::Interrupted => {
                        run.record.state = RunState::Running;
                        run.record.outcome = None;
                        run.holder = Some(at);
                        Ok(())
                    }
                },
            };
            let done = store.acquire_run(&principal(owner), id).await;
            (done.map(|_| ()).map_err(failed), expected)
        }
        Op::Events { run, off, count } => {
            let id = RUNS[run];
            let found = model.runs.iter().find(|run| run.record.id == id);
            let last = found.map_or(0, |run| run.events.len() as u64);
            let first = shifted(last + 1, off).max(1);
            let new: Vec<StoredEvent> = (first..first + count)
                .map(|seq| StoredEvent {
                    seq,
                    json: format!("{{\"n\":{seq}}}").into(),
                })
                .collect();
            let expected = match model.held(at, id) {
                Ok(_) if first != last + 1 => Err("run conflict"),
                Ok(run) => {
                    run.events.extend_from_slice(&new);
                    Ok(())
                }
                Err(error) => Err(error),
            };
            let done = store.append_events(id, &new).await;
            (done.map_err(failed), expected)
        }
        Op::Save { run, from, count } => {
            let id = RUNS[run];
            let snapshot = RunSnapshot {
                state: format!("{{\"from\":{from},\"count\":{count}}}").into(),
                from,
                messages: texts(count, &format!("saved {from}")),
            };
            let expected = model.held(at, id).and_then(|run| {
                let mut messages =
                    run.snapshot
                        .take()
                        .map_or_else(Vec::new, |(state, messages)| {
                            run.snapshot = Some((state, messages.clone()));
                            messages
                        });
                if messages.len() as u64 >= from {
                    messages.truncate(usize::try_from(from).unwrap());
                    messages.extend_from_slice(&snapshot.messages);
                    run.snapshot = Some((Arc::clone(&snapshot.state), messages));
                    Ok(())
                } else {
                    Err("run conflict")
                }
            });
            let done = store.save_snapshot(id, &snapshot).await;
            (done.map_err(failed), expected)
        }
        Op::Release {
            run,
            state,
            off,
            count,
        } => {
            let id = RUNS[run];
            let found = model.runs.iter().find(|run| run.record.id == id);
            let session = found
                .map(|run| run.record.session.0.clone())
                .unwrap_or_default();
            let mut all = model.sessions.iter();
            let session = all.find(|one| one.session.id.0 == session).cloned();
            let now = session.as_ref().map_or(0, |one| one.session.messages);
            let (after, new) = (shifted(now, off), texts(count, "answered"));
            let outcome = (state == RunState::Finished).then(|| "completed".to_owned());
            let done = store
                .release_run(id, state, outcome.clone(), after, &new)
                .await;
            let done = done.map_err(failed);
            if state == RunState::Running {
                return (done, Err("run conflict"));
            }
            if let Err(error) = model.held(at, id) {
                return (done, Err(error));
            }
            let session = session.unwrap();
            if let Err(error) = model.add(session.owner, &session.session.id.0, after, &new) {
                return (done, Err(error));
            }
            let run = model.held(at, id).unwrap();
            run.holder = None;
            run.record.state = state;
            run.record.outcome = outcome;
            if state == RunState::Finished {
                run.snapshot = None;
            }
            (done, Ok(()))
        }
        Op::Crash | Op::Close => {
            if matches!(op, Op::Close) {
                store.close().await;
            }
            drop(store);
            model.interrupt(at);
            // The new instance is opened before the old one is dropped, so both exist for a moment.
            stores.stores[at] = Store::open(stores.options.clone()).await.unwrap();
            (Ok(()), Ok(()))
        }
    }
}

/// Checks that a principal reads the same data from the store as from the model.
async fn compare(store: &Store, owner: usize, model: &Model) {
    let me = principal(owner);
    let mut sessions: Vec<&ModelSession> = model
        .sessions
        .iter()
        .filter(|one| one.owner == owner)
        .collect();
    sessions.reverse();
    sessions.sort_by(|a, b| b.session.created_at.cmp(&a.session.created_at));
    let listed = store.list_sessions(&me, 10).await.unwrap();
    let expected: Vec<_> = sessions.iter().map(|one| one.session.clone()).collect();
    assert_eq!(listed, expected);
    for one in &sessions {
        let id = &one.session.id;
        assert_eq!(store.load_messages(&me, id, 0).await.unwrap(), one.messages);
        let tail = store.load_messages(&me, id, 2).await.unwrap();
        assert_eq!(tail, one.messages[2.min(one.messages.len())..]);
    }
    let mut runs: Vec<&ModelRun> = model
        .runs
        .iter()
        .filter(|run| model.owner_of(&run.record.session.0) == owner)
        .collect();
    runs.reverse();
    runs.sort_by(|a, b| b.record.created_at.cmp(&a.record.created_at));
    let expected: Vec<RunRecord> = runs
        .iter()
        .map(|run| RunRecord {
            last_event: run.events.len() as u64,
            updated_at: String::new(),
            ..run.record.clone()
        })
        .collect();
    let mut listed = store.list_runs(&me, None, 10).await.unwrap();
    for run in &mut listed {
        // The store sets this time from the system clock, so it is not compared.
        run.updated_at.clear();
    }
    assert_eq!(listed, expected);
    for run in RUNS {
        let stored = (
            store
                .load_events(&me, run, 1, 4)
                .await
                .map_err(|error| kind(&error)),
            store
                .load_snapshot(&me, run)
                .await
                .map_err(|error| kind(&error)),
        );
        let Some(run) = runs.iter().find(|one| one.record.id == run) else {
            assert_eq!(stored, (Err("no such run"), Err("no such run")));
            continue;
        };
        let events = run
            .events
            .iter()
            .filter(|event| event.seq > 1 && event.seq <= 5);
        assert_eq!(stored.0.unwrap(), events.cloned().collect::<Vec<_>>());
        let snapshot = run.snapshot.as_ref().map(|(state, messages)| RunSnapshot {
            state: Arc::clone(state),
            from: 0,
            messages: messages.clone(),
        });
        assert_eq!(stored.1.unwrap(), snapshot);
    }
}

/// Checks that an export of imported sessions equals the original export, except that unfinished
/// runs are finished.
async fn check_export_of_import(store: &Store, elsewhere: &Store, owner: &Principal) {
    let first = exported(store, owner).await;
    let imported = elsewhere
        .import(owner, first.as_bytes(), ImportIdPolicy::Keep)
        .await;
    let sessions = imported.unwrap().sessions.len();
    assert_eq!(
        sessions,
        store.list_sessions(owner, 10).await.unwrap().len()
    );
    let second = exported(elsewhere, owner).await;
    // The first line is not compared, because it contains the time of the export.
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(ended(&body(&first)), body(&second));
}

/// Returns the records with all runs finished.
fn ended(records: &str) -> String {
    let lines = records.split_inclusive('\n').map(|line| {
        let is_gone = line.starts_with("{\"state\":") || line.starts_with("{\"run_message\":");
        let run = line.strip_prefix("{\"run\":");
        let Some(run) = run.and_then(|run| run.strip_suffix("}\n")) else {
            return if is_gone {
                String::new()
            } else {
                line.to_owned()
            };
        };
        let mut run: RunRecord = serde_json::from_str(run).unwrap();
        if run.state != RunState::Finished {
            run.state = RunState::Finished;
            run.outcome = Some("cancelled".into());
        }
        format!("{{\"run\":{}}}\n", serde_json::to_string(&run).unwrap())
    });
    lines.collect()
}

async fn exported(store: &Store, owner: &Principal) -> String {
    let pieces: Vec<_> = store.export(owner, None).collect().await;
    pieces.into_iter().map(Result::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_store_behaves_like_the_model_in_memory(
        ops in prop::collection::vec((0..2_usize, op()), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let options = StoreOptions::sqlite(folder.path().join("sessions.db"))
                .durability(Durability::ProcessCrash);
            let open = || async { Store::open(options.clone()).await.unwrap() };
            let stores = [open().await, open().await];
            let mut stores = Stores { options: options.clone(), stores };
            let mut model = Model::default();
            for (step, (at, op)) in ops.into_iter().enumerate() {
                let said = format!("step {step}, instance {at}: {op:?}");
                let (done, expected) = perform(op, at, &mut stores, &mut model).await;
                assert_eq!(done, expected, "{said}");
                if step % 8 == 7 {
                    compare(&stores.stores[step % 2], step / 8 % 2, &model).await;
                }
            }
            for store in &stores.stores {
                for owner in 0..2 {
                    compare(store, owner, &model).await;
                }
            }
            let copies = StoreOptions::sqlite(folder.path().join("copies.db"))
                .durability(Durability::ProcessCrash);
            let copies = Store::open(copies).await.unwrap();
            for owner in 0..2 {
                check_export_of_import(&stores.stores[owner], &copies, &principal(owner)).await;
            }
            copies.close().await;
            for store in &stores.stores {
                store.close().await;
            }
        });
    }
}

use std::error::Error as _;

use futures_util::future::join4;
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore as _, Session, SessionId, SessionStore as _,
    StoredEvent,
};
use tempfile::TempDir;

use super::*;
use crate::{Durability, Store, StoreOptions, database::sqlite::Sqlite};

/// Maximum number of pages of the file. A larger file is a full disk to SQLite. Enough for the
/// tables and a few messages.
const PAGES: &str = "90";

/// Raises the maximum number of pages.
struct Room;

#[async_trait]
impl Write for Room {
    type Output = ();
    const OPERATION: &'static str = "make room";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        let plenty = "PRAGMA max_page_count = 1000000";
        Ok(tx.connection.run(plenty).await?)
    }
}

/// A store on a disk that is almost full.
async fn cramped() -> (Store, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    std::fs::write(&path, "").unwrap();
    let database = Sqlite::new(path, Durability::ProcessCrash);
    let database = database.with_pragma("max_page_count", PAGES);
    let store = Store::open_database(Arc::new(database)).await.unwrap();
    for name in ["s", "t", "u"] {
        store.create(&me(), &session(name)).await.unwrap();
    }
    store
        .begin(&me(), &run_of(&session("t")), 0, &[])
        .await
        .unwrap();
    (store, folder)
}

fn me() -> Principal {
    Principal::default()
}

fn session(id: &str) -> Session {
    Session {
        id: SessionId(id.into()),
        title: String::new(),
        created_at: String::new(),
        messages: 0,
    }
}

fn run_of(session: &Session) -> RunRecord {
    RunRecord {
        id: "r".into(),
        session: session.id.clone(),
        state: RunState::Running,
        model: "m".into(),
        created_at: String::new(),
        updated_at: String::new(),
        events_before: 0,
        last_event: 0,
        outcome: None,
        parameters: None,
    }
}

fn says(bytes: usize) -> [Arc<Message>; 1] {
    [Message::user("x".repeat(bytes)).into()]
}

fn event(seq: u64) -> [StoredEvent; 1] {
    let json = "{}".into();
    [StoredEvent { seq, json }]
}

fn said(error: &SessionStoreError) -> String {
    let SessionStoreError::Storage { .. } = error else {
        panic!("{error:?}");
    };
    error.source().unwrap().to_string()
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let (store, _folder) = cramped().await;
    let (me, s) = (me(), SessionId("s".into()));
    let mut held = 0;
    let failure = loop {
        match store.append(&me, &s, held, &says(20_000)).await {
            Ok(now) => held = now,
            Err(error) => break error,
        }
        assert!(held < 90, "the disk does not become full");
    };
    assert!(held > 0);
    assert!(said(&failure).contains("full"), "{}", said(&failure));
    for _ in 0..2 {
        // The same write is refused again, and the stored messages can be read.
        let again = store.append(&me, &s, held, &says(20_000)).await;
        assert!(said(&again.unwrap_err()).contains("full"));
        assert_eq!(store.messages(&me, &s, 0).await.unwrap().len() as u64, held);
        assert_eq!(store.get(&me, &s).await.unwrap().unwrap().messages, held);
    }
    store.queue().perform(Room).await.unwrap();
    let now = store.append(&me, &s, held, &says(20_000)).await.unwrap();
    assert_eq!(now, held + 1);
    store.append_events("r", &event(1)).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn small_writes_succeed_on_a_disk_that_is_too_full_for_a_large_one() {
    let (store, _folder) = cramped().await;
    let me = me();
    let (s, u) = (SessionId("s".into()), SessionId("u".into()));
    let (large, small) = (says(1 << 20), says(10));
    // All are queued before the writer starts: one transaction.
    let (first, large, renamed, second) = join4(
        store.append_events("r", &event(1)),
        store.append(&me, &s, 0, &large),
        store.rename(&me, &s, "small"),
        store.append(&me, &u, 0, &small),
    )
    .await;
    let why = said(&large.unwrap_err());
    assert!(why.contains("full"), "{why}");
    first.unwrap();
    renamed.unwrap();
    assert_eq!(second.unwrap(), 1);
    assert_eq!(store.events(&me, "r", 0, 9).await.unwrap(), event(1));
    let found = store.get(&me, &s).await.unwrap().unwrap();
    assert_eq!((found.title.as_str(), found.messages), ("small", 0));
    assert!(store.messages(&me, &s, 0).await.unwrap().is_empty());
    store.close().await;
}

/// Returns the number of executed statements, with those of this transaction.
struct Statements;

#[async_trait]
impl Write for Statements {
    type Output = u64;
    const OPERATION: &'static str = "count";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<u64, Refusal> {
        Ok(tx.connection.statement_count())
    }
}

#[tokio::test]
async fn a_run_takes_few_statements() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions::sqlite(folder.path().join("sessions.db"));
    let options = options.durability(Durability::ProcessCrash);
    let store = Store::open(options).await.unwrap();
    let (me, said) = (me(), says(10));
    let session = session("s");
    let run = run_of(&session);
    let snapshot = switchboard_domain::RunSnapshot {
        state: "{}".into(),
        from: 0,
        messages: said.to_vec(),
    };
    let mut before = store.queue().perform(Statements).await.unwrap();
    let mut counts = Vec::new();
    for step in 0..4 {
        match step {
            0 => {
                let begun = store.begin_session(&me, &session, &run, &said).await;
                begun.map(|_| ())
            }
            1 => store.save_with("r", &event(1), &snapshot).await,
            2 => store.append_events("r", &event(2)).await,
            _ => {
                let over = RunState::Finished;
                store
                    .release_with("r", &event(3), over, None, 1, &said)
                    .await
            }
        }
        .unwrap();
        let now = store.queue().perform(Statements).await.unwrap();
        // Three statements of the transactions that count.
        counts.push(now - before - 3);
        before = now;
    }
    // With BEGIN, the check of the instance, and COMMIT. A single write needs no savepoint.
    assert_eq!(counts, [6, 8, 4, 9]);
    store.close().await;
}

use std::error::Error as _;

use futures_util::future::join4;
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore as _, Session, SessionId, SessionStore as _,
    StoredEvent,
};
use tempfile::TempDir;

use super::*;
use crate::{Durability, Store, database::sqlite::Sqlite};

/// Maximum number of pages of the file. SQLite reports a full disk for a larger file. The file has
/// space for the tables and a few messages.
const PAGES: &str = "90";

/// Creates a store on a disk that is almost full.
async fn cramped() -> (Store, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    std::fs::write(&path, "").unwrap();
    let database = Sqlite::new(path, Durability::ProcessCrash);
    let database = database.with_pragma("max_page_count", PAGES);
    let store = Store::open_database(Arc::new(database)).await.unwrap();
    for name in ["s", "t", "u"] {
        store.create_session(&me(), &session(name)).await.unwrap();
    }
    store
        .begin_run(&me(), &run_of(&session("t")), 0, &[])
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
        match store.append_messages(&me, &s, held, &says(20_000)).await {
            Ok(now) => held = now,
            Err(error) => break error,
        }
        assert!(held < 90, "the disk does not become full");
    };
    assert!(held > 0);
    assert!(said(&failure).contains("full"), "{}", said(&failure));
    for _ in 0..2 {
        // The same write fails again, and the stored messages can still be read.
        let again = store.append_messages(&me, &s, held, &says(20_000)).await;
        assert!(said(&again.unwrap_err()).contains("full"));
        assert_eq!(
            store.load_messages(&me, &s, 0).await.unwrap().len() as u64,
            held
        );
        assert_eq!(
            store.find_session(&me, &s).await.unwrap().unwrap().messages,
            held
        );
    }
    let grow = "PRAGMA max_page_count = 1000000";
    let grown = store.perform_write("make room", async move |tx| {
        Ok(tx.connection.execute_batch(grow).await?)
    });
    grown.await.unwrap();
    let now = store
        .append_messages(&me, &s, held, &says(20_000))
        .await
        .unwrap();
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
    // All writes are queued before the writer thread runs, so they are in one transaction.
    let (first, large, renamed, second) = join4(
        store.append_events("r", &event(1)),
        store.append_messages(&me, &s, 0, &large),
        store.rename_session(&me, &s, "small"),
        store.append_messages(&me, &u, 0, &small),
    )
    .await;
    let why = said(&large.unwrap_err());
    assert!(why.contains("full"), "{why}");
    first.unwrap();
    renamed.unwrap();
    assert_eq!(second.unwrap(), 1);
    assert_eq!(store.load_events(&me, "r", 0, 9).await.unwrap(), event(1));
    let found = store.find_session(&me, &s).await.unwrap().unwrap();
    assert_eq!((found.title.as_str(), found.messages), ("small", 0));
    assert!(store.load_messages(&me, &s, 0).await.unwrap().is_empty());
    store.close().await;
}

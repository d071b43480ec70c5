//! All behaviours on SQLite, and behaviours that only SQLite has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "functions of tests: a failure ends the test"
)]

mod suite;

use suite::{Place, ok};
use switchboard_domain::{RunState, RunStore as _, SessionStore as _, SessionStoreError};
use switchboard_sessions::{Durability, Retention, Store, StoreOpenError, StoreOptions};
use tempfile::TempDir;

fn fresh() -> (Place, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    // Syncing to the disk is disabled, because the tests do not simulate power failures.
    let options = StoreOptions::sqlite(folder.path().join("data/sessions.db"))
        .durability(Durability::ProcessCrash);
    (Place { options, url: None }, folder)
}

suite::tests!(fresh());

fn locks(folder: &TempDir) -> usize {
    let locks = folder.path().join("data/sessions.db-locks");
    std::fs::read_dir(locks).unwrap().count()
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let (place, folder) = fresh();
    let store = place.open().await;
    ok(store.create_session(&suite::me(), &suite::session("s"))).await;
    let mode = |path: &str| {
        let metadata = std::fs::metadata(folder.path().join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("data"), 0o700);
    assert_eq!(mode("data/sessions.db"), 0o600);
    assert_eq!(mode("data/sessions.db-wal"), 0o600);
    assert_eq!(mode("data/sessions.db-shm"), 0o600);
    assert_eq!(mode("data/sessions.db-locks"), 0o700);
    store.close().await;
}

#[tokio::test]
async fn locks_of_the_dead_are_removed() {
    let (place, folder) = fresh();
    let stores = [place.open().await, place.open().await, place.open().await];
    assert_eq!(locks(&folder), 3);
    suite::at_work(&stores[0], "s", "r").await;
    let [dying, closing, staying] = stores;
    drop(dying);
    closing.close().await;
    assert_eq!(locks(&folder), 2);
    // The lock file exists, but the row of its instance was never written.
    std::fs::write(folder.path().join("data/sessions.db-locks/orphan"), "").unwrap();
    let opened = place.open().await;
    assert_eq!(locks(&folder), 2);
    assert_eq!(suite::state(&staying, "r").await, RunState::Interrupted);
    opened.acquire_run(&suite::me(), "r").await.unwrap();
}

// The test does not run on Windows, which cannot remove an open file.
#[cfg(unix)]
#[tokio::test]
async fn a_store_whose_lock_was_removed_is_treated_as_dead_and_detects_it() {
    let (place, folder) = fresh();
    let store = place.open().await;
    suite::at_work(&store, "s", "r").await;
    std::fs::remove_dir_all(folder.path().join("data/sessions.db-locks")).unwrap();
    let second = place.open().await;
    second.acquire_run(&suite::me(), "r").await.unwrap();
    let refused = store.append_events("r", &suite::events(1..=1)).await;
    suite::fails!(refused, SessionStoreError::RunConflict { .. });
    // The instance continues with a new id.
    suite::at_work(&store, "t", "q").await;
    let busy = second.acquire_run(&suite::me(), "q").await;
    suite::fails!(busy, SessionStoreError::Busy { .. });
    ok(second.append_events("r", &suite::events(1..=1))).await;
}

#[tokio::test]
async fn a_file_that_another_program_has_locked_is_unavailable() {
    let (place, folder) = fresh();
    let store = place.open().await;
    let me = suite::me();
    ok(store.create_session(&me, &suite::session("s"))).await;
    let other = rusqlite::Connection::open(folder.path().join("data/sessions.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // Both operations run concurrently, because each waits for the lock.
    let new = suite::session("t");
    let (created, pinged) =
        tokio::join!(store.create_session(&me, &new), store.check_store_access());
    suite::fails!(created, SessionStoreError::Unavailable { .. });
    suite::fails!(pinged, SessionStoreError::Unavailable { .. });
    // Nothing was written, and stored data can be read.
    assert_eq!(store.list_sessions(&me, 9).await.unwrap().len(), 1);
    other.execute_batch("ROLLBACK").unwrap();
    store.check_store_access().await.unwrap();
    store.create_session(&me, &new).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_stays_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(
        &path,
        "Not a database, but somebody's notes, which are long enough.".repeat(20),
    )
    .unwrap();
    let before = std::fs::read(&path).unwrap();
    let opened = Store::open(StoreOptions::sqlite(&path)).await;
    suite::fails!(opened, StoreOpenError::Database { .. });
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let below = Store::open(StoreOptions::sqlite(path.join("sessions.db"))).await;
    suite::fails!(below, StoreOpenError::File { .. });
}

#[tokio::test]
async fn removed_sessions_make_the_file_smaller() {
    let (place, folder) = fresh();
    let store = place.open().await;
    let me = suite::me();
    let long = "x".repeat(1 << 20);
    for at in 0..20 {
        let session = suite::session(&format!("s{at}"));
        store.create_session(&me, &session).await.unwrap();
        ok(store.append_messages(&me, &session.id, 0, &suite::says(&[&long]))).await;
    }
    store.close().await;
    let size = || {
        std::fs::metadata(folder.path().join("data/sessions.db"))
            .unwrap()
            .len()
    };
    let before = size();
    let store = place.open().await;
    let retention = Retention {
        at_most: Some(2),
        ..Retention::default()
    };
    assert_eq!(store.prune_sessions(&retention).await.unwrap(), 18);
    store.close().await;
    assert!(size() < before / 4, "{before} bytes before, {} now", size());
}

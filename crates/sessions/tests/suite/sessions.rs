use std::time::Duration;

use futures_util::StreamExt as _;
use switchboard_domain::{AuditStore as _, MAX_AUDIT_RECORD_BYTES};
use switchboard_domain::{CallRateCounter as _, CallRateLimits, SessionStore as _};
use switchboard_domain::{Message, SessionStoreError as Error};
use switchboard_domain::{Principal, RunSnapshot, RunState, RunStore as _, Session};
use switchboard_sessions::{Retention, Store, StoreOpenError};

use super::{Place, at_work, events, fails, id, me, ok, other, record, release, says, session};

pub(crate) async fn sessions_are_listed_newest_first(place: Place) {
    let store = place.open().await;
    let at = |name: &str, created_at: &str| Session {
        created_at: created_at.into(),
        ..session(name)
    };
    // Two different notations of one time, an earlier time and a later time.
    for one in [
        at("b", "2026-11-21T20:00:00.500Z"),
        at("c", "2026-11-21T20:00:00.5Z"),
        at("d", "2026-11-21T20:00:00Z"),
        at("a", "2027-01-01T00:00:00Z"),
    ] {
        store.create_session(&me(), &one).await.unwrap();
    }
    let listed = store.list_sessions(&me(), 10).await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|one| one.id.0.as_str()).collect();
    assert_eq!(ids, ["a", "c", "b", "d"]);
    assert_eq!(listed[0], at("a", "2027-01-01T00:00:00Z"));
    assert_eq!(store.list_sessions(&me(), 2).await.unwrap().len(), 2);
    assert!(store.list_sessions(&me(), 0).await.unwrap().is_empty());
    fails!(store.create_session(&me(), &session("a")).await, Error::Exists { id } if id.0 == "a");
    store.close().await;
    let again = place.open().await;
    assert_eq!(again.list_sessions(&me(), 10).await.unwrap(), listed);
}

pub(crate) async fn a_session_is_renamed_and_deleted(place: Place) {
    let store = place.open().await;
    store.create_session(&me(), &session("s")).await.unwrap();
    ok(store.append_messages(&me(), &id("s"), 0, &says(&["one", "two"]))).await;
    store.rename_session(&me(), &id("s"), "Été").await.unwrap();
    let expected = Session {
        title: "Été".into(),
        messages: 2,
        ..session("s")
    };
    assert_eq!(
        store.find_session(&me(), &id("s")).await.unwrap(),
        Some(expected)
    );
    store.delete_session(&me(), &id("s")).await.unwrap();
    store.delete_session(&me(), &id("s")).await.unwrap();
    assert_eq!(store.find_session(&me(), &id("s")).await.unwrap(), None);
    fails!(
        store.rename_session(&me(), &id("s"), "x").await,
        Error::NotFound { .. }
    );
    fails!(
        store.load_messages(&me(), &id("s"), 0).await,
        Error::NotFound { .. }
    );
    // A new session with the same id contains nothing of the deleted one.
    store.create_session(&me(), &session("s")).await.unwrap();
    assert!(ok(store.load_messages(&me(), &id("s"), 0)).await.is_empty());
}

pub(crate) async fn messages_are_appended_by_one_writer(place: Place) {
    let store = place.open().await;
    store.create_session(&me(), &session("s")).await.unwrap();
    let append = |after, texts: &'static [&str]| {
        let (store, messages) = (store.clone(), says(texts));
        async move {
            store
                .append_messages(&me(), &id("s"), after, &messages)
                .await
        }
    };
    assert_eq!(append(0, &["a"]).await.unwrap(), 1);
    fails!(
        append(0, &["b"]).await,
        Error::Conflict {
            expected: 0,
            actual: 1,
            ..
        }
    );
    fails!(
        append(2, &["b"]).await,
        Error::Conflict {
            expected: 2,
            actual: 1,
            ..
        }
    );
    let (left, right) = tokio::join!(append(1, &["l"]), append(1, &["r", "r"]));
    assert!(left.is_ok() != right.is_ok(), "{left:?} {right:?}");
    let total = left.or(right).unwrap();
    assert_eq!(append(total, &[]).await.unwrap(), total);
    let all = store.load_messages(&me(), &id("s"), 0).await.unwrap();
    assert_eq!(all.len() as u64, total);
    assert_eq!(
        store.load_messages(&me(), &id("s"), 1).await.unwrap(),
        all[1..]
    );
    assert!(
        ok(store.load_messages(&me(), &id("s"), 99))
            .await
            .is_empty()
    );
    let many: Vec<_> = (0..700)
        .map(|at| Message::user(format!("{at}")).into())
        .collect();
    ok(store.append_messages(&me(), &id("s"), total, &many)).await;
    assert_eq!(
        store.load_messages(&me(), &id("s"), total).await.unwrap(),
        many
    );
    fails!(
        store.append_messages(&me(), &id("none"), 0, &[]).await,
        Error::NotFound { .. }
    );
}

pub(crate) async fn principals_do_not_see_each_other(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    store.append_events("r", &events(1..=2)).await.unwrap();
    let stranger = other();
    assert_eq!(store.find_session(&stranger, &id("s")).await.unwrap(), None);
    assert!(store.list_sessions(&stranger, 9).await.unwrap().is_empty());
    assert_eq!(store.find_run(&stranger, "r").await.unwrap(), None);
    assert!(ok(store.list_runs(&stranger, None, 9)).await.is_empty());
    assert!(
        ok(store.list_runs(&stranger, Some(&id("s")), 9))
            .await
            .is_empty()
    );
    let no_run = store.load_events(&stranger, "r", 0, 9).await;
    fails!(no_run, Error::NoSuchRun { .. });
    fails!(
        store.load_snapshot(&stranger, "r").await,
        Error::NoSuchRun { .. }
    );
    fails!(
        store.acquire_run(&stranger, "r").await,
        Error::NoSuchRun { .. }
    );
    fails!(
        store.load_messages(&stranger, &id("s"), 0).await,
        Error::NotFound { .. }
    );
    fails!(
        store.append_messages(&stranger, &id("s"), 1, &[]).await,
        Error::NotFound { .. }
    );
    fails!(
        store.rename_session(&stranger, &id("s"), "x").await,
        Error::NotFound { .. }
    );
    let begun = store.begin_run(&stranger, &record("q", "s"), 1, &[]).await;
    fails!(begun, Error::NotFound { .. });
    // The principal has no such session, so nothing is deleted, without an error.
    store.delete_session(&stranger, &id("s")).await.unwrap();
    assert!(store.find_session(&me(), &id("s")).await.unwrap().is_some());
    // The tenant and the user are compared separately, not as one joined text.
    let mixed = switchboard_domain::Principal {
        tenant: "acm".into(),
        user: "eada".into(),
    };
    assert_eq!(store.find_session(&mixed, &id("s")).await.unwrap(), None);
    fails!(
        store.create_session(&stranger, &session("s")).await,
        Error::Exists { .. }
    );
}

pub(crate) async fn old_sessions_are_removed(place: Place) {
    let store = place.open().await;
    for at in 0..130 {
        ok(store.create_session(&me(), &session(&format!("s{at}")))).await;
    }
    ok(store.create_session(&other(), &session("theirs"))).await;
    // The oldest session has an unfinished run, so it is kept.
    ok(store.begin_run(&me(), &record("r", "s0"), 0, &says(&["go"]))).await;
    store.append_events("r", &events(1..=1)).await.unwrap();
    release(&store, "r", RunState::Waiting, 1, &[]).await;
    // This session is used again, so it is one of the newest.
    ok(store.append_messages(&me(), &id("s7"), 0, &says(&["again"]))).await;
    let nothing = store.prune_sessions(&Retention::default()).await.unwrap();
    assert_eq!(nothing, 0);
    let retention = Retention {
        unused_for: Some(Duration::from_hours(1)),
        at_most: Some(3),
    };
    assert_eq!(store.prune_sessions(&retention).await.unwrap(), 127);
    let mut left: Vec<String> = Vec::new();
    for one in store.list_sessions(&me(), 500).await.unwrap() {
        left.push(one.id.0);
    }
    left.sort();
    assert_eq!(left, ["s0", "s129", "s7"]);
    assert_eq!(store.list_sessions(&other(), 9).await.unwrap().len(), 1);
    let retention = Retention {
        unused_for: Some(Duration::ZERO),
        ..Retention::default()
    };
    assert_eq!(store.prune_sessions(&retention).await.unwrap(), 3);
    let left = store.list_sessions(&me(), 9).await.unwrap();
    assert_eq!(left.len(), 1);
    let expected = events(1..=1);
    assert_eq!(store.load_events(&me(), "r", 0, 9).await.unwrap(), expected);
}

pub(crate) async fn any_text_but_nul_is_kept(place: Place) {
    let store = place.open().await;
    let odd = "'; DROP TABLE sessions; -- \u{1f600} \u{fffd} \u{1} $1 \\ \"";
    let one = Session {
        id: id(odd),
        title: odd.into(),
        created_at: "yesterday".into(),
        messages: 0,
    };
    store.create_session(&me(), &one).await.unwrap();
    let long = "x".repeat(3 << 20);
    // In JSON, NUL in a message is escaped, so it can be stored.
    let messages = says(&[odd, "\0", "", &long]);
    ok(store.append_messages(&me(), &one.id, 0, &messages)).await;
    assert_eq!(
        store.load_messages(&me(), &one.id, 0).await.unwrap(),
        messages
    );
    let found = store.find_session(&me(), &one.id).await.unwrap().unwrap();
    assert_eq!(
        (found.title.as_str(), found.created_at.as_str()),
        (odd, "yesterday")
    );
    let with_nul = session("a\0b");
    fails!(
        store.create_session(&me(), &with_nul).await,
        Error::Storage { .. }
    );
    fails!(
        store.rename_session(&me(), &one.id, "\0").await,
        Error::Storage { .. }
    );
    // After a refused write, the store still works.
    store.rename_session(&me(), &one.id, "fine").await.unwrap();
    assert_eq!(
        store.list_sessions(&me(), 9).await.unwrap()[0].title,
        "fine"
    );
}

pub(crate) async fn a_closed_store_refuses(place: Place) {
    let store = place.open().await;
    let clone = store.clone();
    store.create_session(&me(), &session("s")).await.unwrap();
    store.check_store_access().await.unwrap();
    store.close().await;
    fails!(
        clone.create_session(&me(), &session("t")).await,
        Error::Storage { .. }
    );
    fails!(clone.list_sessions(&me(), 1).await, Error::Storage { .. });
    fails!(clone.check_store_access().await, Error::Storage { .. });
    clone.close().await;
    let again = place.open().await;
    assert_eq!(again.list_sessions(&me(), 9).await.unwrap().len(), 1);
}

pub(crate) async fn the_key_of_ids_is_made_once(place: Place) {
    let stores = [place.open().await, place.open().await];
    let (one, other) = tokio::join!(
        stores[0].load_session_id_key(),
        stores[1].load_session_id_key()
    );
    let key = one.unwrap();
    assert_eq!(key, other.unwrap());
    assert_eq!(key.as_bytes().len(), 64);
    assert!(!format!("{key:?}").contains(std::str::from_utf8(key.as_bytes()).unwrap()));
    for store in stores {
        store.close().await;
    }
    assert_eq!(ok(place.open().await.load_session_id_key()).await, key);
}

pub(crate) async fn a_store_of_another_version_is_refused(place: Place) {
    place.open().await.close().await;
    raw(&place, "UPDATE store_version SET version = 1000").await;
    let known = match Store::open(place.options.clone()).await {
        Err(StoreOpenError::UnknownVersion { found: 1000, known }) => known,
        other => panic!("{other:?}"),
    };
    // The refused open has changed nothing.
    let back = format!("UPDATE store_version SET version = {known}");
    raw(&place, &back).await;
    place.open().await.close().await;
}

pub(crate) async fn a_store_of_an_earlier_form_is_refused_and_unchanged(place: Place) {
    if let Some(path) = place.options.sqlite_path() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
    let earlier = "CREATE TABLE switchboard_schema (version BIGINT NOT NULL);
        INSERT INTO switchboard_schema (version) VALUES (3)";
    raw(&place, earlier).await;
    for _ in 0..2 {
        let refused = Store::open(place.options.clone()).await.unwrap_err();
        assert!(
            matches!(refused, StoreOpenError::EarlierForm),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("commit f008d49"), "{refused}");
    }
    // The refused open has created no table.
    raw(&place, "CREATE TABLE sessions (id TEXT)").await;
}

pub(crate) async fn a_store_of_version_1_is_read(place: Place) {
    place.open().await.close().await;
    let version_1 = "DROP TABLE audit; DROP TABLE tool_calls; UPDATE store_version SET version = 1";
    raw(&place, version_1).await;
    let store = read_version_1_data(place).await;
    ok(store.count_call(&me(), "t", CallRateLimits::default(), 1)).await;
}

pub(crate) async fn a_store_of_version_2_is_read(place: Place) {
    place.open().await.close().await;
    let version_2 = "DROP TABLE audit; UPDATE store_version SET version = 2";
    raw(&place, version_2).await;
    raw(&place, include_str!("../fixtures/version_2.sql")).await;
    let store = read_version_1_data(place).await;
    let limits = CallRateLimits {
        this_tool: Some(1),
        ..CallRateLimits::default()
    };
    let now = 1_795_507_200_000_001;
    let reached = ok(store.count_call(&me(), "t", limits, now)).await;
    assert!(reached.is_some());
}

/// Loads the data of the fixture of version 1, opens the store and checks the data.
async fn read_version_1_data(place: Place) -> Store {
    raw(&place, include_str!("../fixtures/version_1.sql")).await;
    let store = place.open().await;
    ok(store.append_audit_records(&[(me(), "{}".into())])).await;
    let sessions = store.list_sessions(&me(), 9).await.unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!((&*sessions[0].title, sessions[0].messages), ("A title", 2));
    let messages = store.load_messages(&me(), &id("s"), 0).await.unwrap();
    assert_eq!(*messages[0], Message::user("Hello?"));
    assert_eq!(messages[1].text(), "Hi.");
    let runs = store.list_runs(&me(), Some(&id("s")), 9).await.unwrap();
    let states: Vec<_> = runs.iter().map(|run| (&*run.id, run.state)).collect();
    let expected = [("second", RunState::Waiting), ("first", RunState::Finished)];
    assert_eq!(states, expected);
    let expected = Some(serde_json::json!({"recipe": "careful"}));
    assert_eq!(runs[0].parameters, expected);
    let events = store.load_events(&me(), "first", 0, 9).await.unwrap();
    assert_eq!((events.len(), &*events[1].json), (2, r#"{"seq":2}"#));
    let snapshot = store.load_snapshot(&me(), "second").await.unwrap().unwrap();
    assert_eq!(&*snapshot.state, r#"{"v":1}"#);
    assert_eq!(*snapshot.messages[0], Message::user("Go on."));
    let taken = store.acquire_run(&me(), "second").await.unwrap();
    assert_eq!((taken.state, taken.events_before), (RunState::Running, 2));
    store
}

pub(crate) async fn audit_records_are_paged_and_forgotten(place: Place) {
    let store = place.open().await;
    ok(store.create_session(&me(), &session("s"))).await;
    let record = |owner, n: u32| (owner, format!("{{\"n\":{n}}}").into());
    let mixed: Vec<_> = (0..6)
        .map(|n| record(if n % 2 == 0 { me() } else { other() }, n))
        .collect();
    ok(store.append_audit_records(&mixed)).await;
    ok(store.append_audit_records(&[record(me(), 6)])).await;
    // A record that is too large is refused with the others of its call.
    let large = "x".repeat(MAX_AUDIT_RECORD_BYTES + 1).into();
    let records = [record(me(), 7), (me(), large)];
    let refused = store.append_audit_records(&records).await;
    fails!(refused, Error::TooLarge { .. });
    ok(store.delete_session(&me(), &id("s"))).await;
    let newest = ok(store.list_audit_records(&me(), "", 2)).await;
    let older = ok(store.list_audit_records(&me(), &newest[1].id, 9)).await;
    let oldest = ok(store.load_audit_records_after(&me(), "", 1)).await;
    let newer = ok(store.load_audit_records_after(&me(), &oldest[0].id, 9)).await;
    for (pages, expected) in [
        ([newest, older], [6, 4, 2, 0]),
        ([oldest, newer], [0, 2, 4, 6]),
    ] {
        let listed = pages.iter().flatten().map(|it| it.record["n"].clone());
        assert_eq!(listed.collect::<Vec<_>>(), expected);
    }
    for (hours, expected) in [(1, (4, 3)), (0, (0, 0))] {
        let retention = Retention {
            unused_for: Some(Duration::from_hours(hours)),
            ..Retention::default()
        };
        assert_eq!(ok(store.prune_sessions(&retention)).await, 0);
        let mine = ok(store.list_audit_records(&me(), "", 9)).await;
        let others = ok(store.list_audit_records(&other(), "", 9)).await;
        assert_eq!((mine.len(), others.len()), expected);
    }
}

/// Checks that an id with NUL, which no database can store, is treated as unknown.
pub(crate) async fn an_id_with_nul_is_found_nowhere(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    let (nul, no_run) = (id("s\0"), "r\0");
    assert_eq!(store.find_session(&me(), &nul).await.unwrap(), None);
    let nobody = Principal {
        user: "\0".into(),
        ..me()
    };
    assert!(store.list_sessions(&nobody, 9).await.unwrap().is_empty());
    fails!(
        store.load_messages(&me(), &nul, 0).await,
        Error::NotFound { id } if id == nul
    );
    let append = store.append_messages(&me(), &nul, 0, &says(&["x"])).await;
    fails!(append, Error::NotFound { .. });
    fails!(
        store.rename_session(&me(), &nul, "x").await,
        Error::NotFound { .. }
    );
    store.delete_session(&me(), &nul).await.unwrap();
    let mut export = store.export(&me(), Some(&nul));
    export.next().await.unwrap().unwrap();
    fails!(export.next().await.unwrap(), Error::NotFound { .. });
    assert!(ok(store.list_runs(&me(), Some(&nul), 9)).await.is_empty());
    assert_eq!(store.find_run(&me(), no_run).await.unwrap(), None);
    let begin = store.begin_run(&me(), &record("q", "s\0"), 0, &[]).await;
    fails!(begin, Error::NotFound { .. });
    fails!(
        store.acquire_run(&me(), no_run).await,
        Error::NoSuchRun { .. }
    );
    fails!(
        store.load_events(&me(), no_run, 0, 9).await,
        Error::NoSuchRun { .. }
    );
    fails!(
        store.load_snapshot(&me(), no_run).await,
        Error::NoSuchRun { .. }
    );
    fails!(
        store.append_events(no_run, &events(1..=1)).await,
        Error::NoSuchRun { .. }
    );
    let release = store
        .release_run(no_run, RunState::Waiting, None, 1, &[])
        .await;
    fails!(release, Error::NoSuchRun { run } if run == no_run);
    let snapshot = RunSnapshot {
        state: "{}".into(),
        from: 0,
        messages: Vec::new(),
    };
    fails!(
        store.save_snapshot(no_run, &snapshot).await,
        Error::NoSuchRun { .. }
    );
}

/// Executes an SQL statement directly on the database.
pub(super) async fn raw(place: &Place, sql: &str) {
    let Some(path) = place.options.sqlite_path() else {
        return raw_postgres(place, sql).await;
    };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[cfg(feature = "postgres")]
async fn raw_postgres(place: &Place, sql: &str) {
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
    let url = place.url.as_ref().unwrap();
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    ok(connection.execute(AssertSqlSafe(sql.to_owned()))).await;
}

#[cfg(not(feature = "postgres"))]
#[allow(clippy::unused_async, reason = "as with the feature")]
async fn raw_postgres(place: &Place, _sql: &str) {
    panic!("{:?} needs the feature `postgres`", place.url);
}

pub(crate) async fn several_open_a_new_store_at_once(place: Place) {
    let opening: Vec<_> = (0..6)
        .map(|at| {
            let place = place.clone();
            tokio::spawn(async move {
                let store = place.open().await;
                let name = format!("s{at}");
                store.create_session(&me(), &session(&name)).await.unwrap();
                store
            })
        })
        .collect();
    let mut stores = Vec::new();
    for one in opening {
        stores.push(one.await.unwrap());
    }
    for store in &stores {
        assert_eq!(store.list_sessions(&me(), 9).await.unwrap().len(), 6);
    }
}

//! All behaviours on PostgreSQL, and behaviours that only PostgreSQL has, with a real server that
//! this test starts.
//!
//! There is only one test, so that only one server is started even if each test is a separate
//! process. `cargo xtask postgres` runs the test, which is ignored otherwise. It fails if no server
//! is installed.
#![cfg(all(unix, feature = "postgres"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "functions of tests: a failure ends the test"
)]

mod server;
mod suite;

use std::{error::Error as _, time::Duration};

use futures_util::StreamExt as _;
use server::Server;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use suite::{Place, events, fails, id, me, ok, record, release, says, session, state};
use switchboard_domain::{RunState, RunStore as _, SessionStore as _, SessionStoreError as Error};
use switchboard_sessions::{Store, StoreOpenError, StoreOptions};

/// Number of behaviours that are tested concurrently, because each waits for the server most of the
/// time.
const AT_ONCE: usize = 6;

macro_rules! own {
    ($($name:ident),+ $(,)?) => { [$((stringify!($name), |place| Box::pin($name(place)))),+] };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
async fn postgres_behaves_the_same() {
    let server = Server::start();
    let mut server =
        server.unwrap_or_else(|| panic!("no PostgreSQL server is installed. {}", server::WHERE));
    let own: [(&str, suite::Behaviour); 8] = own![
        a_wrong_password_is_not_shown,
        a_user_without_the_right_to_create_tables_opens_an_existing_store,
        a_session_is_not_deleted_while_its_run_is_acquired,
        a_server_without_free_connections_is_waited_for,
        a_silent_server_is_given_up,
        lost_connections_are_made_again,
        an_instance_that_was_treated_as_dead_detects_it,
        two_schemas_of_one_database_are_two_stores,
    ];
    let all: Vec<_> = suite::ALL.iter().copied().chain(own).collect();
    a_server_that_is_started_again_is_waited_for(&mut server).await;
    let server = &server;
    a_server_is_checked_over_tls(server).await;
    let outcomes: Vec<_> = futures_util::stream::iter(all.into_iter().enumerate())
        .map(|(at, (name, behaviour))| async move {
            let url = server.database(&format!("behaviour_{at}")).await;
            let options = StoreOptions::postgres(&url);
            let url = Some(url);
            // Each behaviour runs in a separate task, so that a panic is only its own result.
            let ran = tokio::spawn(behaviour(Place { options, url })).await;
            println!("{name}: {}", if ran.is_ok() { "ok" } else { "FAILED" });
            (name, ran)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let failed: Vec<_> = outcomes.iter().filter(|(_, ran)| ran.is_err()).collect();
    println!("{} behaviours of PostgreSQL", outcomes.len());
    assert!(
        failed.is_empty(),
        "{} of {} failed: {failed:?}",
        failed.len(),
        outcomes.len()
    );
}

async fn admin(place: &Place) -> PgConnection {
    PgConnection::connect(place.url.as_ref().unwrap())
        .await
        .unwrap()
}

async fn a_wrong_password_is_not_shown(place: Place) {
    let url = place.url.unwrap().replace("correct-horse", "hunter2");
    let refused = Store::open(StoreOptions::postgres(url)).await.unwrap_err();
    assert!(
        matches!(refused, StoreOpenError::Database { .. }),
        "{refused:?}"
    );
    let mut said = format!("{refused:?} {refused}");
    let mut source = refused.source();
    while let Some(error) = source {
        said.push_str(&error.to_string());
        source = error.source();
    }
    assert!(said.contains("password authentication failed"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let nonsense = Store::open(StoreOptions::postgres("postgres://a:hunter2@b:port/")).await;
    let nonsense = nonsense.unwrap_err();
    assert!(matches!(nonsense, StoreOpenError::InvalidUrl));
    assert!(!format!("{nonsense:?} {nonsense}").contains("hunter2"));
}

/// Creates a user who may use the existing tables. Returns the URL for this user.
async fn user(admin: &mut PgConnection, place: &Place, name: &str) -> String {
    let password = server::PASSWORD;
    for statement in [
        format!("CREATE ROLE {name} LOGIN PASSWORD '{password}'"),
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC".to_owned(),
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}"),
    ] {
        admin.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    let url = place.url.as_ref().unwrap();
    url.replace("//switchboard:", &format!("//{name}:"))
}

async fn a_user_without_the_right_to_create_tables_opens_an_existing_store(place: Place) {
    let mut admin = admin(&place).await;
    let url = user(&mut admin, &place, "early").await;
    match Store::open(StoreOptions::postgres(url)).await {
        Err(StoreOpenError::Database { source }) => {
            assert!(source.to_string().contains("permission denied"), "{source}");
        }
        other => panic!("{other:?}"),
    }
    place.open().await.close().await;
    let url = user(&mut admin, &place, "late").await;
    let store = Store::open(StoreOptions::postgres(url)).await.unwrap();
    suite::at_work(&store, "s", "r").await;
    store.append_events("r", &events(1..=2)).await.unwrap();
    store.close().await;
    let second = place.open().await;
    let taken = second.acquire_run(&me(), "r").await.unwrap();
    assert_eq!(taken.last_event, 2);
}

async fn a_session_is_not_deleted_while_its_run_is_acquired(place: Place) {
    let store = place.open().await;
    suite::at_work(&store, "s", "r").await;
    release(&store, "r", RunState::Waiting, 1, &[]).await;
    // Another process has found the run without an owner and is about to delete its session.
    let mut other = admin(&place).await;
    other.execute("BEGIN").await.unwrap();
    ok(other.execute("UPDATE sessions SET used_us = used_us WHERE id = 's'")).await;
    let taking = {
        let store = store.clone();
        tokio::spawn(async move { store.acquire_run(&me(), "r").await })
    };
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut admin = admin(&place).await;
    loop {
        let waiting: i64 = sqlx::query_scalar(waiting)
            .fetch_one(&mut admin)
            .await
            .unwrap();
        if waiting > 0 {
            break;
        }
        assert!(!taking.is_finished(), "{:?}", taking.await);
        // sleep: the server does not report that a connection begins to wait
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ok(other.execute("DELETE FROM sessions WHERE id = 's'; COMMIT")).await;
    fails!(taking.await.unwrap(), Error::NoSuchRun { .. });
}

async fn a_server_without_free_connections_is_waited_for(place: Place) {
    place.open().await.close().await;
    let mut admin = admin(&place).await;
    let url = user(&mut admin, &place, "crowded").await;
    let store = Store::open(StoreOptions::postgres(&url)).await.unwrap();
    store.create_session(&me(), &session("s")).await.unwrap();
    ok(admin.execute("ALTER ROLE crowded CONNECTION LIMIT 0")).await;
    let refused = PgConnection::connect(&url).await.unwrap_err();
    let code = refused.as_database_error().unwrap().code().unwrap();
    assert_eq!(code, "53300");
    ok(admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crowded'",
    ))
    .await;
    let mut creating = {
        let store = store.clone();
        tokio::spawn(async move { store.create_session(&me(), &session("t")).await })
    };
    // The connection is refused, and the store retries.
    let early = tokio::time::timeout(Duration::from_millis(300), &mut creating).await;
    assert!(early.is_err(), "{early:?}");
    ok(admin.execute("ALTER ROLE crowded CONNECTION LIMIT -1")).await;
    creating.await.unwrap().unwrap();
    assert_eq!(store.list_sessions(&me(), 9).await.unwrap().len(), 2);
}

async fn a_silent_server_is_given_up(place: Place) {
    let (mut line, url) = server::line_to(place.url.as_ref().unwrap());
    let patience = Duration::from_secs(3);
    let store = Store::open(StoreOptions::postgres(url).timeout(patience))
        .await
        .unwrap();
    suite::at_work(&store, "s", "r").await;
    assert_eq!(store.list_sessions(&me(), 9).await.unwrap().len(), 1);
    line.cut();
    let appending = {
        let store = store.clone();
        tokio::spawn(async move { store.append_events("r", &events(1..=1)).await })
    };
    // Without the time-out of the store, this read would wait for the time-out of the operating
    // system, which is a quarter of an hour.
    let reading =
        tokio::time::timeout(Duration::from_secs(30), store.list_sessions(&me(), 9)).await;
    fails!(reading.unwrap(), Error::Unavailable { .. });
    line.unheard().await;
    line.mend();
    // A write that was not performed is retried when the connection works again.
    appending.await.unwrap().unwrap();
    until(&store, "r", RunState::Running).await;
    let expected = events(1..=1);
    assert_eq!(store.load_events(&me(), "r", 0, 9).await.unwrap(), expected);
    store.close().await;
}

async fn a_server_is_checked_over_tls(server: &Server) {
    server.database("tls").await;
    let with_tls = server.with_tls("tls", "localhost");
    let (url, made) = with_tls.unwrap_or_else(|| panic!("the program `openssl` is not installed"));
    let at = |url: &str, mode: &str, root: Option<&std::path::Path>| {
        let root = root.map(|root| format!("&sslrootcert={}", root.display()));
        let url = format!("{url}?sslmode={mode}{}", root.unwrap_or_default());
        Store::open(StoreOptions::postgres(url))
    };
    let (right, wrong) = (Some(&*made.authority), Some(&*made.stranger));
    let (number, _) = server.with_tls("tls", "127.0.0.1").unwrap();
    let accepted = [
        at(&url, "require", None).await,
        at(&url, "require", right).await,
        at(&url, "verify-ca", right).await,
        at(&url, "verify-full", right).await,
        // The certificate has another host name. Only `verify-full` checks the name.
        at(&number, "verify-ca", right).await,
    ];
    for (at, store) in accepted.into_iter().enumerate() {
        let store = store.unwrap();
        let name = format!("s{at}");
        store.create_session(&me(), &session(&name)).await.unwrap();
        assert_eq!(store.list_sessions(&me(), 9).await.unwrap().len(), at + 1);
        let mut admin = PgConnection::connect(&server.url("tls", server::PASSWORD))
            .await
            .unwrap();
        let clear = "SELECT COUNT(*) FILTER (WHERE NOT s.ssl), COUNT(*)
            FROM pg_stat_ssl s JOIN pg_stat_activity a ON a.pid = s.pid
            WHERE a.datname = 'tls' AND a.application_name = 'switchboard'";
        let (clear, all): (i64, i64) = sqlx::query_as(clear).fetch_one(&mut admin).await.unwrap();
        assert!(
            clear == 0 && all >= 3,
            "{clear} of {all} connections are in clear"
        );
        store.close().await;
    }
    let refused = [
        at(&url, "verify-full", wrong).await,
        at(&url, "verify-ca", wrong).await,
        // With a root certificate in the URL, `require` also checks the certificate.
        at(&url, "require", wrong).await,
        // The certificate is not signed by a public authority.
        at(&url, "verify-full", None).await,
        at(&number, "verify-full", right).await,
    ];
    for store in refused {
        let Err(StoreOpenError::Database { source }) = store else {
            panic!("{store:?}");
        };
        let said = source.to_string();
        assert!(said.contains("certificate"), "{said}");
        assert!(!said.contains(server::PASSWORD), "{said}");
    }
}

async fn a_server_that_is_started_again_is_waited_for(server: &mut Server) {
    let url = server.database("started_again").await;
    let store = Store::open(StoreOptions::postgres(&url)).await.unwrap();
    suite::at_work(&store, "s", "r").await;
    server.stop();
    let appending = {
        let store = store.clone();
        tokio::spawn(async move { store.append_events("r", &events(1..=2)).await })
    };
    server.start_again();
    appending.await.unwrap().unwrap();
    // Opening the store does not interrupt the runs of another store whose lock is lost for a
    // moment.
    let second = Store::open(StoreOptions::postgres(&url)).await.unwrap();
    store.append_events("r", &events(3..=3)).await.unwrap();
    until(&second, "r", RunState::Running).await;
    assert_eq!(
        second.load_events(&me(), "r", 0, 9).await.unwrap(),
        events(1..=3)
    );
    release(&store, "r", RunState::Finished, 1, &[]).await;
    store.close().await;
    second.close().await;
}

async fn lost_connections_are_made_again(place: Place) {
    let (store, second) = (place.open().await, place.open().await);
    suite::at_work(&store, "s", "r").await;
    second.list_sessions(&me(), 9).await.unwrap();
    let mut admin = admin(&place).await;
    for round in 1..=3 {
        admin
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .await
            .unwrap();
        // No other instance treated this one as dead, so it still executes the run.
        ok(store.append_events("r", &events(round..=round))).await;
        store.save_snapshot("r", &snapshot()).await.unwrap();
        assert_eq!(
            second.load_events(&me(), "r", 0, 9).await.unwrap(),
            events(1..=round)
        );
        until(&second, "r", RunState::Running).await;
        fails!(second.acquire_run(&me(), "r").await, Error::Busy { .. });
    }
    release(&store, "r", RunState::Finished, 1, &says(&["done"])).await;
}

fn snapshot() -> switchboard_domain::RunSnapshot {
    switchboard_domain::RunSnapshot {
        state: "{}".into(),
        from: 0,
        messages: says(&["a"]),
    }
}

async fn until(store: &Store, run: &str, expected: RunState) {
    for _ in 0..2000 {
        if state(store, run).await == expected {
            return;
        }
        // sleep: the store acquires its lock again only when it detects the loss
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("run {run} is still {:?}", state(store, run).await);
}

async fn an_instance_that_was_treated_as_dead_detects_it(place: Place) {
    let (store, second) = (place.open().await, place.open().await);
    let mut admin = admin(&place).await;
    store.create_session(&me(), &session("s")).await.unwrap();
    ok(store.begin_run(&me(), &record("r", "s"), 0, &says(&["go"]))).await;
    // The instance acquires its lock again within seconds. Until then, another instance can treat
    // it as dead.
    let mut tries = 0;
    loop {
        admin
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            )
            .await
            .unwrap();
        tries += 1;
        match second.acquire_run(&me(), "r").await {
            Ok(_) => break,
            Err(Error::Busy { .. }) => assert!(tries < 1000, "{tries}"),
            Err(error) => panic!("{error:?}"),
        }
    }
    fails!(
        store.append_events("r", &events(1..=1)).await,
        Error::RunConflict { .. }
    );
    fails!(
        store.save_snapshot("r", &snapshot()).await,
        Error::RunConflict { .. }
    );
    let release = store
        .release_run("r", RunState::Finished, None, 1, &[])
        .await;
    fails!(release, Error::RunConflict { .. });
    // The instance continues with a new id.
    suite::at_work(&store, "t", "q").await;
    fails!(second.acquire_run(&me(), "q").await, Error::Busy { .. });
    second.append_events("r", &events(1..=1)).await.unwrap();
    let expected = events(1..=1);
    assert_eq!(store.load_events(&me(), "r", 0, 9).await.unwrap(), expected);
}

async fn two_schemas_of_one_database_are_two_stores(place: Place) {
    let mut admin = admin(&place).await;
    let mut stores = Vec::new();
    for name in ["north", "south"] {
        let create = AssertSqlSafe(format!("CREATE SCHEMA {name}"));
        admin.execute(create).await.unwrap();
        let url = place.url.as_ref().unwrap();
        let url = format!("{url}&options=-c%20search_path%3D{name}");
        stores.push(Store::open(StoreOptions::postgres(&url)).await.unwrap());
    }
    for store in &stores {
        suite::at_work(store, "s", "r").await;
    }
    ok(stores[0].release_run("r", RunState::Finished, None, 1, &[])).await;
    stores[0].delete_session(&me(), &id("s")).await.unwrap();
    assert_eq!(state(&stores[1], "r").await, RunState::Running);
}

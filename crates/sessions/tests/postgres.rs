//! Every behaviour on PostgreSQL, and what is PostgreSQL's own: on a real server, which this test starts.
//!
//! One test, so that there is one server also where each test is a process of its own. Without an installed server
//! nothing is tested, unless `SWITCHBOARD_REQUIRE_POSTGRES` is set, as `cargo xtask postgres` does.
#![cfg(unix)]
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
use suite::{Place, events, fails, id, me, record, says, session, state};
use switchboard_domain::{RunState, RunStore as _, SessionStore as _, SessionStoreError as Error};
use switchboard_sessions::{OpenError, Store, StoreOptions};

/// Several at once make up for the server's round trips.
const AT_ONCE: usize = 6;

macro_rules! own {
    ($($name:ident),+ $(,)?) => { [$((stringify!($name), |place| Box::pin($name(place)))),+] };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_behaves_the_same() {
    let Some(mut server) = Server::start() else {
        let is_required = std::env::var_os("SWITCHBOARD_REQUIRE_POSTGRES").is_some();
        assert!(
            !is_required,
            "no PostgreSQL server is installed. {}",
            server::WHERE
        );
        eprintln!(
            "NOT RUN: no PostgreSQL server is installed. {}",
            server::WHERE
        );
        return;
    };
    let own: [(&str, suite::Behaviour); 4] = own![
        a_wrong_password_is_not_shown,
        lost_connections_are_made_again,
        who_was_taken_for_dead_finds_out,
        two_schemas_of_one_database_are_two_stores,
    ];
    let all: Vec<_> = suite::ALL.iter().copied().chain(own).collect();
    a_server_that_is_started_again_is_waited_for(&mut server).await;
    let server = &server;
    let outcomes: Vec<_> = futures_util::stream::iter(all.into_iter().enumerate())
        .map(|(at, (name, behaviour))| async move {
            let url = server.database(&format!("behaviour_{at}")).await;
            let options = StoreOptions::postgres(&url);
            let url = Some(url);
            // A task of its own: a panic is its outcome.
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
    assert!(matches!(refused, OpenError::Database { .. }), "{refused:?}");
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
    assert!(matches!(nonsense, OpenError::Address));
    assert!(!format!("{nonsense:?} {nonsense}").contains("hunter2"));
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
    // Who opens the store meanwhile does not take the run from it.
    let second = Store::open(StoreOptions::postgres(&url)).await.unwrap();
    store.append_events("r", &events(3..=3)).await.unwrap();
    until(&second, "r", RunState::Running).await;
    assert_eq!(
        second.events(&me(), "r", 0, 9).await.unwrap(),
        events(1..=3)
    );
    store
        .release("r", RunState::Finished, None, 1, &[])
        .await
        .unwrap();
    store.close().await;
    second.close().await;
}

async fn lost_connections_are_made_again(place: Place) {
    let (store, second) = (place.open().await, place.open().await);
    suite::at_work(&store, "s", "r").await;
    second.list(&me(), 9).await.unwrap();
    let mut admin = admin(&place).await;
    for round in 1..=3 {
        admin
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .await
            .unwrap();
        // Nobody took it for dead, so it still has its run.
        store
            .append_events("r", &events(round..=round))
            .await
            .unwrap();
        store.save("r", &snapshot()).await.unwrap();
        assert_eq!(
            second.events(&me(), "r", 0, 9).await.unwrap(),
            events(1..=round)
        );
        until(&second, "r", RunState::Running).await;
        fails!(second.take(&me(), "r").await, Error::Busy { .. });
    }
    store
        .release("r", RunState::Finished, None, 1, &says(&["done"]))
        .await
        .unwrap();
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
        // sleep: the store takes its lock again when it finds out that it was lost
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("run {run} is still {:?}", state(store, run).await);
}

async fn who_was_taken_for_dead_finds_out(place: Place) {
    let (store, second) = (place.open().await, place.open().await);
    let mut admin = admin(&place).await;
    store.create(&me(), &session("s")).await.unwrap();
    store
        .begin(&me(), &record("r", "s"), 0, &says(&["go"]))
        .await
        .unwrap();
    // It takes the lock again within seconds; until then it can be taken for dead.
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
        match second.take(&me(), "r").await {
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
        store.save("r", &snapshot()).await,
        Error::RunConflict { .. }
    );
    let release = store.release("r", RunState::Finished, None, 1, &[]).await;
    fails!(release, Error::RunConflict { .. });
    // It goes on under another name.
    suite::at_work(&store, "t", "q").await;
    fails!(second.take(&me(), "q").await, Error::Busy { .. });
    second.append_events("r", &events(1..=1)).await.unwrap();
    assert_eq!(store.events(&me(), "r", 0, 9).await.unwrap(), events(1..=1));
}

async fn two_schemas_of_one_database_are_two_stores(place: Place) {
    let mut admin = admin(&place).await;
    let mut stores = Vec::new();
    for name in ["north", "south"] {
        let create = AssertSqlSafe(format!("CREATE SCHEMA {name}"));
        admin.execute(create).await.unwrap();
        let url = place.url.as_ref().unwrap();
        let url = format!("{url}&options=-c%20search_path%3D{name}");
        stores.push(Store::open(StoreOptions::at(&url)).await.unwrap());
    }
    for store in &stores {
        suite::at_work(store, "s", "r").await;
    }
    stores[0]
        .release("r", RunState::Finished, None, 1, &[])
        .await
        .unwrap();
    stores[0].delete(&me(), &id("s")).await.unwrap();
    assert_eq!(state(&stores[1], "r").await, RunState::Running);
}

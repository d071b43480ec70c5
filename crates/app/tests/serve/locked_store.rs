//! Another program holds the write lock of the session store.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};
use tokio::time::{Instant, timeout};

use crate::{
    serving::{Serving, no_servers, place, says},
    support::Place,
};

/// Maximum time of a request. It is long because test machines are busy.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);

fn config(drain_time: f64) -> Value {
    let mut config = no_servers();
    config["sessions"] = json!({"store": "sessions.db"});
    config["serve"] = json!({"drain_time": drain_time});
    config
}

/// A second connection that holds the lock until it is dropped.
fn lock(place: &Place) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(place.path().join("sessions.db")).unwrap();
    connection.busy_timeout(REQUEST_LIMIT).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    connection
}

#[tokio::test]
async fn a_locked_store_is_not_ready_and_writes_are_refused_soon() {
    let fake = FakeModel::start().await.unwrap();
    let place = place(&fake, &config(10.0));
    let server = Serving::start(&place, &[]).await;
    let locked = lock(&place);
    let question = json!({"message": "Hi"});
    let empty = json!({});
    let refused = async {
        tokio::join!(
            server.get("/readyz"),
            server.post("/sessions", &empty),
            server.post("/chat", &question),
        )
    };
    let (ready, session, chat) = timeout(REQUEST_LIMIT, refused).await.unwrap();
    assert_eq!(ready.problem(503), "unavailable");
    for refused in [session, chat] {
        assert_eq!(refused.problem(503), "unavailable");
        assert_eq!(refused.header("retry-after"), "5");
    }
    assert_eq!(
        fake.requests().len(),
        0,
        "no model is asked before the run is stored"
    );
    // Reading requests continue.
    server.get("/healthz").await.expect(200);
    let sessions = server.get("/sessions").await.expect(200);
    assert_eq!(sessions["sessions"], json!([]), "nothing was stored");
    drop(locked);
    fake.answer(says("Hello"));
    server.post("/chat", &question).await.expect(200);
    let ready = async { while server.get("/readyz").await.status != 200 {} };
    timeout(REQUEST_LIMIT, ready).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_shutdown_ends_in_time_although_the_store_is_locked() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(Answer::openai_chat([Say::text("too "), Say::text("late")]).gate_before(2, &gate));
    let place = place(&fake, &config(2.0));
    let server = Serving::start(&place, &[]).await;
    let (run, _) = server.begin(json!({"message": "Hi"})).await;
    let mut reader = server.follow_run(&run).await;
    reader.until("text_delta").await;
    let locked = lock(&place);
    let began = Instant::now();
    server.terminate();
    let (code, said) = timeout(Duration::from_mins(1), server.ended())
        .await
        .unwrap();
    let took = began.elapsed();
    assert_eq!(code, 0, "{said}");
    // The server waits two seconds. The test allows more time, because machines may be busy.
    assert!(took < Duration::from_secs(6), "{took:?}: {said}");
    drop(locked);
    let server = Serving::start(&place, &[]).await;
    assert_eq!(server.run(&run).await["run"]["state"], "interrupted");
}

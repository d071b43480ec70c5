//! Graceful shutdown of the server.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};

use crate::{
    serving::{Serving, call_left, kinds, no_servers, place, says, with_server},
    slow_server::SlowServer,
};

#[tokio::test]
async fn running_work_may_finish_within_the_drain_time() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(Answer::openai_chat([Say::text("in "), Say::text("time")]).gate_before(2, &gate));
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let session = server.post("/sessions", &json!({})).await.expect(201)["id"].clone();
    let path = format!("/sessions/{}/events", session.as_str().unwrap());
    let mut idle = server.follow(&path).await;
    let (run, other) = server.begin(json!({"message": "Hi"})).await;
    let mut reader = server.follow_run(&run).await;
    let mut session = server.follow(&format!("/sessions/{other}/events")).await;
    reader.until("text_delta").await;
    let foreground = server.posting("/chat", &json!({"message": "Too late"}));
    server.terminate();
    // Streams of sessions end. Streams of runs continue.
    assert_eq!(idle.next().await, None);
    // New connections are refused. An open connection gets an error.
    if let Ok(refused) = foreground.send().await {
        let refused = crate::serving::read(refused).await;
        assert_eq!(refused.problem(503), "unavailable");
    }
    gate.open();
    let rest = reader.rest().await;
    assert_eq!(rest.last().unwrap().data["report"]["answer"], "in time");
    let followed = session.rest().await;
    assert_eq!(kinds(&followed).last(), Some(&"run_finished"));
    let (code, said) = server.ended().await;
    assert_eq!(code, 0, "{said}");
}

#[tokio::test]
async fn unfinished_runs_can_be_resumed_after_the_drain_time() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(Answer::openai_chat([Say::text("too "), Say::text("late")]).gate_before(2, &gate));
    let mut config = no_servers();
    config["serve"] = json!({"drain_time": 0.1});
    let place = place(&fake, &config);
    let server = Serving::start(&place, &[]).await;
    let (run, _) = server.begin(json!({"message": "Hi"})).await;
    let mut reader = server.follow_run(&run).await;
    reader.until("text_delta").await;
    let asked = server
        .posting("/chat", &json!({"message": "And me?"}))
        .send();
    fake.answer(says("no").held_by(&gate));
    let asked = tokio::spawn(asked);
    fake.request(1).await;
    server.terminate();
    reader.rest().await;
    let refused = crate::serving::read(asked.await.unwrap().unwrap()).await;
    assert_eq!(refused.problem(503), "unavailable");
    let other = refused.json()["run_id"].as_str().unwrap().to_owned();
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains(&format!("/runs/{other}/continue"))
    );
    let (code, said) = server.ended().await;
    assert_eq!(code, 0, "{said}");

    let server = Serving::start(&place, &[]).await;
    assert_eq!(server.run(&run).await["run"]["state"], "interrupted");
    fake.answer(says("here now"));
    let mut reader = server.follow_run(&run).await;
    server
        .post(&format!("/runs/{run}/continue"), &json!({}))
        .await
        .expect(202);
    let events = reader.rest().await;
    assert_eq!(events.last().unwrap().data["report"]["answer"], "here now");
}

#[tokio::test]
async fn waiting_runs_are_stored_immediately() {
    let slow = SlowServer::start().await;
    let fake = FakeModel::start().await.unwrap();
    fake.answer(call_left());
    let mut config = with_server(&slow);
    config["approve"] = json!("ask");
    let place = place(&fake, &config);
    let server = Serving::start(&place, &[]).await;
    let asked = server
        .post("/chat", &json!({"message": "Look."}))
        .await
        .expect(202);
    let run = asked["run_id"].as_str().unwrap();
    server.terminate();
    let (code, said) = server.ended().await;
    assert_eq!(code, 0, "{said}");
    let server = Serving::start(&place, &[]).await;
    let shown = server.run(run).await;
    assert_eq!(shown["run"]["state"], "waiting");
    assert_eq!(shown["waiting"][0]["tool_use"]["id"], "a");
}

#[tokio::test]
async fn a_second_signal_ends_the_server_immediately() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(says("never").held_by(&Gate::new()));
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let (run, _) = server.begin(json!({"message": "Hi"})).await;
    fake.request(0).await;
    let mut reader = server.follow_run(&run).await;
    server.terminate();
    // The server has received the first signal when it refuses connections.
    while tokio::net::TcpStream::connect(server.base.trim_start_matches("http://"))
        .await
        .is_ok()
    {
        tokio::task::yield_now().await;
    }
    server.terminate();
    reader.rest().await;
    let (code, said) = server.ended().await;
    assert_eq!(code, 0, "{said}");
}

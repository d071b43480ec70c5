//! The process is killed during a run and restarted.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{Serving, call_left, ids, kinds, place, says, with_server},
    slow_server::SlowServer,
};

#[tokio::test]
async fn a_run_resumes_after_a_kill_and_repeats_no_finished_call() {
    let mut slow = SlowServer::start().await;
    slow.answer(1);
    let fake = FakeModel::start().await.unwrap();
    fake.answer(call_left());
    fake.answer(Answer::openai_chat([Say::call(
        "b",
        "slow__right",
        json!({"far": 2}),
    )]));
    let place = place(&fake, &with_server(&slow));
    let server = Serving::start(&place, &[]).await;
    let (run, session) = server.begin(json!({"message": "Look."})).await;
    let mut reader = server.follow_run(&run).await;
    let seen = reader.until("tool_finished").await;
    assert_eq!(slow.called().await["name"], "left");
    assert_eq!(slow.called().await["name"], "right");
    server.kill().await;

    let server = Serving::start(&place, &[]).await;
    let shown = server.session(&session).await;
    assert_eq!(shown["messages"][0]["parts"][0]["text"], "Look.");
    assert_eq!(shown["runs"][0]["state"], "interrupted", "{shown}");
    let run_path = format!("/runs/{run}");
    assert_eq!(server.run(&run).await["run"]["state"], "interrupted");
    // A reconnected reader gets the same events again, and the following ones.
    let last = seen.last().unwrap().id;
    let mut again = server.follow(&format!("{run_path}/events")).await;
    let before = again.until("tool_finished").await;
    assert_eq!(before, seen);
    let mut reader = server
        .follow(&format!("{run_path}/events?after={last}"))
        .await;
    let busy = json!({"message": "Hi", "session_id": session});
    let busy = server.post("/chat", &busy).await;
    assert_eq!(busy.problem(409), "session-busy");
    assert!(
        busy.json()["detail"]
            .as_str()
            .unwrap()
            .contains(&format!("{run_path}/continue"))
    );

    fake.answer(says("Seen."));
    let going = server
        .post(&format!("{run_path}/continue"), &json!({}))
        .await
        .expect(202);
    assert_eq!(going["state"], "running");
    let rest = reader.rest().await;
    assert_eq!(
        ids(&rest),
        (last + 1..=rest.last().unwrap().id).collect::<Vec<_>>()
    );
    assert!(kinds(&rest).contains(&"run_started"), "{rest:#?}");
    let report = &rest.last().unwrap().data["report"];
    assert_eq!(report["answer"], "Seen.");
    assert_eq!(report["outcome"], "completed");
    // The first result is unchanged. The outcome of the second call is unknown: its tool does not
    // declare that it may run twice.
    let calls = &report["tool_calls"];
    assert_eq!(
        calls[0]["result"]["content"][0]["text"], "left is done",
        "{calls}"
    );
    assert_eq!(calls[1]["failure"], "interrupted", "{calls}");
    let more = tokio::time::timeout(std::time::Duration::from_millis(50), slow.called()).await;
    assert!(more.is_err(), "no call was made again");
    let shown = server.session(&session).await;
    assert_eq!(shown["runs"][0]["state"], "finished");
    let messages = shown["messages"].as_array().unwrap();
    assert_eq!(
        messages.last().unwrap()["parts"][0]["text"],
        "Seen.",
        "{shown}"
    );
}

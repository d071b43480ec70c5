//! Approval decisions over HTTP.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{Serving, place, says, with_server},
    slow_server::SlowServer,
    support::{Place, texts},
};

/// Starts a model that calls both tools in one response and then answers.
async fn asks_for_both() -> FakeModel {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([
        Say::call("a", "slow__left", json!({"far": 1})),
        Say::call("b", "slow__right", json!({"far": 2})),
    ]));
    fake.answer(says("Done."));
    fake
}

fn config(slow: &SlowServer, serve: Value) -> Value {
    let mut config = with_server(slow);
    config["approve"] = json!("ask");
    config["serve"] = serve;
    config
}

fn waiting(run: &Value) -> Vec<&str> {
    texts(&run["waiting"], "/tool_use/id")
}

#[tokio::test]
async fn decisions_arrive_in_any_order_with_edits_and_reasons() {
    let mut slow = SlowServer::start().await;
    slow.answer(2);
    let fake = asks_for_both().await;
    let server = Serving::start_owned(place(&fake, &config(&slow, json!({}))), &[]).await;
    // A foreground request does not wait for the decision: the response states that the run waits.
    let answered = server.post("/chat", &json!({"message": "Look."})).await;
    let accepted = answered.expect(202);
    let run = accepted["run_id"].as_str().unwrap().to_owned();
    assert_eq!(accepted["state"], "waiting");
    assert_eq!(answered.header("location"), format!("/runs/{run}"));
    let shown = server.run(&run).await;
    assert_eq!(waiting(&shown), ["a", "b"]);
    assert_eq!(
        shown["waiting"][1]["origin"],
        json!({"server": "slow", "tool": "right"})
    );
    assert_eq!(
        shown["waiting"][1]["tool_use"]["input"],
        json!({"object": {"far": 2}})
    );

    let decide = |call: &str, word: Value| {
        let path = format!("/runs/{run}/approvals/{call}");
        let server = &server;
        async move { server.post(&path, &word).await }
    };
    for (call, word, kind, status) in [
        ("c", json!({"decision": "allow"}), "conflict", 409),
        ("b", json!({"decision": "perhaps"}), "invalid", 422),
        (
            "b",
            json!({"decision": "allow", "reason": "why"}),
            "invalid",
            422,
        ),
        (
            "b",
            json!({"decision": "deny", "input": {}}),
            "invalid",
            422,
        ),
        (
            "b",
            json!({"decision": "allow", "input": 7}),
            "invalid",
            422,
        ),
    ] {
        assert_eq!(decide(call, word).await.problem(status), kind, "{call}");
    }
    // The second call is decided first, with another input.
    decide("b", json!({"decision": "allow", "input": {"far": 20}}))
        .await
        .expect(202);
    let refused = decide("b", json!({"decision": "allow"})).await;
    assert_eq!(refused.problem(409), "conflict");
    assert_eq!(waiting(&server.run(&run).await), ["a"]);
    decide(
        "a",
        json!({"decision": "deny", "reason": "not to the left"}),
    )
    .await
    .expect(202);
    let report = server.report(&run).await;
    assert_eq!(report["answer"], "Done.");
    assert_eq!(report["tool_calls"][0]["failure"], "denied");
    let of_second = &report["tool_calls"][1];
    // After a denied call, the server executes a later call of the same response only if the call
    // was approved before the denial.
    assert_eq!(of_second["input"], json!({"far": 20}), "{report}");
    let read = fake.request(1).await.json().to_string();
    assert!(read.contains("not to the left"), "{read}");
    if of_second["failure"].is_null() {
        assert_eq!(slow.called().await["arguments"], json!({"far": 20}));
    }
    let refused = decide("a", json!({"decision": "allow"})).await;
    assert_eq!(refused.problem(409), "conflict");
    let refused = server
        .post("/runs/none/approvals/a", &json!({"decision": "allow"}))
        .await;
    assert_eq!(refused.problem(404), "not-found");
}

#[tokio::test]
async fn a_run_without_decision_is_stored_and_resumed_by_the_next_one() {
    let mut slow = SlowServer::start().await;
    slow.answer(2);
    let fake = asks_for_both().await;
    let place = place(
        &fake,
        &config(&slow, json!({"approval_time": 0.05, "keep_alive": 0.2})),
    );
    let server = Serving::start(&place, &[]).await;
    let (run, session) = server.begin(json!({"message": "Look."})).await;
    let mut reader = server.follow_run(&run).await;
    reader.until("run_parked").await;
    let shown = server.run(&run).await;
    assert_eq!(shown["run"]["state"], "waiting");
    assert_eq!(waiting(&shown), ["a", "b"]);
    // Until the decision, a new question in the session fails, and the error contains the id of the
    // waiting run.
    let asked = json!({"message": "Hi", "session_id": session});
    let busy = server.post("/chat", &asked).await;
    assert_eq!(busy.problem(409), "session-busy");
    assert_eq!(busy.json()["run_id"], run.as_str());
    assert!(
        busy.json()["detail"].as_str().unwrap().contains("/cancel"),
        "{busy:?}"
    );

    // The run still waits after a restart of the server.
    server.kill().await;
    let server = Serving::start(&place, &[]).await;
    let shown = server.run(&run).await;
    assert_eq!(shown["run"]["state"], "waiting");
    assert_eq!(waiting(&shown), ["a", "b"]);
    let mut reader = server.follow(&format!("/sessions/{session}/events")).await;
    reader.until("run_parked").await;
    let allow = json!({"decision": "allow"});
    for call in ["b", "a"] {
        server
            .post(&format!("/runs/{run}/approvals/{call}"), &allow)
            .await
            .expect(202);
        // The server may store the run again between the two decisions, so both must resume it.
    }
    let rest = reader.until("run_finished").await;
    let report = &rest.last().unwrap().data["report"];
    assert_eq!(report["answer"], "Done.", "{report}");
    let mut called = [
        slow.called().await["name"].clone(),
        slow.called().await["name"].clone(),
    ];
    called.sort_by_key(ToString::to_string);
    assert_eq!(called, ["left", "right"]);
}

#[tokio::test]
async fn a_stored_run_is_cancelled() {
    let slow = SlowServer::start().await;
    let fake = asks_for_both().await;
    let place = place(&fake, &config(&slow, json!({"approval_time": 0.05})));
    let server = Serving::start(&place, &[]).await;
    let (run, session) = server.begin(json!({"message": "Look."})).await;
    let mut reader = server.follow_run(&run).await;
    reader.until("run_parked").await;
    let ended = server.cancel(&run).await;
    assert_eq!(ended["state"], "finished");
    let rest = reader.rest().await;
    assert_eq!(rest.last().unwrap().data["report"]["outcome"], "cancelled");
    // A second cancellation changes nothing, and the run cannot be continued any more.
    server.cancel(&run).await;
    let refused = server
        .post(&format!("/runs/{run}/continue"), &json!({}))
        .await;
    assert_eq!(refused.problem(409), "conflict");
    // Every call has a result, and the session accepts a new question.
    let shown = server.session(&session).await;
    assert_eq!(
        shown["messages"][2]["parts"].as_array().unwrap().len(),
        2,
        "{shown}"
    );
    let asked = json!({"message": "Hi", "session_id": session});
    server.post("/chat", &asked).await.expect(200);
}

#[tokio::test]
async fn a_run_is_cancelled_during_a_call() {
    let mut slow = SlowServer::start().await;
    let fake = asks_for_both().await;
    let server = Serving::start_owned(place(&fake, &with_server(&slow)), &[]).await;
    let (run, _) = server.begin(json!({"message": "Look."})).await;
    slow.called().await;
    slow.called().await;
    let ended = server.cancel(&run).await;
    assert_eq!(ended["state"], "finished");
    slow.cancelled().await;
    slow.cancelled().await;
    let report = server.run(&run).await["report"].clone();
    assert_eq!(report["outcome"], "cancelled", "{report}");
}

#[tokio::test]
async fn a_client_can_only_make_approvals_stricter() {
    let slow = SlowServer::start().await;
    slow.answer(2);
    let fake = asks_for_both().await;
    let server = Serving::start_owned(place(&fake, &config(&slow, json!({}))), &[]).await;
    let asked = json!({"message": "Look.", "parameters": {"approve": "all"}});
    let accepted = server.post("/chat", &asked).await.expect(202);
    assert_eq!(accepted["state"], "waiting", "it is configured to ask");
    let fake = asks_for_both().await;
    let server = Serving::start_owned(place(&fake, &with_server(&slow)), &[]).await;
    let asked = json!({"message": "Look.", "parameters": {"approve": "none"}});
    let report = server.post("/chat", &asked).await.expect(200);
    assert_eq!(report["tool_calls"][0]["failure"], "denied", "{report}");
}

#[tokio::test]
async fn a_call_of_the_planner_waits_for_a_decision() {
    let ticket = "Create a low priority ticket for customer 7 with subject \"test\"";
    let asked = json!({"message": ticket, "model": "offline/planner"});
    let server = Serving::start_owned(Place::new(), &[]).await;
    let accepted = server.post("/chat", &asked).await.expect(202);
    assert_eq!(accepted["state"], "waiting");
    let run = accepted["run_id"].as_str().unwrap();
    let shown = server.run(run).await;
    let call = waiting(&shown)[0].to_owned();
    let path = format!("/runs/{run}/approvals/{call}");
    let decision = json!({"decision": "allow"});
    server.post(&path, &decision).await.expect(202);
    let report = server.report(run).await;
    assert_eq!(report["tool_calls"][0]["tool"], "create_support_ticket");
    assert_eq!(report["tool_calls"][0]["is_error"], false, "{report}");

    // With `--approve all`, the server executes the call without a decision.
    let server = Serving::start_owned(Place::new(), &["--approve", "all"]).await;
    let report = server.post("/chat", &asked).await.expect(200);
    assert_eq!(report["tool_calls"][0]["is_error"], false, "{report}");
}

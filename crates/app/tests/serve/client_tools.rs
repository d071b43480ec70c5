//! Clients with their own tools and session ids, and clients that send only a part of a
//! conversation.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{ANN, Answered, Serving, call_left, no_servers, place, says, with_server},
    slow_server::SlowServer,
};

fn asked(messages: &Value) -> Value {
    json!({
        "model": "default", "messages": messages,
        "tools": [{"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}],
    })
}

#[tokio::test]
async fn a_client_tool_accepts_no_decision_of_another_call() {
    let fake = FakeModel::start().await.unwrap();
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let question = json!({"role": "user", "content": "Look."});
    for round in 0..2 {
        fake.answer(Answer::openai_chat([Say::call(
            "call_0",
            "mine",
            json!({}),
        )]));
        let messages = json!([question]);
        let answered = server.post("/v1/chat/completions", &asked(&messages)).await;
        let said = answered.expect(200)["choices"][0]["message"].clone();
        let call = &said["tool_calls"][0]["id"];
        assert!(call.is_string(), "round {round}: {said}");
        let run = answered.header("x-switchboard-run-id");
        let shown = server.run(run).await;
        let waiting = shown["waiting"][0]["tool_use"]["id"].as_str().unwrap();
        for scope in ["once", "session", "always"] {
            for decision in ["allow", "deny"] {
                let word = json!({"decision": decision, "scope": scope});
                let path = format!("/runs/{run}/approvals/{waiting}");
                let refused = server.post(&path, &word).await;
                assert_eq!(refused.problem(409), "conflict", "{word}");
                let detail = refused.json()["detail"].to_string();
                assert!(detail.contains("its next request"), "{detail}");
            }
        }
        // The call still waits for the client's result, and the client can send it in a later
        // request.
        fake.answer(says("Seen."));
        let result = json!({"role": "tool", "tool_call_id": call, "content": "a house"});
        let messages = json!([question, said, result]);
        let answered = server.post("/v1/chat/completions", &asked(&messages)).await;
        let answer = &answered.expect(200)["choices"][0]["message"]["content"];
        assert_eq!(answer, "Seen.");
        let read = fake.request(2 * round + 1).await.json().to_string();
        assert!(read.contains("a house"), "{read}");
    }
}

#[tokio::test]
async fn a_decision_for_a_session_ends_with_the_session() {
    let mut slow = SlowServer::start().await;
    slow.answer(3);
    let fake = FakeModel::start().await.unwrap();
    let mut config = with_server(&slow);
    config["approve"] = json!("ask");
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let said = |text: &str| {
        let parts = json!([{"type": "text", "text": text}]);
        json!({"id": "chat-1", "messages": [{"id": text, "role": "user", "parts": parts}]})
    };
    for text in ["one", "two"] {
        // A tool is asked about once in a session. It is asked about again in the next session,
        // although both sessions have a call with the same id.
        fake.answer(call_left());
        let answered = server.post("/api/chat", &said(text)).await;
        let run = answered.header("x-switchboard-run-id").to_owned();
        assert!(!run.is_empty(), "{text}: {answered:?}");
        let shown = server.run(&run).await;
        assert_eq!(
            shown["waiting"][0]["tool_use"]["id"], "a",
            "{text}: {shown}"
        );
        fake.answer(says("Done."));
        let word = json!({"decision": "allow", "scope": "session"});
        let path = format!("/runs/{run}/approvals/a");
        server.post(&path, &word).await.expect(202);
        assert_eq!(slow.called().await["name"], "left");
        server.follow_run(&run).await.rest().await;
        if text == "one" {
            fake.answer(call_left());
            fake.answer(says("Done."));
            let again = server.post("/api/chat", &said("again")).await;
            assert!(again.text.contains("Done."), "{again:?}");
            assert_eq!(slow.called().await["name"], "left");
        }
        assert_eq!(server.delete("/sessions/chat-1").await.status, 204);
    }
}

/// Returns the first text of each message of the session.
async fn said(server: &Serving) -> Vec<String> {
    let shown = server.get("/sessions/chat").await.expect(200);
    let messages = shown["messages"].as_array().unwrap().iter();
    let texts = messages.map(|it| it["parts"][0]["text"].as_str().unwrap().to_owned());
    texts.collect()
}

/// Sends a request of the AI SDK with these user messages.
async fn posted(server: &Serving, trigger: &str, texts: &[&str]) -> Answered {
    let messages: Vec<_> = (0..)
        .zip(texts)
        .map(|(place, text): (u32, _)| {
            let parts = json!([{"type": "text", "text": text}]);
            json!({"id": place.to_string(), "role": "user", "parts": parts})
        })
        .collect();
    let body = json!({"id": "chat", "messages": messages, "trigger": trigger});
    server.post("/api/chat", &body).await
}

#[tokio::test]
async fn regeneration_replaces_only_an_identified_answer() {
    let fake = FakeModel::start().await.unwrap();
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let mut answers = 0;
    let mut ask = async |trigger: &str, texts: &[&str]| {
        answers += 1;
        let answer = format!("Answer {answers}.");
        fake.answer(Answer::openai_chat([Say::text(&answer)]));
        let answered = posted(&server, trigger, texts).await;
        assert!(answered.text.contains(&answer), "{texts:?}: {answered:?}");
        answer
    };
    for text in ["Yes.", "Important.", "Yes.", "More.", "Yes."] {
        ask("submit-message", &[text]).await;
    }
    let all = said(&server).await;
    // The client sends only its last two messages. Only one position of the session has them: the
    // end.
    let answer = ask("regenerate-message", &["More.", "Yes."]).await;
    let now = said(&server).await;
    assert_eq!(now[..9], all[..9]);
    assert_eq!(now[9..], [answer]);
    // The client sends a message that occurs several times in the session, so the request is
    // ambiguous.
    let before = said(&server).await;
    let refused = posted(&server, "regenerate-message", &["Yes."]).await;
    assert_eq!(refused.problem(409), "conflict");
    let refused = refused.text;
    assert!(refused.contains("send all messages"), "{refused}");
    assert_eq!(said(&server).await, before);
    // The client sends a message that occurs once in the session. The message before it differs
    // from the session, which is not an error.
    let answer = ask("regenerate-message", &["Edited.", "More."]).await;
    let now = said(&server).await;
    assert_eq!(now[..7], all[..7]);
    assert_eq!(now[7..], [answer]);
    // The client sends all user messages from the beginning, so the position is unambiguous.
    let answer = ask("regenerate-message", &["Yes.", "Important.", "Yes."]).await;
    let now = said(&server).await;
    assert_eq!(now[..5], all[..5]);
    assert_eq!(now[5..], [answer]);
}

#[tokio::test]
async fn a_client_tool_is_available_after_an_approval() {
    let mut slow = SlowServer::start().await;
    slow.answer(1);
    let fake = FakeModel::start().await.unwrap();
    fake.answer(call_left());
    fake.answer(Answer::openai_chat([Say::call("b", "mine", json!({}))]));
    fake.answer(says("It rains."));
    let mut config = with_server(&slow);
    config["approve"] = json!("ask");
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let question = json!({"id": "1", "role": "user", "content": "?"});
    let body = |messages: Value, resume: Value| {
        json!({
            "threadId": "t", "runId": "r", "messages": messages, "resume": resume,
            "tools": [{"name": "mine", "description": "Mine.", "parameters": {"type": "object"}}],
        })
    };
    let last = |answered: &Answered| -> Value {
        let mut lines = answered.text.lines().rev();
        let last = lines.find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str(last).unwrap()
    };
    let first = body(json!([question]), json!([]));
    let asked = last(&server.post("/ag-ui", &first).await);
    let interrupt = &asked["outcome"]["interrupts"][0]["id"];
    assert!(interrupt.is_string(), "{asked}");
    // The server's own tool waits for an approval, so a result from the client is refused. The run
    // still waits afterwards.
    let result = |call: &str| json!({"id": "3", "role": "tool", "toolCallId": call, "content": "17 degrees"});
    let early = body(json!([question, result("b")]), json!([]));
    assert_eq!(server.post("/ag-ui", &early).await.problem(409), "conflict");

    let word =
        json!([{"interruptId": interrupt, "status": "resolved", "payload": {"approved": true}}]);
    let resumed = last(&server.post("/ag-ui", &body(json!([question]), word)).await);
    assert_eq!(slow.called().await["name"], "left");
    let pending = &resumed["outcome"]["pendingToolCallIds"];
    assert_eq!(*pending, json!(["b"]), "{resumed}");

    let given = body(json!([question, result("b")]), json!([]));
    let answered = server.post("/ag-ui", &given).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(last(&answered)["result"]["answer"], "It rains.");
    let read = fake.request(2).await.json().to_string();
    assert!(read.contains("17 degrees"), "{read}");
}

#[tokio::test]
async fn an_ag_ui_client_receives_the_session_of_its_thread() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(says("Done."));
    let mut config = no_servers();
    config["serve"] = json!({"tokens": [{"token": ANN, "user": "ann"}]});
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let server = server.with_token(ANN);
    let messages = json!([{"id": "1", "role": "user", "content": "?"}]);
    let body = json!({"threadId": "th1", "runId": "r", "messages": messages});
    let answered = server.post("/ag-ui", &body).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    let mut lines = answered.text.lines();
    let first = lines.find_map(|line| line.strip_prefix("data: ")).unwrap();
    let begun: Value = serde_json::from_str(first).unwrap();
    assert_eq!(begun["threadId"], "th1");
    let session = &begun["metadata"]["switchboard"]["sessionId"];
    assert_eq!(*session, answered.header("x-switchboard-session-id"));
    let path = format!("/sessions/{}", session.as_str().unwrap());
    let stored = server.get(&path).await.expect(200);
    assert_eq!(
        stored["messages"].as_array().map(Vec::len),
        Some(2),
        "{stored}"
    );
}

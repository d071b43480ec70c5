//! Words about calls that the client makes itself, and words that end with their session.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{Serving, no_servers, place, with_server},
    slow_server::SlowServer,
};

fn asked(messages: &Value) -> Value {
    json!({
        "model": "default", "messages": messages,
        "tools": [{"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}],
    })
}

#[tokio::test]
async fn a_call_of_the_clients_own_tool_takes_nobody_elses_word() {
    let fake = FakeModel::start().await.unwrap();
    let server = Serving::alone(place(&fake, &no_servers()), &[]).await;
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
        // It still waits for its client, now and in every later run.
        fake.answer(Answer::openai_chat([Say::text("Seen.")]));
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
async fn a_word_for_a_session_ends_with_it() {
    let mut slow = SlowServer::start().await;
    slow.answer(3);
    let fake = FakeModel::start().await.unwrap();
    let mut config = with_server(&slow);
    config["approve"] = json!("ask");
    let server = Serving::alone(place(&fake, &config), &[]).await;
    let said = |text: &str| {
        let parts = json!([{"type": "text", "text": text}]);
        json!({"id": "chat-1", "messages": [{"id": text, "role": "user", "parts": parts}]})
    };
    let call = || Answer::openai_chat([Say::call("a", "slow__left", json!({"far": 1}))]);
    let done = || Answer::openai_chat([Say::text("Done.")]);
    for text in ["one", "two"] {
        // Asked about once in a session, and again in the next one, though that has the same id.
        fake.answer(call());
        let answered = server.post("/api/chat", &said(text)).await;
        let run = answered.header("x-switchboard-run-id").to_owned();
        assert!(!run.is_empty(), "{text}: {answered:?}");
        let shown = server.run(&run).await;
        assert_eq!(
            shown["waiting"][0]["tool_use"]["id"], "a",
            "{text}: {shown}"
        );
        fake.answer(done());
        let word = json!({"decision": "allow", "scope": "session"});
        let path = format!("/runs/{run}/approvals/a");
        server.post(&path, &word).await.expect(202);
        assert_eq!(slow.called().await["name"], "left");
        server
            .follow(&format!("/runs/{run}/events"))
            .await
            .rest()
            .await;
        if text == "one" {
            fake.answer(call());
            fake.answer(done());
            let again = server.post("/api/chat", &said("again")).await;
            assert!(again.text.contains("Done."), "{again:?}");
            assert_eq!(slow.called().await["name"], "left");
        }
        assert_eq!(server.delete("/sessions/chat-1").await.status, 204);
    }
}

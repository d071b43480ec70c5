//! Elicitation during a tool call, over HTTP.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    asking_server,
    serving::{Serving, place, says},
};

async fn asked() -> (FakeModel, Serving, String) {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::call(
        "a",
        "shop__order",
        json!({}),
    )]));
    fake.answer(says("Done."));
    let server = Serving::start_owned(place(&fake, &asking_server::config()), &[]).await;
    // A foreground request returns the waiting run.
    let accepted = server
        .post("/chat", &json!({"message": "Order boots."}))
        .await
        .expect(202);
    assert_eq!(accepted["state"], "waiting");
    let run = accepted["run_id"].as_str().unwrap().to_owned();
    (fake, server, run)
}

#[tokio::test]
async fn an_elicitation_is_shown_and_answered() {
    let (_fake, server, run) = asked().await;
    let shown = server.run(&run).await;
    assert_eq!(shown["waiting"], json!([]));
    let question = &shown["questions"][0];
    assert_eq!(question["question"]["server"], "shop", "{shown}");
    assert_eq!(question["question"]["message"], "Which boots?");
    assert_eq!(question["question"]["schema"]["required"], json!(["size"]));
    let id = question["id"].as_str().unwrap();
    let mut reader = server.follow_run(&run).await;
    let asked = reader.until("question_asked").await;
    assert_eq!(asked.last().unwrap().data["id"], id);

    let path = format!("/runs/{run}/questions/{id}");
    for wrong in [
        json!({"action": "perhaps"}),
        json!({"action": "decline", "content": {}}),
        json!({}),
        // An invalid answer is refused immediately, and the elicitation stays open.
        json!({"action": "accept", "content": {"size": 9}}),
        json!({"action": "accept", "content": {"size": "x"}}),
        json!({"action": "accept"}),
    ] {
        let answered = server.post(&path, &wrong).await;
        assert_eq!(answered.problem(422), "invalid", "{wrong}");
        if wrong["action"] == "accept" {
            assert_eq!(answered.json()["field"], "content", "{wrong}");
            let detail = answered.json()["detail"].to_string();
            assert!(detail.contains("size"), "{detail}");
        }
    }
    assert_eq!(server.run(&run).await["questions"][0]["id"], id);
    let other = server
        .post(
            &format!("/runs/{run}/questions/x"),
            &json!({"action": "cancel"}),
        )
        .await;
    assert_eq!(other.problem(409), "conflict");
    let answer = json!({"action": "accept", "content": {"size": 42}});
    server.post(&path, &answer).await.expect(202);
    assert_eq!(server.post(&path, &answer).await.problem(409), "conflict");
    let rest = reader.rest().await;
    let answered = rest
        .iter()
        .find(|event| event.kind == "question_answered")
        .unwrap();
    assert_eq!(answered.data["action"], "accept");
    let report = &rest.last().unwrap().data["report"];
    let received = report["tool_calls"][0]["result"]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(received.trim_start_matches("got ")).unwrap(),
        answer,
        "{report}"
    );
    assert_eq!(server.run(&run).await["questions"], json!([]));
}

#[tokio::test]
async fn an_elicitation_is_declined_or_withdrawn_with_its_run() {
    let (_fake, server, run) = asked().await;
    let shown = server.run(&run).await;
    let id = shown["questions"][0]["id"].as_str().unwrap();
    server
        .post(
            &format!("/runs/{run}/questions/{id}"),
            &json!({"action": "decline"}),
        )
        .await
        .expect(202);
    let report = server.report(&run).await;
    let received = report["tool_calls"][0]["result"]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert!(received.contains("decline"), "{report}");

    let (_fake, server, run) = asked().await;
    let shown = server.run(&run).await;
    let id = shown["questions"][0]["id"].as_str().unwrap();
    let ended = server.cancel(&run).await;
    assert_eq!(ended["state"], "finished");
    let late = server
        .post(
            &format!("/runs/{run}/questions/{id}"),
            &json!({"action": "decline"}),
        )
        .await;
    assert_eq!(late.problem(409), "conflict");
}

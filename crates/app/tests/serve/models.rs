//! Model names as other programs write them, on every route.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{Answered, Serving, no_servers},
    support::Place,
};

/// The model name in the example of the source system.
const DATED: &str = "claude-sonnet-4-5-20250929";

/// Starts a server with only an Anthropic key, for the fake model.
async fn serving(fake: &FakeModel) -> Serving {
    let place = Place::new()
        .with_variable("ANTHROPIC_API_KEY", "sk-secret")
        .with_variable("ANTHROPIC_BASE_URL", &fake.base_url())
        .with_file("switchboard.json", &no_servers().to_string());
    Serving::start_owned(place, &[]).await
}

/// Sends a question to every route with a model.
async fn ask_all(server: &Serving, model: &str) -> Vec<(&'static str, Answered)> {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let part = json!({"type": "text", "text": "Hi"});
    let ui = json!({"id": "m1", "role": "user", "parts": [part]});
    let ag_ui = json!({"id": "m1", "role": "user", "content": "Hi"});
    let bodies: [(&str, Value); 5] = [
        ("/chat", json!({"message": "Hi", "model": model})),
        (
            "/v1/chat/completions",
            json!({"model": model, "messages": messages}),
        ),
        (
            "/v1/messages",
            json!({"model": model, "max_tokens": 64, "messages": messages}),
        ),
        (
            "/api/chat",
            json!({"id": "c1", "model": model, "messages": [ui]}),
        ),
        (
            "/ag-ui",
            json!({
                "threadId": "t1", "runId": "r1", "messages": [ag_ui], "tools": [], "context": [],
                "state": {}, "forwardedProps": {"model": model},
            }),
        ),
    ];
    let mut answers = Vec::new();
    for (path, body) in bodies {
        answers.push((path, server.post(path, &body).await));
    }
    answers
}

#[tokio::test]
async fn every_route_accepts_a_model_name_with_its_provider() {
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(|_, _| Answer::anthropic([Say::text("Hello.")]));
    let server = serving(&fake).await;
    for (path, answered) in ask_all(&server, DATED).await {
        assert_eq!(answered.status, 200, "{path}: {answered:?}");
        assert!(answered.text.contains("Hello."), "{path}: {answered:?}");
    }
    let sent: Vec<Value> = fake
        .requests()
        .iter()
        .map(|it| it.json()["model"].clone())
        .collect();
    assert_eq!(sent, vec![json!(DATED); 5]);
}

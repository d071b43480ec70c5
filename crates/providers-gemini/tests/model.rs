//! Tests of the model against a server on the loopback interface.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::json;
use switchboard_domain::{ChatModel, FinishReason, ModelErrorKind, ToolChoice};
use switchboard_providers_common::TransportConfig;
use switchboard_providers_gemini::{GeminiClient, GeminiConfig, GeminiModel};
use switchboard_testkit::{
    fake::{Answer, FakeModel},
    loopback::{failure, question},
};

async fn server() -> FakeModel {
    FakeModel::start().await.expect("a free port")
}

fn config(fake: &FakeModel) -> GeminiConfig {
    GeminiConfig {
        transport: TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        },
        ..GeminiConfig::for_compatible_server("acme", fake.base_url()).with_api_key("secret-key-1")
    }
}

fn model(fake: &FakeModel) -> GeminiModel {
    GeminiModel::new(config(fake), "gemini-3.8-flash").expect("a valid configuration")
}

fn stored(name: &str) -> Answer {
    Answer::transcript(&format!("gemini/{name}")).expect("it is stored")
}

#[tokio::test]
async fn the_request_says_who_asks_and_for_what() {
    let fake = server().await;
    fake.otherwise(|_, _| Answer::transcript("gemini/text.sse").expect("it is stored"));
    let request = question().with_tool_choice(ToolChoice::Required);
    model(&fake).complete(&request).await.unwrap();
    let sent = fake.request(0).await;
    assert_eq!(
        (sent.method(), sent.path(), sent.query()),
        (
            "POST",
            "/v1beta/models/gemini-3.8-flash:streamGenerateContent",
            Some("alt=sse")
        )
    );
    for (name, value) in [
        ("x-goog-api-key", Some("secret-key-1")),
        ("accept", Some("text/event-stream")),
        ("content-type", Some("application/json")),
        ("authorization", None),
    ] {
        assert_eq!(sent.header(name), value, "{name}");
    }
    assert_eq!(
        sent.json()["toolConfig"]["functionCallingConfig"]["mode"],
        "ANY"
    );
    assert_eq!(sent.json().get("model"), None);

    // A proxy with another path and without a key, and a tuned model.
    let proxy = GeminiConfig {
        api_key: None,
        base_url: format!("{}/gemini/v1/", fake.base_url()),
        ..config(&fake)
    };
    let tuned = GeminiModel::new(proxy, "tunedModels/mine").unwrap();
    tuned.complete(&question()).await.unwrap();
    let sent = fake.request(1).await;
    let expected = "/gemini/v1/tunedModels/mine:streamGenerateContent";
    assert_eq!(sent.path(), expected);
    assert_eq!(sent.header("x-goog-api-key"), None);

    let astray = GeminiModel::new(config(&fake), "../files").unwrap();
    let error = failure(&astray, &question()).await.unwrap();
    let field = Some("model".to_owned());
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_asked_for_whole_answers() {
    let fake = server().await;
    fake.answer(stored("call.json"));
    let config = GeminiConfig {
        streaming: false,
        ..config(&fake)
    };
    let model = GeminiModel::new(config, "gemini-3.8-flash").unwrap();
    let answer = model.complete(&question()).await.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolUse);
    let sent = fake.request(0).await;
    let expected = ("/v1beta/models/gemini-3.8-flash:generateContent", None);
    assert_eq!((sent.path(), sent.query()), expected);
    assert_eq!(sent.header("accept"), Some("application/json"));
}

#[tokio::test]
async fn the_servers_models_are_listed_page_by_page() {
    let fake = server().await;
    let client = GeminiClient::new(config(&fake)).unwrap();
    let entry = |name: &str| {
        json!({"name": format!("models/{name}"), "inputTokenLimit": 8192, "outputTokenLimit": 1024,
               "supportedGenerationMethods": ["generateContent"]})
    };
    fake.answer(Answer::json(
        200,
        &json!({"models": [entry("a")], "nextPageToken": "p/2"}),
    ));
    fake.answer(Answer::json(200, &json!({"models": [entry("b")]})));
    let models = client.list_models().await.unwrap();
    let told: Vec<_> = models
        .iter()
        .map(|it| (it.name.as_str(), it.context_window))
        .collect();
    assert_eq!(told, [("a", Some(8192)), ("b", Some(8192))]);
    let sent = fake.request(0).await;
    assert_eq!((sent.method(), sent.path()), ("GET", "/v1beta/models"));
    assert_eq!(sent.header("x-goog-api-key"), Some("secret-key-1"));
    let query = fake.request(1).await;
    assert_eq!(query.query(), Some("pageSize=1000&pageToken=p%2F2"));
    assert_eq!(client.model("b").id().to_string(), "acme/b");

    let refused = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid."}});
    fake.answer(Answer::json(400, &refused));
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    fake.answer(Answer::json(200, &json!({"hello": "there"})));
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    // The server always announces a next page of the model list.
    fake.otherwise(|number, _| {
        let next = format!("p{number}");
        Answer::json(200, &json!({"models": [], "nextPageToken": next}))
    });
    assert_eq!(client.list_models().await.unwrap(), []);
}

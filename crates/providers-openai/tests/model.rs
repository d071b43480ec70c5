//! Tests of the models against a server on the loopback interface.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::json;
use switchboard_domain::{ChatModel, ModelErrorKind, ToolChoice};
use switchboard_providers_common::TransportConfig;
use switchboard_providers_openai::{OpenAiChatModel, OpenAiClient, OpenAiConfig, Profile};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Say},
    loopback::question,
};

async fn server() -> FakeModel {
    FakeModel::start().await.expect("a free port")
}

fn config(fake: &FakeModel) -> OpenAiConfig {
    let base_url = format!("{}/v1", fake.base_url());
    OpenAiConfig {
        transport: TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        },
        ..OpenAiConfig::for_compatible_server("acme", base_url).with_api_key("sk-secret-1")
    }
}

#[tokio::test]
async fn the_request_has_the_key_and_the_headers() {
    let fake = server().await;
    fake.otherwise(|_, _| Answer::openai_chat([Say::text("Hi.")]));
    let openai = OpenAiConfig {
        organization: Some("org-1".into()),
        project: Some("proj_1".into()),
        profile: Profile::openai(),
        ..config(&fake)
    };
    let model = OpenAiChatModel::new(openai, "gpt-6-luna").unwrap();
    let request = question().with_tool_choice(ToolChoice::None);
    let answer = model.complete(&request).await.unwrap();
    assert_eq!(answer.message.text(), "Hi.");

    let sent = fake.request(0).await;
    let expected = ("POST", "/v1/chat/completions");
    assert_eq!((sent.method(), sent.path()), expected);
    for (name, value) in [
        ("authorization", "Bearer sk-secret-1"),
        ("openai-organization", "org-1"),
        ("openai-project", "proj_1"),
        ("accept", "text/event-stream"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(sent.header(name), Some(value), "{name}");
    }
    let body = sent.json();
    assert_eq!(body["model"], "gpt-6-luna");
    assert_eq!(body["stream"], true);
    assert_eq!(body["tool_choice"], "none");

    // Without a key, no authorization header is sent.
    let own = OpenAiConfig {
        api_key: None,
        ..config(&fake)
    };
    let model = OpenAiChatModel::new(own, "m").unwrap();
    model.complete(&question()).await.unwrap();
    let sent = fake.request(1).await;
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(sent.header("openai-organization"), None);

    // Azure gets the key in another header, and the API version as the query of the URL.
    let azure = OpenAiConfig {
        base_url: format!("{}/openai/deployments/d?api-version=1", fake.base_url()),
        ..config(&fake)
    };
    let model = OpenAiChatModel::new(azure.with_profile(Profile::azure()), "d").unwrap();
    model.complete(&question()).await.unwrap();
    let sent = fake.request(2).await;
    assert_eq!(sent.path(), "/openai/deployments/d/chat/completions");
    assert_eq!(sent.query(), Some("api-version=1"));
    assert_eq!(sent.header("api-key"), Some("sk-secret-1"));
    assert_eq!(sent.header("authorization"), None);
}

#[tokio::test]
async fn the_servers_models_are_listed() {
    let fake = server().await;
    let client = OpenAiClient::new(config(&fake)).unwrap();
    let listed = json!({"object": "list", "data": [
        {"id": "acme-1", "object": "model", "owned_by": "acme", "max_model_len": 8192},
        {"id": "acme-2", "object": "model"},
    ]});
    fake.answer(Answer::json(200, &listed));
    let models = client.list_models().await.unwrap();
    let told: Vec<_> = models
        .iter()
        .map(|it| (it.name.as_str(), it.context_window))
        .collect();
    assert_eq!(told, [("acme-1", Some(8192)), ("acme-2", None)]);
    let sent = fake.request(0).await;
    assert_eq!((sent.method(), sent.path()), ("GET", "/v1/models"));
    assert_eq!(sent.header("authorization"), Some("Bearer sk-secret-1"));
    assert_eq!(client.model("acme-2").id().to_string(), "acme/acme-2");

    // Together sends the list of models without an object around it.
    let bare = json!([{"id": "a", "context_length": 5}, {"id": ""}, {"object": "model"}, 3]);
    fake.answer(Answer::json(200, &bare));
    let models = client.list_models().await.unwrap();
    assert_eq!((models.len(), models[0].context_window), (1, Some(5)));

    let refused = json!({"error": {"message": "No.", "code": "invalid_api_key"}});
    fake.answer(Answer::json(401, &refused));
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    fake.answer(Answer::json(200, &json!({"hello": "there"})));
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
}

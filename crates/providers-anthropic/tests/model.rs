//! Tests of the model against a server on the loopback interface.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ModelErrorKind, ModelId, ToolChoice, ToolChoiceOutcome, WarningKind,
};
use switchboard_providers_anthropic::{AnthropicClient, AnthropicConfig, AnthropicModel};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Say},
    loopback::{failure, question},
};

async fn server() -> FakeModel {
    FakeModel::start().await.expect("a free port")
}

fn config(fake: &FakeModel) -> AnthropicConfig {
    AnthropicConfig {
        transport: TransportConfig {
            system_proxy: false,
            retry: RetryPolicy {
                min_delay: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
            ..TransportConfig::default()
        },
        ..AnthropicConfig::for_compatible_server("acme", fake.base_url())
            .with_api_key("sk-secret-1")
    }
}

fn stored(name: &str) -> Answer {
    Answer::transcript(&format!("anthropic/{name}")).expect("it is stored")
}

fn error(status: u16, class: &str, message: &str) -> Answer {
    let body = json!({"type": "error", "error": {"type": class, "message": message},
                      "request_id": "req_body"});
    Answer::json(status, &body)
}

#[tokio::test]
async fn the_request_has_its_headers_and_fields() {
    let fake = server().await;
    fake.otherwise(|_, _| Answer::anthropic([Say::text("Hi.")]));
    let config = config(&fake).with_beta("context-1").with_beta("files-2");
    let model = AnthropicModel::new(config.with_header("x-team", "weather"), "claude-opus-5-5");
    let model = model.unwrap();
    assert_eq!(*model.id(), ModelId::new("acme", "claude-opus-5-5"));
    assert_eq!(model.capabilities().forced_tool_choice, Some(false));
    let request = question().with_tool_choice(ToolChoice::Required);
    let answer = model.complete(&request).await.unwrap();
    // The answer reports that the tool choice was not enforced.
    assert!(matches!(
        answer.tool_choice,
        ToolChoiceOutcome::Relaxed { .. }
    ));
    assert_eq!(answer.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
    let sent = fake.request(0).await;
    assert_eq!((sent.method(), sent.path()), ("POST", "/v1/messages"));
    for (name, value) in [
        ("x-api-key", "sk-secret-1"),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "context-1,files-2"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("x-team", "weather"),
    ] {
        assert_eq!(sent.header(name), Some(value), "{name}");
    }
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(sent.json()["stream"], true);
    assert_eq!(sent.json()["model"], "claude-opus-5-5");

    let mut token = self::config(&fake).with_auth_token("token-1");
    token.options.api_version = "2026-10-21".into();
    let model = AnthropicModel::new(token, "claude-opus-5-5").unwrap();
    model.complete(&question()).await.unwrap();
    let sent = fake.request(1).await;
    assert_eq!(sent.header("authorization"), Some("Bearer token-1"));
    assert_eq!(sent.header("x-api-key"), None);
    assert_eq!(sent.header("anthropic-version"), Some("2026-10-21"));
    assert_eq!(sent.header("anthropic-beta"), None);
}

#[tokio::test]
async fn case_13_an_unexpectedly_refused_choice_is_relaxed_once() {
    let fake = server().await;
    let refused = || {
        let message = "tool_choice forces tool use is not compatible with this model";
        error(400, "invalid_request_error", message)
    };
    fake.answer(refused());
    fake.answer(stored("text.sse"));
    let model = AnthropicModel::new(config(&fake), "claude-fable-5").unwrap();
    let request = question().with_tool_choice(ToolChoice::Required);
    let answer = model.complete(&request).await.unwrap();
    assert!(matches!(
        answer.tool_choice,
        ToolChoiceOutcome::Relaxed { .. }
    ));
    let choice = |sent: &Value| sent["tool_choice"]["type"].clone();
    assert_eq!(choice(fake.request(0).await.json()), "any");
    assert_eq!(choice(fake.request(1).await.json()), "auto");

    // If the request forces no tool call, the error is returned.
    fake.answer(refused());
    let failed = failure(&model, &question()).await.unwrap();
    assert!(matches!(failed.kind, ModelErrorKind::InvalidRequest { .. }));
    assert_eq!(fake.requests().len(), 3);
}

#[tokio::test]
async fn the_list_of_models_is_read() {
    let fake = server().await;
    fake.answer(Answer::json(
        200,
        &json!({"data": [
            {"type": "model", "id": "claude-opus-5-5", "display_name": "Claude Opus 5.5",
             "max_input_tokens": 1_000_000, "max_tokens": 128_000},
            {"id": "own-1"},
            {"display_name": "no id"},
        ], "has_more": false}),
    ));
    let client = AnthropicClient::new(config(&fake)).unwrap();
    let models = client.list_models().await.unwrap();
    let names: Vec<_> = models.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["claude-opus-5-5", "own-1"]);
    assert_eq!(models[0].context_window, Some(1_000_000));
    assert_eq!(models[0].max_output_tokens, Some(128_000));
    assert_eq!(models[0].title.as_deref(), Some("Claude Opus 5.5"));
    let sent = fake.request(0).await;
    assert_eq!((sent.method(), sent.path()), ("GET", "/v1/models"));
    assert_eq!(sent.query(), Some("limit=1000"));
    fake.answer(Answer::json(200, &json!({"models": []})));
    let odd = client.list_models().await.unwrap_err();
    assert_eq!(odd.kind, ModelErrorKind::Protocol);
}

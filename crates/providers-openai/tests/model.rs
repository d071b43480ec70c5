//! The model against a server on loopback.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelError, ModelErrorKind, ModelEvent,
    ToolChoice, ToolDefinition, ToolResult,
};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_openai::{OpenAiChatModel, OpenAiClient, OpenAiConfig, Profile};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate, Say},
    transcripts,
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
        ..OpenAiConfig::compatible("acme", base_url).with_api_key("sk-secret-1")
    }
}

fn model(fake: &FakeModel) -> OpenAiChatModel {
    OpenAiChatModel::new(config(fake), "acme-1").expect("a valid configuration")
}

/// Returns a model without retries.
fn model_without_retry(fake: &FakeModel) -> OpenAiChatModel {
    let mut config = config(fake);
    config.transport.retry = RetryPolicy::never();
    OpenAiChatModel::new(config, "acme-1").expect("a valid configuration")
}

fn question() -> ChatRequest {
    let object = || json!({"type": "object", "properties": {}});
    ChatRequest::new([Message::user(
        "Weather in Hamburg, and which cities are there?",
    )])
    .with_tools([
        ToolDefinition::new("get_weather", "", object()),
        ToolDefinition::new("list_cities", "", object()),
    ])
}

/// Returns a stored stream that pauses after this many frames.
fn in_two(transcript: &str, frames: usize, gate: &Gate) -> Answer {
    let stored = transcripts::read(&format!("openai-chat/{transcript}.sse")).expect("it is stored");
    let text = String::from_utf8(stored.bytes).expect("it is text");
    let held = text
        .split_inclusive("\n\n")
        .take(frames)
        .map(str::len)
        .sum();
    let (before, after) = text.split_at(held);
    Answer::new(200)
        .header("content-type", "text/event-stream")
        .piece(before.to_owned())
        .gate(gate)
        .piece(after.to_owned())
}

async fn failure(model: &OpenAiChatModel) -> ModelError {
    match model.stream(&question()).await {
        Ok(_) => unreachable!("the server refused"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn two_parallel_calls_are_streamed_and_their_results_sent_back() {
    let fake = server().await;
    let gate = Gate::new();
    fake.answer(in_two("two-calls", 4, &gate));
    fake.answer(Answer::openai_chat([Say::text("12 degrees.")]));
    let model = model(&fake);
    let mut request = question();

    // Events before the pause arrive before the rest is sent.
    let mut stream = model.stream(&request).await.unwrap();
    let mut arguments = String::new();
    let mut held = true;
    while let Some(event) = stream.next().await {
        if let ModelEvent::ToolInputDelta { index: 0, json } = event.unwrap() {
            if std::mem::take(&mut held) {
                assert_eq!(json, r#"{"ci"#);
                gate.reached().await;
                gate.open();
            }
            arguments.push_str(&json);
        }
    }
    assert_eq!(arguments, r#"{"city":"Hamburg"}"#);

    let text = model.complete(&request).await.unwrap();
    assert_eq!(text.message.text(), "12 degrees.");

    fake.answer(Answer::transcript("openai-chat/two-calls.sse").unwrap());
    let answer = model.complete(&request).await.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolUse);
    let calls: Vec<_> = answer.message.tool_uses().cloned().collect();
    let named: Vec<_> = calls
        .iter()
        .map(|call| (call.id.as_str(), call.name.as_str()))
        .collect();
    assert_eq!(
        named,
        [("call_a", "get_weather"), ("call_b", "list_cities")]
    );
    assert_eq!(
        calls[0].input.as_object().unwrap(),
        json!({"city": "Hamburg"}).as_object().unwrap()
    );

    let results = calls
        .iter()
        .map(|call| ToolResult::text(&call.id, &call.name, "x"));
    let results = Message::tool_results(results);
    request
        .messages
        .extend([answer.message.into(), results.into()]);
    fake.answer(Answer::openai_chat([Say::text("Done.")]));
    let last = model.complete(&request).await.unwrap();
    assert_eq!(
        (last.message.text().as_str(), last.finish),
        ("Done.", FinishReason::Stop)
    );
    let sent = fake.request(3).await;
    let messages = sent.json()["messages"].as_array().unwrap();
    let ids: Vec<_> = messages
        .iter()
        .map(|it| it["tool_call_id"].clone())
        .collect();
    assert_eq!(
        ids,
        [Value::Null, Value::Null, json!("call_a"), json!("call_b")]
    );
    assert_eq!(messages[1]["tool_calls"][1]["id"], "call_b");
}

#[tokio::test]
async fn signed_reasoning_is_sent_back_unchanged() {
    let fake = server().await;
    let openrouter = config(&fake).with_profile(Profile::openrouter());
    let model = OpenAiChatModel::new(openrouter, "anthropic/claude-sonnet-5-5").unwrap();
    fake.answer(Answer::transcript("openai-chat/reasoning-details.sse").unwrap());
    let mut request = question();
    let answer = model.complete(&request).await.unwrap();
    let call = answer.message.tool_uses().next().unwrap().clone();
    let result = ToolResult::text(&call.id, &call.name, "12 degrees");
    let results = Message::tool_results([result]);
    request
        .messages
        .extend([answer.message.into(), results.into()]);
    fake.answer(Answer::openai_chat([Say::text("12 degrees.")]));
    let last = model.complete(&request).await.unwrap();
    assert!(last.warnings.is_empty(), "{:?}", last.warnings);
    let sent = fake.request(1).await;
    let message = &sent.json()["messages"][1];
    assert_eq!(message["content"], "I look it up.");
    assert_eq!(
        message["reasoning_details"],
        json!([{
            "type": "reasoning.text",
            "text": "The weather is asked for.",
            "signature": "c2lnbmF0dXJl",
            "format": "anthropic-claude-v1",
            "index": 0,
        }])
    );
    assert_eq!(message.get("reasoning"), None);
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
    assert_eq!(
        (sent.method(), sent.path()),
        ("POST", "/v1/chat/completions")
    );
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

    // A local server without a key gets no header.
    let own = OpenAiConfig {
        api_key: None,
        ..config(&fake)
    };
    let model = OpenAiChatModel::new(own, "m").unwrap();
    model.complete(&question()).await.unwrap();
    let sent = fake.request(1).await;
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(sent.header("openai-organization"), None);

    // Azure: another header, and the API version after the path.
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
async fn a_response_that_is_not_an_answer_is_an_error() {
    let fake = server().await;
    let model = model(&fake);
    let page = Answer::new(200).header("content-type", "text/html; charset=utf-8");
    fake.answer(page.piece("<html>Welcome"));
    let error = failure(&model).await;
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(error.message().contains("text/html"), "{error}");

    for (transcript, expected) in [
        ("eof-early", ModelErrorKind::Interrupted),
        ("done-without-finish", ModelErrorKind::Interrupted),
        (
            "error-mid-stream",
            ModelErrorKind::Overloaded { retry_after: None },
        ),
    ] {
        let path = format!("openai-chat/{transcript}.sse");
        fake.answer(Answer::transcript(&path).unwrap());
        let error = model.complete(&question()).await.unwrap_err();
        assert_eq!(error.kind, expected, "{transcript}");
    }

    // The connection breaks.
    let half = r#"data: {"id":"c","choices":[{"delta":{"content":"Half"}}]}"#;
    let answer = Answer::new(200).header("content-type", "text/event-stream");
    fake.answer(answer.piece(format!("{half}\n\n")).break_off());
    let mut stream = model.stream(&question()).await.unwrap();
    let mut last = None;
    while let Some(item) = stream.next().await {
        last = Some(item);
    }
    let error = last.unwrap().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
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

    let refused = json!({"error": {"message": "No.", "code": "invalid_api_key"}});
    fake.answer(Answer::json(401, &refused));
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    fake.answer(Answer::json(200, &json!({"hello": "there"})));
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
}

#[tokio::test]
async fn the_key_is_never_shown() {
    let fake = server().await;
    let model = model(&fake);
    assert!(!format!("{model:?}").contains("sk-secret"), "{model:?}");
    let body = json!({"error": {"message": "unknown key sk-secret-1", "code": "invalid_api_key"}});
    fake.answer(Answer::json(401, &body));
    let error = failure(&model).await;
    for shown in [format!("{error}"), format!("{error:?}")] {
        assert!(!shown.contains("sk-secret"), "{shown}");
    }
}

/// Gateways answer 200 and then repeat the error of their upstream, which may contain the key.
#[tokio::test]
async fn a_key_in_the_servers_answer_is_redacted() {
    const KEY: &str = "sk-secret-1";
    let fake = server().await;
    let model = model_without_retry(&fake);
    for body in [
        Answer::sse(format!(
            "data: {{\"error\":{{\"message\":\"bad key {KEY}\"}}}}\n\n"
        )),
        Answer::sse(format!(
            "data: {}\n\nevent: error\ndata: {{\"error\":{{\"message\":\"bad key {KEY}\"}}}}\n\n",
            json!({"id": "x", "choices": [{"index": 0, "delta": {"content": "hi"}}]})
        )),
        Answer::sse(format!("data: not json {KEY}\n\n")),
        Answer::json(200, &json!({ "oops": KEY })),
        Answer::json(
            200,
            &json!({"error": {"message": format!("bad key {KEY}")}}),
        ),
    ] {
        let shown = format!("{body:?}");
        fake.answer(body);
        let error = model.complete(&question()).await.unwrap_err();
        let mut told = format!("{error:?}");
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            told = format!("{told} {error}");
            cause = error.source();
        }
        assert!(
            !told.contains(KEY) && told.contains("[redacted]"),
            "{told}: {shown}"
        );
        assert_eq!(error.status(), Some(200), "{error}");
    }
}

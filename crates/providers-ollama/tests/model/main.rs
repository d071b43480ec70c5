//! Tests of the model against a server on the loopback interface.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelErrorKind, ModelEvent, ReasoningEffort,
    ToolChoice, ToolChoiceOutcome, ToolResult, WarningKind,
};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_ollama::{
    OllamaClient, OllamaConfig, OllamaModel, described_model, fetch_model_description,
    fetch_version, is_missing_endpoint, is_reachable,
};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate},
    loopback::{failure, held_after, question},
    transcripts,
};
use tokio::net::TcpListener;

mod text_calls;

async fn server() -> FakeModel {
    FakeModel::start().await.expect("a free port")
}

fn config(fake: &FakeModel) -> OllamaConfig {
    let config = OllamaConfig::for_host(&fake.base_url()).expect("an address");
    OllamaConfig {
        transport: TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        },
        ..config.with_api_key("secret-1")
    }
}

fn client(fake: &FakeModel) -> OllamaClient {
    OllamaClient::new(config(fake)).expect("a valid configuration")
}

fn model(fake: &FakeModel) -> OllamaModel {
    client(fake).model("qwen3:8b")
}

/// Returns a model without retries.
fn model_without_retry(fake: &FakeModel) -> OllamaModel {
    let mut config = config(fake);
    config.transport.retry = RetryPolicy::never_retry();
    OllamaModel::new(config, "qwen3:8b").expect("a valid configuration")
}

fn transcript(stem: &str) -> Answer {
    Answer::transcript(&format!("ollama/{stem}")).expect("it is stored")
}

fn refusal(status: u16, message: &str) -> Answer {
    Answer::json(status, &json!({ "error": message }))
}

#[tokio::test]
async fn thinking_and_calls_are_streamed_and_sent_back_with_results() {
    let fake = server().await;
    let gate = Gate::new();
    fake.answer(held_after("ollama/thinking-then-call.ndjson", 2, &gate).unwrap());
    let model = model(&fake);
    let mut request = question();

    // The first events arrive before the server sends the rest of the answer.
    let mut stream = model.stream(&request).await.unwrap();
    let mut thought = String::new();
    while let Some(event) = stream.next().await {
        if let ModelEvent::ReasoningDelta { text, .. } = event.unwrap() {
            thought.push_str(&text);
            if thought.ends_with("weather.") {
                gate.reached().await;
                gate.open();
            }
        }
    }
    assert_eq!(thought, "I need the weather.");

    fake.answer(transcript("thinking-then-call.ndjson"));
    let answer = model.complete(&request).await.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolUse);
    assert_eq!(answer.usage.input_tokens, Some(172));
    let call = answer.message.tool_uses().next().unwrap().clone();
    let result = ToolResult::text(&call.id, &call.name, "12 degrees");
    let results = Message::from_tool_results([result]);
    request
        .messages
        .extend([answer.message.into(), results.into()]);
    fake.answer(transcript("text.ndjson"));
    let last = model.complete(&request).await.unwrap();
    assert_eq!(last.finish, FinishReason::Stop);
    assert!(last.warnings.is_empty(), "{:?}", last.warnings);
    let sent = fake.request(2).await;
    assert_eq!(
        sent.json()["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "thinking": "I need the weather.", "tool_calls": [
                {"function": {"index": 0, "name": "get_weather", "arguments": {"city": "Hamburg", "days": 3}}},
            ]}),
            json!({"role": "tool", "content": "12 degrees", "tool_name": "get_weather"}),
        ]
    );
}

#[tokio::test]
async fn a_forced_choice_is_sent_as_format_and_its_answer_is_a_call() {
    let fake = server().await;
    let model = model(&fake);
    let choice = ToolChoice::Only(vec!["get_weather".into()]);
    let request = question().with_tool_choice(choice);
    fake.answer(transcript("form-call.ndjson"));
    let answer = model.complete(&request).await.unwrap();
    assert!(matches!(
        answer.tool_choice,
        ToolChoiceOutcome::Emulated { .. }
    ));
    assert_eq!(answer.finish, FinishReason::ToolUse);
    let names: Vec<_> = answer.message.tool_uses().map(|it| &it.name).collect();
    assert_eq!(names, ["get_weather"]);
    let sent = fake.request(0).await;
    let body = sent.json();
    assert_eq!(body.get("tools"), None);
    let expected = json!(["get_weather"]);
    assert_eq!(body["format"]["properties"]["name"]["enum"], expected);
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body["think"], false);

    // The server ignores `format`, so the answer is text.
    fake.answer(transcript("form-ignored.ndjson"));
    let answer = model.complete(&request).await.unwrap();
    assert_eq!(answer.message.text(), "I would rather not.");
    assert_eq!(answer.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
}

#[tokio::test]
async fn the_request_has_the_key_and_the_headers() {
    let fake = server().await;
    fake.otherwise(|_, _| transcript("text.ndjson"));
    let answer = model(&fake).complete(&question()).await.unwrap();
    assert_eq!(answer.model.as_deref(), Some("qwen3:8b"));
    let sent = fake.request(0).await;
    assert_eq!((sent.method(), sent.path()), ("POST", "/api/chat"));
    for (name, value) in [
        ("authorization", "Bearer secret-1"),
        ("accept", "application/x-ndjson"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(sent.header(name), Some(value), "{name}");
    }
    assert_eq!(sent.json()["stream"], true);

    // Without a key, no authorization header is sent. The path of the address is kept.
    let own = OllamaConfig {
        api_key: None,
        base_url: format!("{}/ollama", fake.base_url()),
        ..config(&fake)
    };
    let model = OllamaModel::new(own, "m").unwrap();
    model.complete(&question()).await.unwrap();
    let sent = fake.request(1).await;
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(sent.path(), "/ollama/api/chat");
}

#[tokio::test]
async fn a_refused_reasoning_effort_is_sent_in_simpler_forms() {
    let fake = server().await;
    let model = model(&fake);
    let request = ChatRequest {
        reasoning: Some(ReasoningEffort::High),
        ..question()
    };
    fake.answer(refusal(
        400,
        "think value \"high\" is not supported for this model",
    ));
    fake.answer(refusal(400, "\"qwen3:8b\" does not support thinking"));
    fake.answer(transcript("text.ndjson"));
    let answer = model.complete(&request).await.unwrap();
    let said: Vec<Value> = fake
        .requests()
        .iter()
        .map(|it| it.json()["think"].clone())
        .collect();
    assert_eq!(said, [json!("high"), json!(true), Value::Null]);
    let kinds: Vec<_> = answer.warnings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [WarningKind::OptionDropped]);

    // The request has no reasoning setting to omit, so the error is returned.
    fake.answer(refusal(400, "\"qwen3:8b\" does not support thinking"));
    let error = failure(&model, &question()).await.unwrap();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
    assert_eq!(fake.requests().len(), 4);
}

#[tokio::test]
async fn an_unreachable_server_has_a_hint_to_start_it() {
    // The port is closed, because the listener is dropped.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut config = OllamaConfig::for_host(&address.to_string()).unwrap();
    config.transport.retry = RetryPolicy::never_retry();
    let client = OllamaClient::new(config).unwrap();
    let error = failure(&client.model("qwen3:8b"), &question())
        .await
        .unwrap();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    let expected = format!("is Ollama running at http://{address}?");
    assert!(error.message().starts_with(&expected), "{error}");
    assert!(error.message().contains("ollama serve"), "{error}");
    assert!(!is_reachable(&client).await);
    let error = client.list_models().await.unwrap_err();
    assert!(error.message().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn an_interrupted_connection_has_no_hint_to_start_the_server() {
    let fake = server().await;
    let mut config = config(&fake);
    config.transport.retry = RetryPolicy::never_retry();
    let model = OllamaModel::new(config, "qwen3:8b").unwrap();
    fake.answer(Answer::new(200).break_off());
    let error = failure(&model, &question()).await.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(!error.message().contains("is Ollama running"), "{error}");
}

#[tokio::test]
async fn a_server_is_reachable_if_it_reports_its_version() {
    let fake = server().await;
    let client = client(&fake);
    fake.answer(Answer::json(200, &json!({"version": "0.20.1"})));
    assert!(is_reachable(&client).await);
    let sent = fake.request(0).await;
    assert_eq!((sent.method(), sent.path()), ("GET", "/api/version"));
    fake.answer(Answer::json(200, &json!({"version": "0.20.1"})));
    assert_eq!(fetch_version(&client).await.unwrap(), "0.20.1");
    // The server at the address is not Ollama.
    fake.answer(Answer::json(200, &json!({"hello": "there"})));
    assert!(!is_reachable(&client).await);
    fake.answer(Answer::new(503));
    assert!(!is_reachable(&client).await);
    // No request was repeated.
    assert_eq!(fake.requests().len(), 4);
}

#[tokio::test]
async fn the_servers_models_are_listed_and_shown() {
    let fake = server().await;
    let client = client(&fake);
    let listed = json!({"models": [
        {"name": "qwen3:8b", "model": "qwen3:8b", "size": 5, "details": {"parameter_size": "8.2B"}},
    ]});
    fake.answer(Answer::json(200, &listed));
    let models = client.list_models().await.unwrap();
    assert_eq!(models[0].name, "qwen3:8b");
    let sent = fake.request(0).await;
    assert_eq!((sent.method(), sent.path()), ("GET", "/api/tags"));
    assert_eq!(sent.header("authorization"), Some("Bearer secret-1"));

    let shown = json!({
        "capabilities": ["completion", "tools"],
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    });
    fake.answer(Answer::json(200, &shown));
    let model = described_model(&client, "qwen3:8b").await.unwrap();
    let can = model.capabilities();
    assert_eq!((can.tools, can.images), (Some(true), Some(false)));
    assert_eq!(can.reasoning, Some(false));
    assert_eq!(can.context_window, Some(40960));
    assert_eq!(can.forced_tool_choice, Some(true));
    let sent = fake.request(1).await;
    assert_eq!((sent.method(), sent.path()), ("POST", "/api/show"));
    assert_eq!(sent.json(), &json!({"model": "qwen3:8b"}));
    // With known capabilities, the model is not described by the server first.
    let request = ChatRequest {
        reasoning: Some(ReasoningEffort::Low),
        ..question()
    };
    fake.answer(transcript("text.ndjson"));
    model.complete(&request).await.unwrap();
    assert_eq!(fake.request(2).await.json().get("think"), None);

    fake.answer(refusal(404, "model 'nothing' not found"));
    let error = fetch_model_description(&client, "nothing")
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NotFound);
    assert!(error.message().contains("ollama pull nothing"), "{error}");
    fake.answer(Answer::json(200, &json!({"object": "list"})));
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(error.message().contains(&fake.base_url()), "{error}");
}

#[tokio::test]
async fn a_server_without_model_descriptions_is_used_with_assumed_capabilities() {
    let fake = server().await;
    let mut config = config(&fake);
    config.transport.retry = RetryPolicy::never_retry();
    let client = OllamaClient::new(config).unwrap();
    let unknown_path = json!({"error": {"message": "Invalid path", "type": "not_found_error"}});
    for missing in [
        Answer::new(404).piece("404 page not found"),
        Answer::json(404, &unknown_path),
        Answer::new(405),
        Answer::new(501),
    ] {
        fake.answer(missing.clone());
        fake.answer(transcript("two-calls.ndjson"));
        let model = described_model(&client, "qwen3:8b").await.unwrap();
        assert_eq!(model.capabilities().tools, None);
        let answer = model.complete(&question()).await.unwrap();
        assert_eq!(answer.message.tool_uses().count(), 2);
        fake.answer(missing);
        let error = client.list_models().await.unwrap_err();
        assert!(is_missing_endpoint(&error), "{error}");
    }
    // The server describes models, but it does not have this one.
    fake.answer(refusal(404, "model 'nothing' not found"));
    let error = described_model(&client, "nothing").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NotFound);
}

#[tokio::test]
async fn an_answer_is_read_under_any_content_type_and_in_any_chunks() {
    let fake = server().await;
    let model = model(&fake);
    fake.answer(transcript("two-calls.ndjson"));
    let streamed = model.complete(&question()).await.unwrap();
    fake.answer(transcript("two-calls.json"));
    assert_eq!(model.complete(&question()).await.unwrap(), streamed);

    let stored = transcripts::read("ollama/two-calls.json").unwrap();
    let body: Value = serde_json::from_slice(&stored.bytes).unwrap();
    let spread = serde_json::to_string_pretty(&body).unwrap();
    let line = transcripts::read("ollama/two-calls.ndjson").unwrap();
    let line = String::from_utf8(line.bytes).unwrap();
    for (text, name) in [
        (spread.clone(), "application/json"),
        (spread, "application/x-ndjson"),
        (line.clone(), "application/json; charset=utf-8"),
        (line, "text/plain"),
    ] {
        let answer = Answer::new(200).header("content-type", name).piece(text);
        fake.answer(answer);
        let read = model.complete(&question()).await.unwrap();
        assert_eq!(read, streamed, "{name}");
    }
}

/// Gateways may answer with status 200 and the error of another server, which may contain the key.
#[tokio::test]
async fn a_key_in_the_servers_answer_is_redacted() {
    const KEY: &str = "secret-1";
    let fake = server().await;
    let model = model_without_retry(&fake);
    for body in [
        Answer::ndjson(format!("{{\"error\":\"bad key {KEY}\"}}\n")),
        Answer::ndjson(format!("not json {KEY}\n")),
        Answer::json(200, &json!({"error": format!("bad key {KEY}")})),
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
        assert_eq!(error.http_status(), Some(200), "{error}");
    }
}

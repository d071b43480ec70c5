//! The model against a server on loopback.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, FinishReason, Message, ModelErrorKind, ModelEvent, ToolChoice, ToolResult,
};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_gemini::{GeminiClient, GeminiConfig, GeminiModel};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate},
    loopback::{failure, held_after, question},
    transcripts,
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
        ..GeminiConfig::compatible("acme", fake.base_url()).with_api_key("secret-key-1")
    }
}

fn model(fake: &FakeModel) -> GeminiModel {
    GeminiModel::new(config(fake), "gemini-3.8-flash").expect("a valid configuration")
}

/// A model that repeats no request.
fn model_without_retry(fake: &FakeModel) -> GeminiModel {
    let mut config = config(fake);
    config.transport.retry = RetryPolicy::never();
    GeminiModel::new(config, "gemini-3.8-flash").expect("a valid configuration")
}

fn stored(name: &str) -> Answer {
    Answer::transcript(&format!("gemini/{name}")).expect("it is stored")
}

fn text(name: &str) -> String {
    let stored = transcripts::read(&format!("gemini/{name}")).expect("it is stored");
    String::from_utf8(stored.bytes).expect("it is text")
}

#[tokio::test]
async fn calls_stream_and_go_back_with_their_results_as_they_came() {
    let fake = server().await;
    let gate = Gate::new();
    fake.answer(held_after("gemini/calls-over-chunks.sse", 1, &gate).unwrap());
    fake.answer(stored("text.sse"));
    let model = model(&fake);
    let mut request = question();

    // What came before the gate is handed on before the rest is sent.
    let mut stream = model.stream(&request).await.unwrap();
    let mut answer = switchboard_domain::ResponseAccumulator::default();
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        answer.push(&event).unwrap();
        if matches!(event, ModelEvent::PartFinished { index: 0 }) {
            gate.reached().await;
            gate.open();
        }
    }
    let answer = answer.finish().unwrap();
    assert_eq!(answer.finish, FinishReason::ToolUse);
    let calls: Vec<_> = answer.message.tool_uses().cloned().collect();
    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a1b2c3d4", "e5f6g7h8", "call_local_1"]);

    let results = calls
        .iter()
        .map(|call| ToolResult::text(&call.id, &call.name, format!("result of {}", call.id)));
    let results = Message::tool_results(results);
    request
        .messages
        .extend([answer.message.into(), results.into()]);
    let last = model.complete(&request).await.unwrap();
    assert_eq!(last.message.text(), "It is 12 °C in Hamburg.");
    assert_eq!(last.warnings, []);

    let sent = fake.request(1).await;
    let contents = &sent.json()["contents"];
    let came: Value = text("calls-over-chunks.sse")
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str::<Value>(data).unwrap())
        .map(|chunk| chunk["candidates"][0]["content"]["parts"][0].clone())
        .collect();
    assert_eq!(contents[1]["parts"], came);
    let answered: Vec<_> = contents[2]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| {
            let response = &part["functionResponse"];
            (
                response["id"].as_str(),
                response["response"]["output"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        answered,
        [
            (Some("a1b2c3d4"), Some("result of a1b2c3d4")),
            (Some("e5f6g7h8"), Some("result of e5f6g7h8")),
            (Some("a1b2c3d4"), Some("result of call_local_1")),
        ]
    );
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

    // A proxy that wants no key and has another path; a tuned model.
    let proxy = GeminiConfig {
        api_key: None,
        base_url: format!("{}/gemini/v1/", fake.base_url()),
        ..config(&fake)
    };
    let tuned = GeminiModel::new(proxy, "tunedModels/mine").unwrap();
    tuned.complete(&question()).await.unwrap();
    let sent = fake.request(1).await;
    assert_eq!(
        sent.path(),
        "/gemini/v1/tunedModels/mine:streamGenerateContent"
    );
    assert_eq!(sent.header("x-goog-api-key"), None);

    let astray = GeminiModel::new(config(&fake), "../files").unwrap();
    let error = failure(&astray, &question()).await.unwrap();
    let field = Some("model".to_owned());
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn case_12_signatures_that_are_refused_are_left_out_once() {
    let fake = server().await;
    let model = model(&fake);
    fake.answer(stored("thoughts-then-call.sse"));
    let mut request = question();
    let answer = model.complete(&request).await.unwrap();
    let call = answer.message.tool_uses().next().unwrap().clone();
    let results = Message::tool_results([ToolResult::text(&call.id, &call.name, "12 degrees")]);
    request
        .messages
        .extend([answer.message.into(), results.into()]);
    let refused = json!([{"error": {
        "code": 400, "status": "INVALID_ARGUMENT", "message": "Corrupted thought signature.",
    }}]);
    fake.answer(Answer::json(400, &refused));
    fake.answer(stored("text.sse"));
    let answer = model.complete(&request).await.unwrap();
    assert_eq!(answer.message.text(), "It is 12 °C in Hamburg.");
    assert_eq!(answer.warnings.len(), 2, "{:?}", answer.warnings);
    let signed = |number: usize| fake.requests()[number].json()["contents"][1].clone();
    assert!(signed(1).to_string().contains("CpQBAdHtim"));
    let again = signed(2).to_string();
    assert!(
        !again.contains("CpQBAdHtim") && !again.contains("EqkCCqYC"),
        "{again}"
    );
    assert!(again.contains("hx7k2p9q"), "{again}");

    // Twice is enough.
    fake.answer(Answer::json(400, &refused));
    fake.answer(Answer::json(400, &refused));
    let error = model.complete(&request).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field: None });
    assert_eq!(fake.requests().len(), 5);
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
    assert_eq!(
        (sent.path(), sent.query()),
        ("/v1beta/models/gemini-3.8-flash:generateContent", None)
    );
    assert_eq!(sent.header("accept"), Some("application/json"));
}

#[tokio::test]
async fn what_is_no_answer_is_never_taken_for_one() {
    let fake = server().await;
    let model = model_without_retry(&fake);
    let page = Answer::new(200).header("content-type", "text/html; charset=utf-8");
    fake.answer(page.piece("<html>Welcome"));
    let error = failure(&model, &question()).await.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(error.message().contains("text/html"), "{error}");

    fake.answer(Answer::json(200, &json!({"hello": "there"})));
    assert_eq!(
        failure(&model, &question()).await.unwrap().kind,
        ModelErrorKind::Protocol
    );
    for (transcript, expected) in [
        ("eof-early.sse", ModelErrorKind::Interrupted),
        (
            "error-mid-stream.sse",
            ModelErrorKind::Overloaded { retry_after: None },
        ),
    ] {
        fake.answer(stored(transcript));
        assert_eq!(
            failure(&model, &question()).await.unwrap().kind,
            expected,
            "{transcript}"
        );
    }

    // The connection breaks.
    let answer = Answer::new(200).header("content-type", "text/event-stream");
    let half = r#"data: {"candidates":[{"content":{"parts":[{"text":"Half"}]}}]}"#;
    fake.answer(answer.piece(format!("{half}\n\n")).break_off());
    assert_eq!(
        failure(&model, &question()).await.unwrap().kind,
        ModelErrorKind::Interrupted
    );
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
    // A server whose list never ends.
    fake.otherwise(|number, _| {
        let next = format!("p{number}");
        Answer::json(200, &json!({"models": [], "nextPageToken": next}))
    });
    assert_eq!(client.list_models().await.unwrap(), []);
}

/// Gateways answer 200 and then say what their upstream said, with the key in it.
#[tokio::test]
async fn a_key_that_the_server_echoes_in_its_answer_is_not_shown() {
    const KEY: &str = "secret-key-1";
    let fake = server().await;
    let model = model_without_retry(&fake);
    for body in [
        Answer::sse(format!(
            "data: {}\n\n",
            json!({"error": {"code": 400, "message": format!("bad key {KEY}"), "status": "INTERNAL"}})
        )),
        Answer::sse(format!("data: not json {KEY}\n\n")),
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

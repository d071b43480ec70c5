//! The model against a server on loopback.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, FinishReason, Message, ModelErrorKind, ModelEvent, ToolChoice, ToolResult,
};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_gemini::{GeminiClient, GeminiConfig, GeminiModel};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate},
    loopback::{failure, held_after, lets_go, question},
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
async fn case_08_a_continued_answer_reads_as_one() {
    let fake = server().await;
    let model = model(&fake);
    let rest = |text: &str, finish: &str, token: &str| {
        let frame = json!({
            "candidates": [{
                "content": {"parts": [{"text": text}]}, "finishReason": finish,
                "continuationToken": token,
            }],
            "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 7},
        });
        // Without the closing line.
        Answer::sse(format!("data: {frame}\n"))
    };
    fake.answer(stored("continuation.sse"));
    fake.answer(rest(" two", "CONTINUATION", "dG9rZW4tMg=="));
    fake.answer(rest(".", "STOP", ""));
    let answer = model.complete(&question()).await.unwrap();
    assert_eq!(answer.message.text(), "Chapter one, and two.");
    assert_eq!(answer.message.parts.len(), 1);
    assert_eq!(answer.finish, FinishReason::Stop);
    assert_eq!(answer.usage.input_tokens, Some(142));
    assert_eq!(answer.usage.output_tokens, Some(19));
    let mut first = fake.request(0).await.json().clone();
    for (number, token) in [(1, "dG9rZW4tMQ=="), (2, "dG9rZW4tMg==")] {
        first["continuationToken"] = json!(token);
        assert_eq!(*fake.request(number).await.json(), first);
    }

    // The rest cannot be had: the answer had begun.
    fake.answer(stored("continuation.sse"));
    let refused =
        json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "Bad token."}});
    fake.answer(Answer::json(400, &refused));
    let error = failure(&model, &question()).await.unwrap();
    assert_eq!(
        (error.kind.clone(), error.status()),
        (ModelErrorKind::Interrupted, Some(400))
    );
    assert!(error.message().contains("Bad token."), "{error}");

    // The same token again: nothing more is asked for.
    fake.answer(stored("continuation.sse"));
    fake.answer(rest("!", "CONTINUATION", "dG9rZW4tMQ=="));
    let answer = model.complete(&question()).await.unwrap();
    assert_eq!(answer.message.text(), "Chapter one, and!");
    assert_eq!((answer.finish, fake.unused()), (FinishReason::Length, 0));
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
async fn refusals_are_told_apart() {
    let fake = server().await;
    let model = model(&fake);
    for (code, status, expected) in [
        (401, "UNAUTHENTICATED", ModelErrorKind::Authentication),
        (403, "PERMISSION_DENIED", ModelErrorKind::Permission),
        (404, "NOT_FOUND", ModelErrorKind::NotFound),
        (
            400,
            "INVALID_ARGUMENT",
            ModelErrorKind::InvalidRequest { field: None },
        ),
    ] {
        let before = fake.requests().len();
        let error = json!([{"error": {"code": code, "status": status, "message": "Because."}}]);
        fake.answer(Answer::json(code, &error).header("x-request-id", "req_7"));
        let error = failure(&model, &question()).await.unwrap();
        assert_eq!(error.kind, expected);
        assert_eq!(error.status(), Some(code));
        assert_eq!(error.provider(), "acme");
        assert_eq!(error.message(), "Because.");
        assert_eq!(error.request_id(), Some("req_7"));
        // Final: not tried again.
        assert_eq!(fake.requests().len(), before + 1, "{status}");
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let fake = server().await;
    let mut config = config(&fake);
    config.transport.retry.min_delay = Duration::from_millis(1);
    let eager = GeminiModel::new(config.clone(), "gemini-3.8-flash").unwrap();
    let busy = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Busy."}});
    fake.answer(Answer::json(429, &busy));
    fake.answer(Answer::new(503));
    fake.answer(stored("text.sse"));
    let answer = eager.complete(&question()).await.unwrap();
    assert_eq!(answer.message.text(), "It is 12 °C in Hamburg.");
    let requests = fake.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|it| it.body() == requests[0].body()));

    config.transport.retry = RetryPolicy::never();
    let patient = GeminiModel::new(config, "gemini-3.8-flash").unwrap();
    let delay = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"});
    let mut later = busy;
    later["error"]["details"] = json!([delay]);
    fake.answer(Answer::json(429, &later));
    let retry_after = Some(Duration::from_secs(7));
    assert_eq!(
        failure(&patient, &question()).await.unwrap().kind,
        ModelErrorKind::RateLimited { retry_after }
    );
}

#[tokio::test]
async fn dropping_the_stream_or_the_question_aborts_the_request() {
    let fake = server().await;
    let gone = lets_go(&fake, &model(&fake), "gemini/text.sse", 1).await;
    gone.unwrap();
}

#[tokio::test]
async fn a_whole_answer_to_a_request_for_a_stream_is_read() {
    let fake = server().await;
    let model = model_without_retry(&fake);
    fake.answer(stored("thoughts-then-call.sse"));
    let streamed = model.complete(&question()).await.unwrap();
    for (transcript, media_type) in [
        ("thoughts-then-call.json", "application/json"),
        ("thoughts-then-call.json", "text/event-stream"),
        ("thoughts-then-call.sse", "application/json"),
        ("thoughts-then-call.sse", "text/plain"),
    ] {
        let answer = Answer::new(200).header("content-type", media_type);
        fake.answer(answer.piece(text(transcript)));
        let answer = model.complete(&question()).await.unwrap();
        assert_eq!(answer, streamed, "{transcript} as {media_type}");
    }
    fake.answer(stored("list-of-chunks.json"));
    let answer = model.complete(&question()).await.unwrap();
    assert_eq!(answer.message.text(), "It is 12 °C.");

    // An error in a success.
    fake.answer(stored("error-at-once.json").header("x-request-id", "req_8"));
    let error = failure(&model, &question()).await.unwrap();
    let retry_after = Some(Duration::from_secs(7));
    assert_eq!(error.kind, ModelErrorKind::RateLimited { retry_after });
    assert_eq!(
        (error.status(), error.request_id()),
        (Some(200), Some("req_8"))
    );
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

#[tokio::test]
async fn the_key_shows_up_nowhere() {
    let fake = server().await;
    let model = model(&fake);
    assert!(!format!("{model:?}").contains("secret-key"), "{model:?}");
    let body = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid: secret-key-1"}});
    fake.answer(Answer::json(400, &body));
    let error = failure(&model, &question()).await.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    for shown in [format!("{error}"), format!("{error:?}")] {
        assert!(!shown.contains("secret-key"), "{shown}");
    }
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

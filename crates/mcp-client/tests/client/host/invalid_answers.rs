//! Responses that are not valid JSON, over every transport. The call fails, and the server
//! stays.

use std::time::{Duration, Instant};

use axum::{
    Json, Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use switchboard_domain::ToolCallError;
use switchboard_mcp_client::{McpHost, ServerConfig};

use crate::{
    host::http::{Served, serve},
    host::stage::*,
};

/// How an HTTP server sends its responses.
#[derive(Clone, Copy, Debug)]
enum Form {
    Body,
    Events,
}

/// Starts a server with the older protocol. Its tool responds with the text in the call's input, in
/// which `$ID` is the request's id and `$LONG` stands for 17 MiB.
async fn serve_text(form: Form) -> Served {
    let answer = move |Json(message): Json<Value>| async move { answer(form, &message) };
    serve(Router::new().route("/mcp", post(answer)), None).await
}

fn answer(form: Form, message: &Value) -> Response {
    let id = &message["id"];
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let text = match message["method"].as_str().unwrap_or_default() {
        "initialize" => result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "text", "version": "0"},
        })),
        "tools/list" => {
            let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
            result(json!({"tools": [tool]}))
        }
        "tools/call" => match message["params"]["arguments"]["text"].as_str() {
            Some(text) => {
                let text = text.replace("$ID", &id.to_string());
                text.replace("$LONG", &"x".repeat(17 * 1024 * 1024))
            }
            None => result(json!({"content": [{"type": "text", "text": "did \"work\""}]})),
        },
        "server/discover" => return StatusCode::NOT_FOUND.into_response(),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    match form {
        Form::Body => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Form::Events => {
            let events = format!(": a comment\r\n\r\nevent: message\r\ndata: {text}\r\n\r\n");
            ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
    }
}

/// Runs `check` on a host with the server over each transport.
async fn over_every_transport(check: impl AsyncFn(&McpHost)) {
    let stdio = host([program("s", "writes what a call says")]).await;
    check(&stdio).await;
    for form in [Form::Body, Form::Events] {
        let served = serve_text(form).await;
        let http = host([ServerConfig::http("s", served.url())]).await;
        assert_ready(&http, "s");
        check(&http).await;
    }
}

#[tokio::test]
async fn the_call_fails_at_once_and_no_circuit_opens() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let answers = [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"n":1e999}}}"#,
        &format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"structuredContent":{deep}}}}}"#),
        r#"{"result":{"content":[{"type":"text","text":"\u12"}]},"id":$ID,"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":"$ID","error":{"code":-32000,"message":"","data":-1e999}}"#,
    ];
    over_every_transport(async |host| {
        let begun = Instant::now();
        // This is more often than a circuit breaker allows calls without a response.
        for _ in 0..3 {
            for answer in answers {
                let error = call(host, "s__work", json!({"text": answer}))
                    .await
                    .unwrap_err();
                assert!(
                    matches!(error, ToolCallError::InvalidAnswer { .. }),
                    "{answer}: {error:?}"
                );
                assert!(!error.did_not_run());
                let text = error.to_string();
                let expected = "server `s` sent an answer to `work` that is not valid JSON: ";
                assert!(text.starts_with(expected), "{text}");
            }
        }
        assert_eq!(text(host, "s__work").await, "did \"work\"");
        assert_ready(host, "s");
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
    })
    .await;
}

#[tokio::test]
async fn lone_surrogates_are_replaced() {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"a\ud800b\ude00 \ud83d\ude00"}]}}"#;
    over_every_transport(async |host| {
        let output = call(host, "s__work", json!({"text": answer}))
            .await
            .unwrap();
        assert_eq!(all_text(&output), "a\u{fffd}b\u{fffd} 😀");
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_for_http_fails_its_call_alone() {
    let answer =
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"$LONG"}]}}"#;
    for form in [Form::Body, Form::Events] {
        let served = serve_text(form).await;
        let host = host([ServerConfig::http("s", served.url())]).await;
        let input = json!({"text": answer});
        let error = call(&host, "s__work", input).await.unwrap_err().to_string();
        let expected = "server `s` sent an answer to `work` that is larger than 16777216 bytes";
        assert_eq!(error, expected, "{form:?}");
        assert_eq!(
            crate::host::stage::text(&host, "s__work").await,
            "did \"work\""
        );
    }
}

use axum::body::to_bytes;
use serde_json::{Value, json};

use super::*;

async fn said(path: &str, problem: &Problem) -> Option<(u16, Value)> {
    let response = super::to_dialect_error_response(path, problem)?;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    Some((status, serde_json::from_slice(&body).unwrap()))
}

#[tokio::test]
async fn errors_have_the_form_of_the_dialect_that_is_spoken() {
    let problem = Problem::invalid_field("parameters.temperature", "is a number from 0 to 2");
    let openai = json!({"error": {
        "message": "is a number from 0 to 2", "type": "invalid_request_error", "param": "temperature",
        "code": "invalid",
    }});
    for path in ["/v1/chat/completions", "/v1/models/x", "/v1/embeddings"] {
        // OpenAI has no status 422 for an invalid value, so its dialect returns 400.
        assert_eq!(
            said(path, &problem).await,
            Some((400, openai.clone())),
            "{path}"
        );
    }
    let anthropic = json!({"type": "error", "error": {
        "type": "invalid_request_error", "message": "is a number from 0 to 2",
    }});
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        assert_eq!(
            said(path, &problem).await,
            Some((400, anthropic.clone())),
            "{path}"
        );
    }
    for path in ["/api/chat", "/ag-ui", "/chat", "/"] {
        assert_eq!(said(path, &problem).await, None, "{path}");
    }
}

#[tokio::test]
async fn a_client_learns_when_to_come_back() {
    let problem = Problem {
        retry_after: Some(std::time::Duration::from_secs(7)),
        ..Problem::server_unavailable("too much to do")
    };
    for path in ["/v1/messages", "/v1/chat/completions"] {
        let response = super::to_dialect_error_response(path, &problem).unwrap();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "7");
    }
    let (_, body) = said("/v1/messages", &problem).await.unwrap();
    assert_eq!(body["error"]["type"], "overloaded_error");
    let (_, body) = said("/v1/chat/completions", &problem).await.unwrap();
    assert_eq!(body["error"]["type"], "server_error");
}

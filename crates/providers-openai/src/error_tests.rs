use std::time::Duration;

use serde_json::json;
use switchboard_domain::ModelErrorKind as Kind;
use switchboard_providers_common::{ErrorClassifier as _, HttpFailure};

use super::*;

fn kind(status: Option<u16>, body: &Value) -> Kind {
    let error = ERRORS.find_api_error(body).unwrap_or_default();
    ERRORS.error_kind(&error, status, Some(Duration::from_secs(3)))
}

fn error(kind: &str, code: &str, param: &str) -> Value {
    // The API sends `null` for a field that does not apply.
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({"error": {"message": "m", "type": kind, "param": text(param), "code": text(code)}})
}

#[test]
fn errors_of_openai_are_classified() {
    let retry_after = Some(Duration::from_secs(3));
    let invalid = "invalid_request_error";
    let cases = [
        (
            401,
            error(invalid, "invalid_api_key", ""),
            Kind::Authentication,
        ),
        (401, error(invalid, "", ""), Kind::Authentication),
        (403, error("forbidden", "", ""), Kind::Permission),
        (
            403,
            error(
                "request_forbidden",
                "unsupported_country_region_territory",
                "",
            ),
            Kind::Permission,
        ),
        (404, error(invalid, "model_not_found", ""), Kind::NotFound),
        (404, error(invalid, "", ""), Kind::NotFound),
        (
            400,
            error(
                invalid,
                "invalid_function_parameters",
                "tools[0].function.parameters",
            ),
            Kind::InvalidRequest {
                field: Some("tools[0].function.parameters".into()),
            },
        ),
        (
            400,
            error(invalid, "context_length_exceeded", "messages"),
            Kind::ContextOverflow,
        ),
        (
            400,
            error(invalid, "content_filter", ""),
            Kind::ContentFilter,
        ),
        (
            429,
            error("insufficient_quota", "insufficient_quota", ""),
            Kind::QuotaExhausted,
        ),
        (
            429,
            error("requests", "rate_limit_exceeded", ""),
            Kind::RateLimited { retry_after },
        ),
        (
            500,
            error("server_error", "", ""),
            Kind::Overloaded { retry_after },
        ),
        (503, error("", "", ""), Kind::Overloaded { retry_after }),
        (
            409,
            error("conflict", "", ""),
            Kind::Overloaded { retry_after },
        ),
    ];
    for (status, body, expected) in cases {
        assert_eq!(kind(Some(status), &body), expected, "{status} {body}");
    }
}

#[test]
fn errors_of_compatible_servers_are_classified() {
    let cases = [
        // An error of vLLM, which has no field `error`.
        (
            Some(400),
            json!({"object": "error", "message": "This model's maximum context length is 8192 tokens.",
                   "type": "BadRequestError", "param": null, "code": 400}),
            Kind::ContextOverflow,
        ),
        (
            Some(404),
            json!({"object": "error", "message": "no model", "type": "NotFoundError", "code": 404}),
            Kind::NotFound,
        ),
        // An error of FastAPI.
        (
            Some(422),
            json!({"detail": [{"loc": ["body"], "msg": "field required"}]}),
            Kind::InvalidRequest { field: None },
        ),
        // An error of Gemini's compatible endpoint, which sends a list.
        (
            Some(400),
            json!([{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}]),
            Kind::InvalidRequest { field: None },
        ),
        // An error of Ollama, whose field `error` is a string.
        (
            Some(404),
            json!({"error": "model 'x' not found"}),
            Kind::NotFound,
        ),
        // An error of the LiteLLM proxy, which sends neither an error code nor a field name.
        (
            Some(400),
            json!({"error": {"message": "/chat/completions: Invalid model name passed in model=x. Call \
                                         `/v1/models` to view available models for your key.",
                             "type": "invalid_request_error", "param": null, "code": "400"}}),
            Kind::NotFound,
        ),
        (
            Some(400),
            json!({"error": {"message": "No connected db.", "type": "no_db_connection", "param": null,
                             "code": "400"}}),
            Kind::Authentication,
        ),
        // An error of DeepSeek.
        (
            Some(402),
            json!({"error": {"message": "Insufficient Balance"}}),
            Kind::QuotaExhausted,
        ),
        // An error page of a proxy, which is not JSON.
        (
            Some(502),
            Value::Null,
            Kind::Overloaded {
                retry_after: Some(Duration::from_secs(3)),
            },
        ),
        (Some(302), Value::Null, Kind::Protocol),
    ];
    for (status, body, expected) in cases {
        assert_eq!(kind(status, &body), expected, "{status:?} {body}");
    }
}

#[test]
fn errors_within_a_stream_are_classified_by_code_or_type() {
    let of = |body: Value| {
        let error = ERRORS.find_api_error(&body).unwrap();
        ERRORS.in_band_error("openai", error).kind
    };
    assert_eq!(
        of(json!({"error": {"message": "m", "type": "server_error"}})),
        Kind::Overloaded { retry_after: None }
    );
    // OpenRouter sends the status as a number in `code`.
    assert_eq!(
        of(json!({"error": {"message": "m", "code": 429}})),
        Kind::RateLimited { retry_after: None }
    );
    assert_eq!(
        of(
            json!({"error": {"message": "m", "type": "invalid_request_error", "param": "messages"}})
        ),
        Kind::InvalidRequest {
            field: Some("messages".into())
        }
    );
    assert_eq!(of(json!({"error": "it broke"})), Kind::Interrupted);
}

#[test]
fn a_response_without_an_error_object_is_classified_by_its_status() {
    let read = |status: u16, body: &str| {
        ERRORS.classify_failure(&HttpFailure {
            status,
            headers: &http::HeaderMap::new(),
            body: body.as_bytes(),
            retry_after: None,
        })
    };
    let page = read(404, "<html>no such page</html>");
    assert_eq!(page.kind, Kind::NotFound);
    assert!(page.message.starts_with("<html>no such page</html>"));
    assert!(page.message.contains("/v1"), "{}", page.message);
    assert!(read(404, "").message.starts_with("(the base address"));
    assert_eq!(read(502, "bad gateway").message, "bad gateway");
    // The error object has no message.
    let without_message = read(400, r#"{"error": {"type": "odd"}}"#);
    assert_eq!(without_message.message, r#"{"error": {"type": "odd"}}"#);
    let unknown_model = json!({"error": {"message": "no model x", "code": "model_not_found"}});
    let unknown_model = read(404, &unknown_model.to_string());
    assert_eq!(
        (unknown_model.kind, unknown_model.message.as_str()),
        (Kind::NotFound, "no model x")
    );
}

#[test]
fn a_context_overflow_without_a_code_is_recognized_by_its_message() {
    for message in [
        "This model's maximum context length is 8192 tokens.",
        "the request exceeds the available context size (4096 tokens)",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "litellm.ContextWindowExceededError: prompt is too long: 210000 tokens > 200000 maximum",
    ] {
        let body = json!({"error": {"message": message, "type": "invalid_request_error"}});
        assert_eq!(kind(Some(400), &body), Kind::ContextOverflow, "{message}");
        // An error with another status may contain the same words, but is not a context overflow.
        assert_ne!(kind(Some(500), &body), Kind::ContextOverflow, "{message}");
    }
}

#[test]
fn an_empty_error_field_is_no_error() {
    for empty in [json!(null), json!({}), json!(""), json!(false)] {
        let body = json!({ "error": empty });
        assert_eq!(ERRORS.find_api_error(&body), None, "{body}");
    }
}

use std::time::Duration;

use http::HeaderMap;
use serde_json::json;
use switchboard_domain::ModelErrorKind as Kind;
use switchboard_providers_common::{ClassifiedError, ErrorClassifier as _, HttpFailure};

use super::*;

const RETRY_AFTER: Option<Duration> = Some(Duration::from_secs(3));

fn classify(status: u16, body: &str) -> ClassifiedError {
    ERRORS.classify_failure(&HttpFailure {
        status,
        headers: &HeaderMap::new(),
        body: body.as_bytes(),
        retry_after: RETRY_AFTER,
    })
}

fn error(class: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": class, "message": message}, "request_id": "req_1"})
        .to_string()
}

fn invalid(field: &str) -> Kind {
    let field = Some(field.to_owned()).filter(|field| !field.is_empty());
    Kind::InvalidRequest { field }
}

#[test]
fn every_error_type_has_its_kind() {
    let retry_after = RETRY_AFTER;
    for (status, class, expected) in [
        (400, "invalid_request_error", invalid("")),
        (401, "authentication_error", Kind::Authentication),
        (402, "billing_error", Kind::QuotaExhausted),
        (403, "permission_error", Kind::Permission),
        (404, "not_found_error", Kind::NotFound),
        (409, "conflict_error", Kind::Overloaded { retry_after }),
        (413, "request_too_large", invalid("")),
        (429, "rate_limit_error", Kind::RateLimited { retry_after }),
        (500, "api_error", Kind::Overloaded { retry_after }),
        (504, "timeout_error", Kind::Overloaded { retry_after }),
        (529, "overloaded_error", Kind::Overloaded { retry_after }),
        // Gateways send the type `invalid_request_error` for every error, so the status decides.
        (401, "invalid_request_error", Kind::Authentication),
        (402, "invalid_request_error", Kind::QuotaExhausted),
        (403, "invalid_request_error", Kind::Permission),
        (404, "invalid_request_error", Kind::NotFound),
        (
            429,
            "invalid_request_error",
            Kind::RateLimited { retry_after },
        ),
        (
            503,
            "invalid_request_error",
            Kind::Overloaded { retry_after },
        ),
        (413, "invalid_request_error", invalid("")),
        // The type `new_error` is unknown, so the status decides.
        (429, "new_error", Kind::RateLimited { retry_after }),
        (422, "new_error", invalid("")),
    ] {
        let classified = classify(status, &error(class, "m"));
        assert_eq!(classified.kind, expected, "{status} {class}");
        assert_eq!(classified.message, "m");
        assert_eq!(classified.request_id.as_deref(), Some("req_1"));
    }
}

#[test]
fn some_messages_determine_the_kind() {
    for (message, expected) in [
        (
            "prompt is too long: 208310 tokens > 200000 maximum",
            Kind::ContextOverflow,
        ),
        (
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, \
             decrease input length or `max_tokens` and try again",
            Kind::ContextOverflow,
        ),
        (
            "Your credit balance is too low to access the Anthropic API.",
            Kind::QuotaExhausted,
        ),
        (
            "tools.9.custom.input_schema: input_schema does not support oneOf",
            invalid("tools.9.custom.input_schema"),
        ),
        (
            "max_tokens: 200000 > 128000, which is the maximum",
            invalid("max_tokens"),
        ),
        (
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
            invalid("tool_choice"),
        ),
        ("Usage credits required for 1M context window", invalid("")),
        ("note: nothing", invalid("")),
    ] {
        let classified = classify(400, &error("invalid_request_error", message));
        assert_eq!(classified.kind, expected, "{message}");
    }
}

#[test]
fn a_spend_limit_is_an_exhausted_quota() {
    for code in [
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
    ] {
        let body = json!({"error": {"type": "rate_limit_error", "message": "m",
                                    "details": {"error_code": code}}});
        let classified = classify(429, &body.to_string());
        assert_eq!(classified.kind, Kind::QuotaExhausted, "{code}");
    }
    let ramp = json!({"error": {"type": "rate_limit_error", "message": "m",
                                "details": {"error_code": "ramp_limit_exceeded"}}});
    let retry_after = RETRY_AFTER;
    assert_eq!(
        classify(429, &ramp.to_string()).kind,
        Kind::RateLimited { retry_after }
    );
    let held = json!({"error": {"type": "invalid_request_error", "message": "m",
                                "details": {"error_code": "organization_on_hold"}}});
    assert_eq!(classify(400, &held.to_string()).kind, Kind::Permission);
}

#[test]
fn errors_of_proxies_are_read() {
    let retry_after = RETRY_AFTER;
    let gateway = classify(503, "<html>\n<b>Service Unavailable</b>");
    assert_eq!(gateway.kind, Kind::Overloaded { retry_after });
    assert_eq!(gateway.message, "<html> <b>Service Unavailable</b>");
    let flat = classify(404, r#"{"error": "no such model"}"#);
    assert_eq!(flat.kind, Kind::NotFound);
    assert_eq!(flat.message, "no such model");
    let detail = classify(422, r#"{"detail": [{"msg": "bad"}]}"#);
    assert_eq!(detail.kind, invalid(""));
    assert_eq!(detail.message, r#"[{"msg":"bad"}]"#);
    for nothing in ["", "[]", "{}", r#"{"error": null}"#] {
        assert_eq!(classify(401, nothing).kind, Kind::Authentication);
    }
}

#[test]
fn the_type_decides_for_an_error_within_a_stream() {
    let of = |body: Value| ERRORS.in_band_error("anthropic", ERRORS.find_api_error(&body).unwrap());
    let overloaded = of(json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}));
    assert_eq!(overloaded.kind, Kind::Overloaded { retry_after: None });
    let long =
        of(json!({"error": {"type": "invalid_request_error", "message": "prompt is too long"}}));
    assert_eq!(long.kind, Kind::ContextOverflow);
    let silent = of(json!({"error": {"type": "odd"}}));
    assert_eq!(silent.kind, Kind::Interrupted);
    assert!(!silent.message().is_empty());
}

#[test]
fn a_refusal_of_earlier_thinking_blocks_is_recognised() {
    let refused =
        |kind: Kind, message: &str| is_thinking_block_refusal(&ModelError::new("p", kind, message));
    for message in [
        "messages.1.content.0: thinking block is bound to a different conversation",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.3.content.8: `thinking` or `redacted_thinking` blocks in the latest assistant \
         message cannot be modified.",
    ] {
        assert!(refused(invalid("messages.1"), message), "{message}");
        assert!(!refused(Kind::Permission, message));
    }
    assert!(!refused(invalid(""), "messages.1: bad"));
}

#[test]
fn a_refusal_of_a_forced_tool_choice_is_recognised() {
    let refused = |message: &str| {
        is_tool_choice_refusal(&ModelError::new("p", invalid("tool_choice"), message))
    };
    for message in [
        "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
        "tool_choice forces tool use is not compatible with this model",
        "Thinking may not be enabled when tool_choice forces tool use.",
    ] {
        assert!(refused(message), "{message}");
    }
    assert!(!refused(
        "tool_choice: Tool `x` not found in provided tools"
    ));
    assert!(!refused("temperature is not supported for this model"));
}

#[test]
fn bad_requests_of_litellm_are_distinguished() {
    for (kind, message, expected) in [
        (
            "invalid_request_error",
            "/v1/messages: Invalid model name passed in model=claude-unknown. Call `/v1/models`",
            Kind::NotFound,
        ),
        ("no_db_connection", "No connected db.", Kind::Authentication),
        ("None", "No connected db.", Kind::Authentication),
    ] {
        let body = json!({"error": {"message": message, "type": kind, "param": null,
                                    "code": "400"}});
        assert_eq!(classify(400, &body.to_string()).kind, expected, "{message}");
    }
}

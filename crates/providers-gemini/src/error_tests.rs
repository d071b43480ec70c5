use ModelErrorKind::{
    Authentication, ContextOverflow, InvalidRequest, NotFound, Overloaded, Permission,
    QuotaExhausted, RateLimited, Unsupported,
};
use http::HeaderMap;
use serde_json::json;
use switchboard_domain::ModelErrorKind;
use switchboard_providers_common::{ClassifiedError, ErrorClassifier as _, HttpFailure};

use super::*;

fn classify(status: u16, body: &[u8]) -> ClassifiedError {
    let headers = HeaderMap::new();
    ERRORS.classify_failure(&HttpFailure {
        status,
        headers: &headers,
        body,
        retry_after: None,
    })
}

fn kind(status: u16, body: &Value) -> ModelErrorKind {
    classify(status, body.to_string().as_bytes()).kind
}

fn error(code: u16, status: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "status": status}})
}

fn with_details(code: u16, status: &str, details: &Value) -> Value {
    json!({"error": {"code": code, "message": "Because.", "status": status, "details": details}})
}

const INVALID: ModelErrorKind = InvalidRequest { field: None };
const BUSY: ModelErrorKind = Overloaded { retry_after: None };

#[test]
fn every_word_of_google_rpc_has_its_kind() {
    for (code, status, expected) in [
        (401, "UNAUTHENTICATED", Authentication),
        (403, "PERMISSION_DENIED", Permission),
        (404, "NOT_FOUND", NotFound),
        (400, "INVALID_ARGUMENT", INVALID),
        (400, "FAILED_PRECONDITION", INVALID),
        (400, "OUT_OF_RANGE", INVALID),
        (429, "RESOURCE_EXHAUSTED", RateLimited { retry_after: None }),
        (503, "UNAVAILABLE", BUSY),
        (500, "INTERNAL", BUSY),
        (504, "DEADLINE_EXCEEDED", BUSY),
        (499, "CANCELLED", BUSY),
        (
            501,
            "UNIMPLEMENTED",
            Unsupported {
                feature: "this request".into(),
            },
        ),
        (400, "SOMETHING_NEW", INVALID),
        (503, "", BUSY),
        (429, "", RateLimited { retry_after: None }),
    ] {
        let body = error(code, status, "Because.");
        assert_eq!(kind(code, &body), expected, "{code} {status}");
        // In the answer to a streaming request, the API sends the error in a list.
        assert_eq!(kind(code, &json!([body])), expected, "[{code} {status}]");
        assert_eq!(
            classify(code, body.to_string().as_bytes()).message,
            "Because."
        );
    }
}

#[test]
fn a_wrong_key_is_one_though_the_status_is_400() {
    let message = "API key not valid. Please pass a valid API key.";
    let invalid = error(400, "INVALID_ARGUMENT", message);
    assert_eq!(kind(400, &invalid), Authentication);
    let info = json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID", "domain": "googleapis.com",
    }]);
    let invalid = with_details(400, "INVALID_ARGUMENT", &info);
    assert_eq!(kind(400, &invalid), Authentication);
}

#[test]
fn payment_is_asked_for_whatever_the_word_beside_it() {
    for word in ["FAILED_PRECONDITION", "INVALID_ARGUMENT", ""] {
        assert_eq!(kind(402, &error(402, word, "Pay first.")), QuotaExhausted);
    }
}

#[test]
fn the_offending_field_is_named() {
    let details = json!([{
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [{"field": "tools[0].function_declarations[0].parameters", "description": "x"}],
    }]);
    let field = Some("tools[0].function_declarations[0].parameters".to_owned());
    let invalid = with_details(400, "INVALID_ARGUMENT", &details);
    assert_eq!(kind(400, &invalid), InvalidRequest { field });
}

#[test]
fn a_prompt_that_is_too_long_is_told_from_other_refusals() {
    let message = "The input token count (1200000) exceeds the maximum number of tokens allowed \
                   (1048576).";
    let invalid = error(400, "INVALID_ARGUMENT", message);
    assert_eq!(kind(400, &invalid), ContextOverflow);
    let location = "User location is not supported for the API use.";
    let failed = error(400, "FAILED_PRECONDITION", location);
    assert_eq!(kind(400, &failed), Permission);
}

#[test]
fn a_quota_of_the_minute_passes_and_one_of_the_day_does_not() {
    let exhausted = |quota: &str, value: &str, delay: Value| {
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
                "quotaId": quota, "quotaValue": value,
            }]},
            {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
        ]);
        kind(429, &with_details(429, "RESOURCE_EXHAUSTED", &details))
    };
    let limited = |millis| RateLimited {
        retry_after: Some(Duration::from_millis(millis)),
    };
    let minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
    assert_eq!(exhausted(minute, "5", json!("34.5s")), limited(34_500));
    for delay in [json!({"seconds": "7"}), json!({"seconds": 7, "nanos": 1})] {
        let kind = exhausted(minute, "5", delay.clone());
        assert_eq!(kind, limited(7_000), "{delay}");
    }
    for odd in [
        json!("soon"),
        json!("-1s"),
        json!("1e300s"),
        json!(null),
        json!(3),
    ] {
        let unknown = RateLimited { retry_after: None };
        assert_eq!(exhausted(minute, "5", odd.clone()), unknown, "{odd}");
    }
    let day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
    assert_eq!(exhausted(day, "50", json!("34s")), QuotaExhausted);
    assert_eq!(exhausted(minute, "0", json!("34s")), QuotaExhausted);
    let info = json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED",
        "metadata": {"quota_limit": "Gemini25ProRequestsPerDay"},
    }]);
    let of_the_day = with_details(429, "RESOURCE_EXHAUSTED", &info);
    assert_eq!(kind(429, &of_the_day), QuotaExhausted);
    let credits = "Your prepayment credits are depleted.";
    let depleted = error(429, "RESOURCE_EXHAUSTED", credits);
    assert_eq!(kind(429, &depleted), QuotaExhausted);
}

#[test]
fn the_header_wins_over_the_body_about_when_to_come_back() {
    let body = with_details(
        503,
        "UNAVAILABLE",
        &json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "9s"}]),
    );
    let error = ERRORS.find_api_error(&body).unwrap();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let busy = |retry_after| Overloaded { retry_after };
    assert_eq!(ERRORS.error_kind(&error, Some(503), None), busy(seconds(9)));
    let expected = busy(seconds(2));
    assert_eq!(ERRORS.error_kind(&error, Some(503), seconds(2)), expected);
}

#[test]
fn what_litellm_calls_a_bad_request_is_told_apart() {
    for (kind_of_error, message, expected) in [
        (
            "invalid_request_error",
            "generate_content: Invalid model name passed in model=gemini-unknown. Call `/v1/models`",
            NotFound,
        ),
        ("no_db_connection", "No connected db.", Authentication),
    ] {
        let body = json!({"error": {"message": message, "type": kind_of_error, "param": null,
                                    "code": "400"}});
        assert_eq!(kind(400, &body), expected, "{message}");
    }
}

//! The API's errors: `{"error": {code, message, status, details}}`, sometimes in a list. `status`
//! is a code of `google.rpc.Code`, `details` are messages of `google.rpc`.

use std::time::Duration;

use serde_json::{Map, Value};
use switchboard_providers_common::provider::{
    ApiError, ErrorClass, ErrorRule, ErrorTable, value_to_text,
};

/// Error code that [`read_error_details`] adds if the exhausted quota is not refilled soon, such as
/// a quota per day or a quota of zero. The API itself does not have this code.
const LONG_QUOTA: &str = "LONG_QUOTA";

/// The table that maps the API's error codes and messages to error classes.
pub(crate) static ERRORS: ErrorTable = ErrorTable {
    details: read_error_details,
    rules: RULES,
    not_found_hint: "",
};

const RULES: &[ErrorRule] = &[
    // The API refuses a wrong key with status 400, which alone would mean an invalid request.
    ErrorRule::match_codes(&["API_KEY_INVALID"], ErrorClass::Authentication),
    ErrorRule::match_messages(
        &["api key not valid", "api key expired"],
        ErrorClass::Authentication,
    ),
    ErrorRule::match_messages(
        &[
            "exceeds the maximum number of tokens",
            "input token count exceeds",
        ],
        ErrorClass::ContextOverflow,
    ),
    ErrorRule::match_messages(
        &["location is not supported", "not available in your country"],
        ErrorClass::Permission,
    ),
    ErrorRule::match_codes(&[LONG_QUOTA], ErrorClass::QuotaExhausted),
    ErrorRule::match_messages(
        &["credits are depleted", "spending cap"],
        ErrorClass::QuotaExhausted,
    ),
    ErrorRule::match_codes(&["UNAUTHENTICATED"], ErrorClass::Authentication),
    ErrorRule::match_codes(&["PERMISSION_DENIED"], ErrorClass::Permission),
    ErrorRule::match_codes(&["NOT_FOUND"], ErrorClass::NotFound),
    ErrorRule::match_codes(&["RESOURCE_EXHAUSTED"], ErrorClass::RateLimited),
    ErrorRule::match_codes(
        &[
            "INVALID_ARGUMENT",
            "FAILED_PRECONDITION",
            "OUT_OF_RANGE",
            "ALREADY_EXISTS",
        ],
        ErrorClass::InvalidRequest,
    ),
    ErrorRule::match_codes(&["UNIMPLEMENTED"], ErrorClass::Unsupported("this request")),
    ErrorRule::match_codes(
        &[
            "UNAVAILABLE",
            "INTERNAL",
            "DEADLINE_EXCEEDED",
            "ABORTED",
            "CANCELLED",
            "UNKNOWN",
            "DATA_LOSS",
        ],
        ErrorClass::Overloaded,
    ),
];

/// Reads the `google.rpc` messages in the error field `details`. Sets the codes, the invalid field
/// and the retry delay of `error`.
fn read_error_details(fields: &Map<String, Value>, error: &mut ApiError) {
    let details = fields.get("details").and_then(Value::as_array);
    for detail in details.into_iter().flatten() {
        let kind = detail.get("@type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().rsplit('.').next();
        let list = |name: &str| detail.get(name).and_then(Value::as_array);
        match kind.unwrap_or_default() {
            "ErrorInfo" => {
                error.codes.insert(0, value_to_text(detail.get("reason")));
                let limit = detail.get("metadata").and_then(|it| it.get("quota_limit"));
                if value_to_text(limit).contains("PerDay") {
                    error.codes.push(LONG_QUOTA.to_owned());
                }
            }
            "BadRequest" => {
                let first = list("fieldViolations").and_then(|list| list.first());
                let field = value_to_text(first.and_then(|it| it.get("field")));
                error.field = Some(field).filter(|field| !field.is_empty());
            }
            "RetryInfo" => error.retry_after = detail.get("retryDelay").and_then(parse_duration),
            "QuotaFailure" => {
                let is_long = list("violations").into_iter().flatten().any(|violation| {
                    value_to_text(violation.get("quotaId")).contains("PerDay")
                        || value_to_text(violation.get("quotaValue")) == "0"
                });
                if is_long {
                    error.codes.push(LONG_QUOTA.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// Parses a `google.protobuf.Duration`: `"34.07s"`, or an object with `seconds`. Returns `None` for
/// any other value.
fn parse_duration(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::String(text) => text.trim().strip_suffix('s')?.parse::<f64>().ok()?,
        Value::Object(parts) => match parts.get("seconds")? {
            Value::String(text) => text.parse().ok()?,
            other => other.as_f64()?,
        },
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

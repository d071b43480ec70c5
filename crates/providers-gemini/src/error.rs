//! What the API says when it fails: `{"error": {code, message, status, details}}`, sometimes in a
//! list. `status` is a word of `google.rpc.Code`, `details` are messages of `google.rpc`.

use std::time::Duration;

use serde_json::Value;
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{
    Classified, ErrorClassifier, HttpFailure, StatusClassifier, classify::kind_of_status,
};

/// Reads the answers of a server that are no success.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GeminiErrors;

impl ErrorClassifier for GeminiErrors {
    fn classify(&self, failure: &HttpFailure<'_>) -> Classified {
        let by_status = StatusClassifier.classify(failure);
        let body = serde_json::from_slice::<Value>(failure.body);
        let Some(error) = body.ok().as_ref().and_then(ApiError::from_body) else {
            return by_status;
        };
        Classified {
            kind: error.classify(Some(failure.status), failure.retry_after),
            message: if error.message.is_empty() {
                by_status.message
            } else {
                error.message
            },
            request_id: None,
        }
    }
}

/// An error in the API's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// For people.
    pub(crate) message: String,
    /// The HTTP status; absent in some that come within a stream.
    pub(crate) code: Option<u16>,
    /// The class, such as `INVALID_ARGUMENT`.
    pub(crate) status: String,
    /// The exact cause, such as `API_KEY_INVALID`.
    pub(crate) reason: String,
    /// The offending field.
    pub(crate) field: Option<String>,
    /// When to come back.
    pub(crate) retry_after: Option<Duration>,
    /// A quota that does not fill up soon: a day's, or one of nothing.
    pub(crate) long_quota: bool,
}

impl ApiError {
    /// Reads an error out of a body or a chunk; `None` if there is none in it.
    pub(crate) fn from_body(body: &Value) -> Option<Self> {
        match body {
            Value::Array(list) => list.iter().find_map(Self::from_body),
            Value::Object(object) => {
                let error = object.get("error").filter(|error| is_error(error));
                match error {
                    Some(error) => Some(Self::from_error(error)),
                    // Proxies leave the wrapping out.
                    None => object
                        .get("message")
                        .filter(|it| it.is_string())
                        .map(|_| Self::from_error(body)),
                }
            }
            _ => None,
        }
    }

    /// Reads the value of the field `error`.
    pub(crate) fn from_error(error: &Value) -> Self {
        let Value::Object(fields) = error else {
            return Self {
                message: words(Some(error)),
                ..Self::default()
            };
        };
        let mut read = Self {
            message: words(fields.get("message")),
            code: fields.get("code").and_then(number),
            status: words(fields.get("status")),
            ..Self::default()
        };
        let details = fields.get("details").and_then(Value::as_array);
        for detail in details.into_iter().flatten() {
            read.detail(detail);
        }
        read
    }

    fn detail(&mut self, detail: &Value) {
        let kind = detail.get("@type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().rsplit('.').next();
        let list = |name: &str| detail.get(name).and_then(Value::as_array);
        match kind.unwrap_or_default() {
            "ErrorInfo" => {
                self.reason = words(detail.get("reason"));
                let limit = detail.get("metadata").and_then(|it| it.get("quota_limit"));
                self.long_quota |= words(limit).contains("PerDay");
            }
            "BadRequest" => {
                let first = list("fieldViolations").and_then(|list| list.first());
                let field = words(first.and_then(|it| it.get("field")));
                self.field = Some(field).filter(|field| !field.is_empty());
            }
            "RetryInfo" => self.retry_after = detail.get("retryDelay").and_then(duration),
            "QuotaFailure" => {
                let violations = list("violations").into_iter().flatten();
                self.long_quota |= violations.into_iter().any(|violation| {
                    let says = |name: &str| words(violation.get(name));
                    says("quotaId").contains("PerDay") || says("quotaValue") == "0"
                });
            }
            _ => {}
        }
    }

    /// The error as the domain has it. `http` is the response's own status, or `None` when the error
    /// came within a stream that had begun with 200.
    pub(crate) fn classify(
        &self,
        http: Option<u16>,
        retry_after: Option<Duration>,
    ) -> ModelErrorKind {
        let retry_after = retry_after.or(self.retry_after);
        let message = self.message.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|it| message.contains(it));
        // The API answers 400 to a wrong key.
        if self.reason == "API_KEY_INVALID" || says(&["api key not valid", "api key expired"]) {
            return ModelErrorKind::Authentication;
        }
        // LiteLLM's proxy, which answers 400 to both: a wrong key without a database, and no such model.
        if says(&["no connected db."]) {
            return ModelErrorKind::Authentication;
        }
        if says(&["invalid model name passed in model="]) {
            return ModelErrorKind::NotFound;
        }
        if says(&[
            "exceeds the maximum number of tokens",
            "input token count exceeds",
        ]) {
            return ModelErrorKind::ContextOverflow;
        }
        let invalid = || ModelErrorKind::InvalidRequest {
            field: self.field.clone(),
        };
        let status = http.or(self.code);
        if status == Some(402) {
            // Google sends none; from a gateway it is about payment whatever the word beside it.
            return ModelErrorKind::QuotaExhausted;
        }
        match self.status.as_str() {
            "UNAUTHENTICATED" => ModelErrorKind::Authentication,
            "PERMISSION_DENIED" => ModelErrorKind::Permission,
            "NOT_FOUND" => ModelErrorKind::NotFound,
            "FAILED_PRECONDITION"
                if says(&["location is not supported", "not available in your country"]) =>
            {
                ModelErrorKind::Permission
            }
            "RESOURCE_EXHAUSTED"
                if self.long_quota || says(&["credits are depleted", "spending cap"]) =>
            {
                ModelErrorKind::QuotaExhausted
            }
            "RESOURCE_EXHAUSTED" => ModelErrorKind::RateLimited { retry_after },
            "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" | "ALREADY_EXISTS" => {
                invalid()
            }
            "UNIMPLEMENTED" => ModelErrorKind::Unsupported {
                feature: "this request".to_owned(),
            },
            "UNAVAILABLE" | "INTERNAL" | "DEADLINE_EXCEEDED" | "ABORTED" | "CANCELLED"
            | "UNKNOWN" | "DATA_LOSS" => ModelErrorKind::Overloaded { retry_after },
            _ => match status {
                Some(429) if self.long_quota => ModelErrorKind::QuotaExhausted,
                Some(400 | 413 | 422) => invalid(),
                Some(status) => kind_of_status(status, retry_after),
                // It came in the middle of an answer and does not say why.
                None => ModelErrorKind::Interrupted,
            },
        }
    }

    /// The error of `provider` that came within a stream or a body with status 200.
    pub(crate) fn in_band(&self, provider: &str) -> ModelError {
        let message = if self.message.is_empty() {
            "the server broke the answer off with an error"
        } else {
            &self.message
        };
        ModelError::new(provider, self.classify(None, None), message)
    }
}

/// Whether the value of a field `error` is one: `null`, `""`, `{}` and `false` are not.
pub(crate) fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

/// An HTTP status, as a number or as text.
fn number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_u64()?,
    };
    u16::try_from(number).ok().filter(|code| *code >= 100)
}

/// A `google.protobuf.Duration`: `"34.07s"`, or its parts.
fn duration(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::String(text) => text.trim().strip_suffix('s')?.parse::<f64>().ok()?,
        Value::Object(parts) => {
            let seconds = parts.get("seconds")?;
            match seconds {
                Value::String(text) => text.parse().ok()?,
                other => other.as_f64()?,
            }
        }
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn words(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

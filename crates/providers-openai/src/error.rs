//! What the API says when it fails: `{"error": {message, type, param, code}}`, and what compatible
//! servers make of that.

use std::time::Duration;

use serde_json::Value;
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{Classified, ErrorClassifier, HttpFailure, StatusClassifier};

/// Reads the answers of a server that are no success.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiErrors;

impl ErrorClassifier for ApiErrors {
    fn classify(&self, failure: &HttpFailure<'_>) -> Classified {
        let by_status = StatusClassifier.classify(failure);
        let body = serde_json::from_slice::<Value>(failure.body);
        let Some(error) = body.ok().as_ref().and_then(ApiError::from_body) else {
            return if failure.status == 404 {
                // No server of this wire answers so: most often the address stops short.
                let message = format!(
                    "{} (the base address must reach up to and with /v1, or what this server has \
                     in its place)",
                    by_status.message
                );
                Classified {
                    message: message.trim_start().to_owned(),
                    ..by_status
                }
            } else {
                by_status
            };
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
    /// The class, such as `invalid_request_error`.
    pub(crate) kind: String,
    /// The offending field.
    pub(crate) param: Option<String>,
    /// The exact cause, such as `context_length_exceeded`; some servers put an HTTP status here.
    pub(crate) code: String,
}

impl ApiError {
    /// Reads an error out of a body or a chunk; `None` if there is none in it.
    ///
    /// Beside OpenAI's form: `{"error": "text"}`, the same in a list (Gemini's compatible
    /// endpoint), `{"object": "error", …}` (vLLM), `{"message": …}` and `{"detail": …}`.
    pub(crate) fn from_body(body: &Value) -> Option<Self> {
        match body {
            Value::Array(list) => list.iter().find_map(Self::from_body),
            Value::Object(object) => {
                if let Some(error) = object.get("error").filter(|error| is_error(error)) {
                    return Some(Self::from_error(error));
                }
                let unwrapped = object.get("message").or_else(|| object.get("detail"))?;
                Some(Self {
                    message: words(unwrapped),
                    ..Self::from_error(body)
                })
            }
            _ => None,
        }
    }

    /// Reads the value of the field `error`.
    pub(crate) fn from_error(error: &Value) -> Self {
        let text = |name: &str| error.get(name).map(words).unwrap_or_default();
        match error {
            Value::Object(_) => Self {
                message: text("message"),
                kind: text("type"),
                param: Some(text("param")).filter(|param| !param.is_empty()),
                code: text("code"),
            },
            other => Self {
                message: words(other),
                ..Self::default()
            },
        }
    }

    /// The error as the domain has it. `status` is the response's own, or `None` when the error came
    /// within a stream that had begun with 200.
    pub(crate) fn classify(
        &self,
        status: Option<u16>,
        retry_after: Option<Duration>,
    ) -> ModelErrorKind {
        let by_word = || {
            [&self.code, &self.kind]
                .into_iter()
                .find_map(|word| by_word(word, retry_after))
        };
        // Some servers give the HTTP status as `code`.
        let status = status.or_else(|| self.code.parse().ok());
        let may_be_too_long = matches!(status, None | Some(400 | 413 | 422));
        if may_be_too_long && says_too_long(&self.message) {
            return ModelErrorKind::ContextOverflow;
        }
        // LiteLLM's proxy, which has neither a code nor a field for it.
        if status == Some(400) && self.message.contains("Invalid model name passed in model=") {
            return ModelErrorKind::NotFound;
        }
        by_word()
            .or_else(|| status.and_then(|status| self.by_status(status, retry_after)))
            .unwrap_or_else(|| {
                if self.param.is_some() || self.kind.to_ascii_lowercase().contains("invalid") {
                    self.invalid()
                } else if status.is_none() {
                    // It came in the middle of an answer and does not say why.
                    ModelErrorKind::Interrupted
                } else {
                    ModelErrorKind::Protocol
                }
            })
    }

    fn by_status(&self, status: u16, retry_after: Option<Duration>) -> Option<ModelErrorKind> {
        Some(match status {
            400 | 413 | 422 => self.invalid(),
            401 => ModelErrorKind::Authentication,
            402 => ModelErrorKind::QuotaExhausted,
            403 => ModelErrorKind::Permission,
            404 => ModelErrorKind::NotFound,
            429 => ModelErrorKind::RateLimited { retry_after },
            // The official SDK tries again after 408 (time-out) and 409 (lock) too.
            408 | 409 | 500.. => ModelErrorKind::Overloaded { retry_after },
            _ => return None,
        })
    }

    fn invalid(&self) -> ModelErrorKind {
        ModelErrorKind::InvalidRequest {
            field: self.param.clone(),
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

/// Whether the value of a field `error` is one: `null`, `""`, `{}` and `false` are not, as in the
/// official SDK.
pub(crate) fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

/// What `code` or `type` says alone. Words that say no more than the status, such as
/// `invalid_request_error`, are not here.
fn by_word(word: &str, retry_after: Option<Duration>) -> Option<ModelErrorKind> {
    Some(match word {
        "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "insufficient_balance"
        | "exceeded_current_quota_error" => ModelErrorKind::QuotaExhausted,
        "context_length_exceeded" | "context_window_exceeded" | "exceed_context_size_error" => {
            ModelErrorKind::ContextOverflow
        }
        "content_filter"
        | "content_policy_violation"
        | "ResponsibleAIPolicyViolation"
        | "moderation_blocked"
        | "image_content_policy_violation"
        | "bio_policy"
        | "misalignment_policy_violation" => ModelErrorKind::ContentFilter,
        // The last one is of LiteLLM's proxy: only its master key needs no database to look it up in.
        "invalid_api_key"
        | "authentication_error"
        | "invalid_authentication_error"
        | "no_db_connection" => ModelErrorKind::Authentication,
        "permission_error" | "permission_denied" | "unsupported_country_region_territory" => {
            ModelErrorKind::Permission
        }
        "model_not_found" | "not_found_error" | "NotFoundError" => ModelErrorKind::NotFound,
        "rate_limit_exceeded" | "rate_limit_error" | "rate_limit_reached_error" => {
            ModelErrorKind::RateLimited { retry_after }
        }
        "server_error"
        | "internal_server_error"
        | "InternalServerError"
        | "overloaded_error"
        | "engine_overloaded_error"
        | "service_unavailable"
        | "vector_store_timeout"
        | "timeout" => ModelErrorKind::Overloaded { retry_after },
        // Of a `response.failed`, which has neither a status nor a field.
        "invalid_prompt"
        | "data_residency_mismatch"
        | "empty_image_file"
        | "failed_to_download_image"
        | "unsupported_image_media_type" => ModelErrorKind::InvalidRequest { field: None },
        image
            if image.starts_with("invalid_image")
                || image.starts_with("image_")
                || image == "invalid_base64_image" =>
        {
            ModelErrorKind::InvalidRequest { field: None }
        }
        _ => return None,
    })
}

/// Servers without a code for it (vLLM, llama.cpp, xAI, proxies to Gemini, Anthropic and Bedrock) say
/// it in words.
fn says_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "maximum context length",
        "maximum prompt length",
        "context window",
        "contextwindowexceeded",
        "exceeds the available context size",
        "exceeds the maximum number of tokens",
        "prompt is too long",
        "input is too long",
    ]
    .iter()
    .any(|words| message.contains(words))
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

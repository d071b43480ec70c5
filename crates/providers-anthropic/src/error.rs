//! What the API says when it fails:
//! `{"type": "error", "error": {type, message, details: {error_code}}, "request_id"}`.
//!
//! Classes and codes are those of the types of the official SDK (anthropic 2.11.0). Messages are
//! matched only where there is no code: for a prompt that is too long and an empty account, as
//! reported in public issue threads (docker-agent#569, claude-code#12186, claude-code#66314).

use std::time::Duration;

use serde_json::Value;
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{
    Classified, ErrorClassifier, HttpFailure, StatusClassifier, http::classify::kind_of_status,
};

/// Reads the API's error bodies; anything else, such as a proxy's page, is read by its status.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnthropicErrors;

impl ErrorClassifier for AnthropicErrors {
    fn classify(&self, failure: &HttpFailure<'_>) -> Classified {
        let body: Option<Value> = serde_json::from_slice(failure.body).ok();
        let Some(error) = body.as_ref().and_then(ApiError::from_body) else {
            return StatusClassifier.classify(failure);
        };
        Classified {
            kind: error.kind(Some(failure.status), failure.retry_after),
            message: error.message,
            request_id: error.request_id,
        }
    }
}

/// An error in the API's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// For people.
    pub(crate) message: String,
    /// The class, such as `invalid_request_error`.
    pub(crate) class: String,
    /// The exact cause, such as `enforced_spend_limit_reached`, where there is one.
    pub(crate) code: String,
    pub(crate) request_id: Option<String>,
}

impl ApiError {
    /// Reads an error out of a body or an event; `None` if there is none in it.
    ///
    /// Beside the API's form: `{"error": "text"}`, and `{"message": …}` and `{"detail": …}` of
    /// servers and gateways that speak the wire.
    pub(crate) fn from_body(body: &Value) -> Option<Self> {
        let request_id = text(body, "request_id");
        let request_id = Some(request_id).filter(|id| !id.is_empty());
        let error = body.get("error").filter(|error| says_something(error));
        match error {
            Some(Value::Object(_)) => {
                let error = error?;
                let details = error.get("details").unwrap_or(&Value::Null);
                Some(Self {
                    message: text(error, "message"),
                    class: text(error, "type"),
                    code: text(details, "error_code"),
                    request_id,
                })
            }
            Some(other) => Some(Self {
                message: words(other),
                request_id,
                ..Self::default()
            }),
            None => {
                let unwrapped = body.get("message").or_else(|| body.get("detail"))?;
                Some(Self {
                    message: words(unwrapped),
                    request_id,
                    ..Self::default()
                })
            }
        }
    }

    /// What went wrong. `status` is the response's own, or `None` when the error came within a
    /// stream that had begun with 200.
    pub(crate) fn kind(
        &self,
        status: Option<u16>,
        retry_after: Option<Duration>,
    ) -> ModelErrorKind {
        if self.code.ends_with("_spend_limit_reached") {
            // Some of these are 429, which would be tried again.
            return ModelErrorKind::QuotaExhausted;
        }
        if self.code == "organization_on_hold" {
            return ModelErrorKind::Permission;
        }
        let is_refused = self.class == "invalid_request_error" || matches!(status, Some(400 | 413));
        if is_refused && says_too_long(&self.message) {
            return ModelErrorKind::ContextOverflow;
        }
        if is_refused && says_account_is_empty(&self.message) {
            return ModelErrorKind::QuotaExhausted;
        }
        // LiteLLM's proxy, which answers 400 to both: a wrong key without a database, and no such model.
        if self.class == "no_db_connection" || self.message.contains("No connected db.") {
            return ModelErrorKind::Authentication;
        }
        if is_refused && self.message.contains("Invalid model name passed in model=") {
            return ModelErrorKind::NotFound;
        }
        // Gateways that speak OpenAI's wire too call everything so: a status that says more counts.
        if self.class == "invalid_request_error"
            && let Some(status @ (401..)) = status
        {
            let kind = kind_of_status(status, retry_after);
            if !matches!(kind, ModelErrorKind::InvalidRequest { .. }) {
                return kind;
            }
        }
        match self.class.as_str() {
            "invalid_request_error" | "request_too_large" => ModelErrorKind::InvalidRequest {
                field: field(&self.message),
            },
            "authentication_error" => ModelErrorKind::Authentication,
            "billing_error" => ModelErrorKind::QuotaExhausted,
            "permission_error" => ModelErrorKind::Permission,
            "not_found_error" => ModelErrorKind::NotFound,
            "rate_limit_error" => ModelErrorKind::RateLimited { retry_after },
            "overloaded_error" | "api_error" | "timeout_error" | "conflict_error" => {
                ModelErrorKind::Overloaded { retry_after }
            }
            _ => match status.map(|status| kind_of_status(status, retry_after)) {
                Some(ModelErrorKind::InvalidRequest { .. }) => ModelErrorKind::InvalidRequest {
                    field: field(&self.message),
                },
                Some(kind) => kind,
                // It came in the middle of an answer and does not say why.
                None => ModelErrorKind::Interrupted,
            },
        }
    }

    /// The error of `provider` that came within a stream or a body with status 200.
    pub(crate) fn in_band(self, provider: &str) -> ModelError {
        let kind = self.kind(None, None);
        let message = if self.message.is_empty() {
            "the server broke the answer off with an error".to_owned()
        } else {
            self.message
        };
        ModelError::new(provider, kind, message).with_request_id(self.request_id)
    }
}

/// Whether the API refuses the conversation because of the model's own thinking in it: signed for
/// another beginning of the conversation, or changed on its way.
pub(crate) fn is_about_thinking(error: &ModelError) -> bool {
    let is_refused = matches!(error.kind, ModelErrorKind::InvalidRequest { .. });
    is_refused
        && [
            "bound to a different conversation",
            "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be",
            "Invalid `signature` in `thinking` block",
        ]
        .iter()
        .any(|words| error.message().contains(words))
}

/// Whether the API refuses a forced tool choice to this model or with its thinking: "`tool_choice`:
/// type "tool" and "any" are not supported for this model", "`tool_choice` forces tool use is not
/// compatible with this model", "Thinking may not be enabled when `tool_choice` forces tool use".
pub(crate) fn is_about_forced_choice(error: &ModelError) -> bool {
    let is_refused = matches!(error.kind, ModelErrorKind::InvalidRequest { .. });
    let message = error.message();
    is_refused
        && message.contains("tool_choice")
        && (message.contains("not supported for this model") || message.contains("forces tool use"))
}

/// The field that a message begins with: `messages.3.content.0.tool_result: …`,
/// `max_tokens: 200000 > 128000, …`.
fn field(message: &str) -> Option<String> {
    let (path, _) = message.split_once(": ")?;
    let first = path.split('.').next()?;
    let fields = [
        "messages",
        "tools",
        "tool_choice",
        "system",
        "model",
        "max_tokens",
        "thinking",
        "output_config",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
    ];
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '[' | ']');
    (fields.contains(&first) && path.chars().all(is_path)).then(|| path.to_owned())
}

fn says_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "prompt is too long",
        "exceed context limit",
        "exceeds the model's context",
        // Servers that speak the wire with models of their own.
        "maximum context length",
    ]
    .iter()
    .any(|words| message.contains(words))
}

fn says_account_is_empty(message: &str) -> bool {
    message
        .to_ascii_lowercase()
        .contains("credit balance is too low")
}

/// Whether the value of a field `error` is one.
pub(crate) fn says_something(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

fn text(object: &Value, name: &str) -> String {
    object.get(name).map(words).unwrap_or_default()
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

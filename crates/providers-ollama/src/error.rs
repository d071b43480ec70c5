//! Errors of the API: `{"error": "…"}`, a text without a code.
//!
//! The texts come from the server's source (`server/routes.go`, `server/sched.go`,
//! `llm/llama_server.go`) and, for the cloud, from public issue threads.

use std::time::Duration;

use serde_json::Value;
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{Classified, ErrorClassifier, HttpFailure, StatusClassifier};

/// The feature that a model without tools lacks.
pub(crate) const TOOLS: &str = "tool use by this model";
/// Advice for a model that does not support tools.
pub(crate) const TOOLS_WAY_OUT: &str =
    "set `tools_by_prompt` to describe tools to such models in the prompt";
/// The feature that a model lacks that does not think.
pub(crate) const THINKING: &str = "thinking by this model";
/// The feature that older servers lack for most models.
pub(crate) const THINKING_LEVELS: &str = "a level of thinking (`think`) by this server";

/// Parses error responses of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OllamaErrors {
    /// Whether it is the cloud that answers: nothing can be pulled there.
    pub(crate) cloud: bool,
}

impl ErrorClassifier for OllamaErrors {
    fn classify(&self, failure: &HttpFailure<'_>) -> Classified {
        let by_status = StatusClassifier.classify(failure);
        let body = serde_json::from_slice::<Value>(failure.body).ok();
        let error = body.as_ref().and_then(|body| body.get("error"));
        let Some(error) = error.filter(|error| is_error(error)) else {
            let message = if failure.status == 404 {
                // gin's own words for a path that it does not serve.
                format!(
                    "{} (is this address an Ollama server's, without /v1 or /api at its end?)",
                    by_status.message
                )
            } else {
                by_status.message
            };
            return Classified {
                message: message.trim_start().to_owned(),
                ..by_status
            };
        };
        let mut error = ApiError::from_error(error);
        let kind = error.classify(Some(failure.status), failure.retry_after);
        error.add_way_out(&kind, self.cloud);
        Classified {
            kind,
            message: error.message,
            request_id: None,
        }
    }
}

/// An error in the server's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// For people.
    pub(crate) message: String,
}

impl ApiError {
    /// Reads the value of the field `error`.
    pub(crate) fn from_error(error: &Value) -> Self {
        let message = match error {
            Value::String(text) => text.clone(),
            // Of servers that only speak like Ollama.
            Value::Object(object) => match object.get("message") {
                Some(Value::String(text)) => text.clone(),
                _ => error.to_string(),
            },
            other => other.to_string(),
        };
        Self { message }
    }

    /// Converts the error. `status` is the status of the response, or `None` if the error arrived
    /// in a stream with status 200.
    pub(crate) fn classify(
        &self,
        status: Option<u16>,
        retry_after: Option<Duration>,
    ) -> ModelErrorKind {
        let message = self.message.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        let lacks = |feature: &str| ModelErrorKind::Unsupported {
            feature: feature.to_owned(),
        };
        if says(&["does not support tools"]) {
            return lacks(TOOLS);
        }
        if says(&["does not support thinking"]) {
            return lacks(THINKING);
        }
        if says(&["think value"]) && says(&["not supported"]) {
            return lacks(THINKING_LEVELS);
        }
        if says(&[
            "does not support vision",
            "does not support image",
            "image input is not supported",
            "missing data required for image input",
        ]) {
            return lacks("an image given to this model");
        }
        if says(&["does not support chat", "does not support completion"]) {
            return lacks("a conversation with this model");
        }
        if says(&[
            "longer than the context length",
            "exceeds the context length",
            "exceeds maximum context length",
            "exceeds the available context",
        ]) {
            return ModelErrorKind::ContextOverflow;
        }
        if says(&["requires more system memory", "out of memory"]) {
            // It comes as 500, but does not pass.
            return lacks("a model of this size on its machine");
        }
        if says(&["usage limit"]) {
            // The cloud's limits by the hour, session and week: 429 without a time to come back.
            return ModelErrorKind::QuotaExhausted;
        }
        if says(&["server busy"]) {
            return ModelErrorKind::Overloaded { retry_after };
        }
        if let Some(field) = self.field() {
            return ModelErrorKind::InvalidRequest { field: Some(field) };
        }
        match status {
            // It came in the middle of an answer.
            None if says(&["not found"]) => ModelErrorKind::NotFound,
            None => ModelErrorKind::Interrupted,
            // The request was given up while it waited for the model to be loaded.
            Some(499) => ModelErrorKind::Overloaded { retry_after },
            Some(status) => {
                switchboard_providers_common::http::classify::kind_of_status(status, retry_after)
            }
        }
    }

    /// The field that the server could not read.
    fn field(&self) -> Option<String> {
        let message = &self.message;
        // A decoding error of Go: "json: cannot unmarshal bool into Go struct field
        // ChatRequest.tools.… of type …"
        if let Some((_, rest)) = message.split_once("Go struct field ") {
            let name = rest.split_whitespace().next()?;
            let name = name.split_once('.').map_or(name, |(_, field)| field);
            return Some(name.to_owned());
        }
        let words = [
            ("invalid format", "format"),
            ("invalid think value", "think"),
            ("think must be", "think"),
            ("option \"", "options"),
            ("illegal base64", "messages.images"),
        ];
        let found = words.iter().find(|(words, _)| message.contains(words));
        found.map(|(_, field)| (*field).to_owned())
    }

    /// Whether the server could not read the tool call that its model wrote.
    pub(crate) fn is_malformed_call(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        message.contains("error parsing tool call") || message.contains("invalid tool call")
    }

    /// Adds advice for the user.
    fn add_way_out(&mut self, kind: &ModelErrorKind, cloud: bool) {
        let way_out = match kind {
            ModelErrorKind::NotFound if cloud => {
                "; the cloud's models are listed at ollama.com/search?c=cloud".to_owned()
            }
            ModelErrorKind::NotFound => match self.model() {
                Some(model) => format!("; `ollama pull {model}` gets it"),
                None => return,
            },
            ModelErrorKind::Authentication => {
                "; set OLLAMA_API_KEY, or sign the server in with `ollama signin`".to_owned()
            }
            ModelErrorKind::Unsupported { feature } if feature == TOOLS => {
                format!("; {TOOLS_WAY_OUT}")
            }
            _ => return,
        };
        self.message.push_str(&way_out);
    }

    /// The model in "model 'x' not found" or "model \"x\" not found, try pulling it first".
    fn model(&self) -> Option<&str> {
        let (_, rest) = self.message.split_once("model ")?;
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (name, _) = rest.get(1..)?.split_once(quote)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
        (!name.is_empty() && name.chars().all(plain)).then_some(name)
    }

    /// The error of `provider` that came within a stream or a body with status 200.
    pub(crate) fn in_band(mut self, provider: &str) -> ModelError {
        let kind = self.classify(None, None);
        self.add_way_out(&kind, false);
        ModelError::new(provider, kind, self.message)
    }
}

/// Whether the value of a field `error` is one.
pub(crate) fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

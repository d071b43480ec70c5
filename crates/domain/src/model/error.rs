//! Errors of model requests.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::GrammarViolation;

/// A failed model request, classified in the same way for all providers.
///
/// The [`kind`](ModelError::kind) is the classification. Provider, message and request id are its
/// context. An error contains no secrets: adapters build it from the provider's response, never
/// from the request.
#[derive(Debug)]
pub struct ModelError {
    /// The kind of the failure, which decides whether a retry may succeed.
    pub kind: ModelErrorKind,
    context: Box<ModelErrorDetails>,
}

#[derive(Debug, Default)]
struct ModelErrorDetails {
    provider: String,
    message: String,
    status: Option<u16>,
    request_id: Option<String>,
    /// Whether the HTTP transport expects that a retry may succeed. `None` means that the error
    /// kind decides.
    is_retry_worthwhile: Option<bool>,
    /// The delay before a retry, used only if the error kind contains no delay.
    retry_after: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The classification of a failed model request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variant explains its field")]
pub enum ModelErrorKind {
    /// The API key is missing or wrong.
    #[error("the API key was not accepted")]
    Authentication,
    /// The API key has no permission for the request.
    #[error("not permitted")]
    Permission,
    /// The model or the address of the request does not exist.
    #[error("not found")]
    NotFound,
    /// The provider rejects the request as invalid.
    #[error("the request was refused{}", format_field_reason(field.as_deref()))]
    InvalidRequest {
        /// The invalid field of the request, if the provider names one.
        field: Option<String>,
    },
    /// The provider received too many requests or tokens in a period of time.
    #[error("rate limit reached{}", format_retry_delay(*retry_after))]
    RateLimited {
        /// The delay before the next attempt, if the provider requests one.
        retry_after: Option<Duration>,
    },
    /// The account's credit or quota is used up. A retry does not help.
    #[error("the account's quota is used up")]
    QuotaExhausted,
    /// The provider is overloaded or has an internal error.
    #[error("server error")]
    Overloaded {
        /// The delay before the next attempt, if the provider requests one.
        retry_after: Option<Duration>,
    },
    /// The provider did not respond in time.
    #[error("{} within {after:?}", phase.describe_timeout())]
    Timeout {
        /// The phase in which the request timed out.
        phase: TimeoutPhase,
        /// The time limit that was exceeded.
        after: Duration,
    },
    /// The connection failed before the answer began.
    #[error("no connection")]
    Connection,
    /// The conversation does not fit the model's context window.
    #[error("the conversation exceeds the model's context window")]
    ContextOverflow,
    /// A filter of the provider withheld the prompt or the answer.
    #[error("withheld by a content filter")]
    ContentFilter,
    /// The connection failed after the answer began.
    #[error("the answer was interrupted")]
    Interrupted,
    /// The adapter or the provider's API does not support a requested feature.
    #[error("{feature} is not supported")]
    Unsupported { feature: String },
    /// The provider's response violates its protocol, so it could not be read.
    #[error("the provider's response is invalid")]
    Protocol,
    /// A configuration value is missing or wrong.
    #[error("configuration error")]
    Configuration,
}

/// The phase of a request in which it timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutPhase {
    /// The client waited for a connection.
    Connect,
    /// The client waited for the first byte of the answer.
    FirstByte,
    /// The client waited for the next byte of the answer.
    Idle,
}

impl ModelError {
    /// Returns an error about a request to `provider`, without HTTP status, request id, retry hint
    /// and source.
    pub fn new(
        provider: impl Into<String>,
        kind: ModelErrorKind,
        message: impl Into<String>,
    ) -> Self {
        let context = ModelErrorDetails {
            provider: provider.into(),
            message: message.into(),
            ..ModelErrorDetails::default()
        };
        Self {
            kind,
            context: Box::new(context),
        }
    }

    /// Adds the HTTP status of the response to the error.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.context.status = Some(status);
        self
    }

    /// Adds the provider's id of the request to the error.
    #[must_use]
    pub fn with_request_id(mut self, id: Option<String>) -> Self {
        self.context.request_id = id;
        self
    }

    /// Adds the HTTP transport's advice about a retry. `is_worthwhile` states whether a retry may
    /// succeed, and takes precedence over the default of the error kind. `after` is the delay that
    /// the provider requests. It is used only if the error kind contains no delay.
    #[must_use]
    pub fn with_retry_hint(mut self, is_worthwhile: bool, after: Option<Duration>) -> Self {
        self.context.is_retry_worthwhile = Some(is_worthwhile);
        self.context.retry_after = after;
        self
    }

    /// Replaces the message of the error.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.context.message = message.into();
        self
    }

    /// Adds the underlying error as the source.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.context.source = Some(source.into());
        self
    }

    /// Returns the provider, as in [`ModelId::provider`](crate::ModelId::provider).
    pub fn provider_name(&self) -> &str {
        &self.context.provider
    }

    /// Returns the description of the failure, which the provider sent or the adapter wrote.
    pub fn message(&self) -> &str {
        &self.context.message
    }

    /// Returns the HTTP status of the response, if there is one.
    pub fn http_status(&self) -> Option<u16> {
        self.context.status
    }

    /// Returns the provider's id of the request, which the provider's support asks for.
    pub fn request_id(&self) -> Option<&str> {
        self.context.request_id.as_deref()
    }

    /// Returns whether the failure is temporary, so that the same request may succeed later.
    ///
    /// The caller's policy decides when to retry. [`ModelError::retry_after`] is the delay that the
    /// provider requests.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            ModelErrorKind::RateLimited { .. }
                | ModelErrorKind::Overloaded { .. }
                | ModelErrorKind::Timeout { .. }
                | ModelErrorKind::Connection
        )
    }

    /// Returns whether a retry may succeed. Callers must not retry after they have shown a part of
    /// the answer.
    ///
    /// The hint from [`ModelError::with_retry_hint`] decides. Without a hint, the result is `true`
    /// for transient errors, interrupted answers and protocol errors.
    pub fn is_worth_retrying(&self) -> bool {
        let by_kind = || {
            let is_broken = matches!(
                self.kind,
                ModelErrorKind::Interrupted | ModelErrorKind::Protocol
            );
            is_broken || self.is_transient()
        };
        let hint = self.context.is_retry_worthwhile;
        hint.unwrap_or_else(by_kind)
    }

    /// Returns the delay before the next attempt that the provider requests, or `None` if the
    /// provider requests none.
    pub fn retry_after(&self) -> Option<Duration> {
        let by_kind = match self.kind {
            ModelErrorKind::RateLimited { retry_after }
            | ModelErrorKind::Overloaded { retry_after } => retry_after,
            _ => None,
        };
        by_kind.or(self.context.retry_after)
    }

    /// Returns an error for events that violate the grammar of [`ModelEvent`](crate::ModelEvent).
    /// The error kind is [`ModelErrorKind::Interrupted`] if the stream ended without `Finished`,
    /// otherwise [`ModelErrorKind::Protocol`].
    pub fn from_violation(provider: impl Into<String>, violation: GrammarViolation) -> Self {
        let kind = match violation {
            GrammarViolation::NoFinish => ModelErrorKind::Interrupted,
            _ => ModelErrorKind::Protocol,
        };
        Self::new(provider, kind, violation.to_string()).with_source(violation)
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.context.source.as_deref().map(|source| source as _)
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModelErrorDetails {
            provider,
            message,
            status,
            request_id,
            ..
        } = &*self.context;
        write!(f, "{provider}: {}", self.kind)?;
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        match (status, request_id) {
            (Some(status), Some(id)) => write!(f, " (HTTP {status}, request {id})"),
            (Some(status), None) => write!(f, " (HTTP {status})"),
            (None, Some(id)) => write!(f, " (request {id})"),
            (None, None) => Ok(()),
        }
    }
}

impl ModelErrorKind {
    /// Returns the name of the error kind in JSON and HTTP responses.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Permission => "permission",
            Self::NotFound => "not_found",
            Self::InvalidRequest { .. } => "invalid_request",
            Self::RateLimited { .. } => "rate_limited",
            Self::QuotaExhausted => "quota_exhausted",
            Self::Overloaded { .. } => "overloaded",
            Self::Timeout { .. } => "timeout",
            Self::Connection => "connection",
            Self::ContextOverflow => "context_overflow",
            Self::ContentFilter => "content_filter",
            Self::Interrupted => "interrupted",
            Self::Unsupported { .. } => "unsupported",
            Self::Protocol => "protocol",
            Self::Configuration => "configuration",
        }
    }
}

impl TimeoutPhase {
    fn describe_timeout(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::FirstByte => "no answer",
            Self::Idle => "no further data",
        }
    }
}

fn format_field_reason(field: Option<&str>) -> String {
    field.map_or_else(String::new, |field| format!(" because of `{field}`"))
}

fn format_retry_delay(time: Option<Duration>) -> String {
    time.map_or_else(String::new, |time| format!(", retry in {time:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_provider_error_and_request_id() {
        let error = ModelError::new(
            "openai",
            ModelErrorKind::InvalidRequest {
                field: Some("tools[0]".into()),
            },
            "bad schema",
        )
        .with_status(400)
        .with_request_id(Some("req_1".into()));
        assert_eq!(
            error.to_string(),
            "openai: the request was refused because of `tools[0]`: bad schema \
             (HTTP 400, request req_1)"
        );
    }

    #[test]
    fn the_retry_hint_overrides_the_kind() {
        let table = [
            (ModelErrorKind::Interrupted, None, true),
            (ModelErrorKind::Protocol, None, true),
            (ModelErrorKind::Connection, None, true),
            (ModelErrorKind::Authentication, None, false),
            (ModelErrorKind::Protocol, Some(false), false),
            (ModelErrorKind::Connection, Some(false), false),
            (ModelErrorKind::Permission, Some(true), true),
        ];
        for (kind, hint, expected) in table {
            let error = ModelError::new("p", kind.clone(), "");
            let error = match hint {
                Some(hint) => error.with_retry_hint(hint, None),
                None => error,
            };
            assert_eq!(error.is_worth_retrying(), expected, "{kind:?} {hint:?}");
        }
        let pause = Some(Duration::from_secs(3));
        let hinted = ModelError::new("p", ModelErrorKind::Permission, "");
        let hinted = hinted.with_retry_hint(true, pause);
        assert_eq!(hinted.retry_after(), pause);
    }

    #[test]
    fn only_temporary_errors_are_transient() {
        let kinds = [
            (ModelErrorKind::RateLimited { retry_after: None }, true),
            (ModelErrorKind::Connection, true),
            (ModelErrorKind::QuotaExhausted, false),
            (ModelErrorKind::Interrupted, false),
            (ModelErrorKind::Authentication, false),
        ];
        for (kind, expected) in kinds {
            assert_eq!(
                ModelError::new("p", kind.clone(), "").is_transient(),
                expected,
                "{kind:?}"
            );
        }
    }
}

//! Errors that a provider reports in JSON, classified by a table of its codes and messages.

use std::time::Duration;

use serde_json::{Map, Value};
use switchboard_domain::{ModelError, ModelErrorKind};

use crate::{
    ClassifiedError, ErrorClassifier, HttpFailure, StatusClassifier,
    http::error_classifier::classify_status,
};

/// Table that describes how the errors of one provider are read and classified.
#[derive(Debug)]
pub struct ErrorTable {
    /// Function that reads the provider-specific fields of an error object and stores their values
    /// in the [`ApiError`].
    pub details: fn(&Map<String, Value>, &mut ApiError),
    /// Classification rules in order: the first match decides. Without a match, the HTTP status
    /// decides.
    pub rules: &'static [ErrorRule],
    /// Text that is appended to the message of a 404 without an error object, which most often
    /// means a wrong address.
    pub not_found_hint: &'static str,
}

/// One classification rule of an [`ErrorTable`].
#[derive(Debug, Clone, Copy)]
pub struct ErrorRule {
    /// Error codes that the rule matches. A `*` at the start or the end matches any text.
    codes: &'static [&'static str],
    /// Lower-case texts that the rule searches for in the error message. One match is enough.
    messages: &'static [&'static str],
    scope: StatusScope,
    class: ErrorClass,
}

/// HTTP statuses to which a classification rule applies.
#[derive(Debug, Clone, Copy)]
enum StatusScope {
    Any,
    /// The rule applies to refused requests: status 400, 413 or 422, or an error within a stream.
    Refused,
    /// The rule applies only to errors without an HTTP status, which occur within a stream.
    InBand,
}

/// Class that a rule assigns to an error: a [`ModelErrorKind`] without the values of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The credentials are missing or invalid.
    Authentication,
    /// The credentials do not allow the request.
    Permission,
    /// The model or the address does not exist.
    NotFound,
    /// The account has no quota or credit left.
    QuotaExhausted,
    /// Too many requests were sent in a short time.
    RateLimited,
    /// The server is overloaded or has failed.
    Overloaded,
    /// The prompt exceeds the model's context window.
    ContextOverflow,
    /// The provider's content filter blocked the request or the answer.
    ContentFilter,
    /// The request is invalid. The error contains the name of the invalid field.
    InvalidRequest,
    /// The model or the server lacks the feature with this name.
    Unsupported(&'static str),
}

impl ErrorRule {
    /// Creates a rule that assigns `class` to errors with one of these codes.
    pub const fn match_codes(codes: &'static [&'static str], class: ErrorClass) -> Self {
        Self::new(codes, &[], class)
    }

    /// Creates a rule that assigns `class` to messages that contain one of these lower-case texts.
    pub const fn match_messages(texts: &'static [&'static str], class: ErrorClass) -> Self {
        Self::new(&[], texts, class)
    }

    const fn new(
        codes: &'static [&'static str],
        messages: &'static [&'static str],
        class: ErrorClass,
    ) -> Self {
        Self {
            codes,
            messages,
            scope: StatusScope::Any,
            class,
        }
    }

    /// Restricts the rule to refused requests: status 400, 413 or 422, or an error within a stream.
    #[must_use]
    pub const fn restrict_to_refused(mut self) -> Self {
        self.scope = StatusScope::Refused;
        self
    }

    /// Restricts the rule to errors within a stream.
    #[must_use]
    pub const fn restrict_to_in_band(mut self) -> Self {
        self.scope = StatusScope::InBand;
        self
    }

    fn matches_error(&self, error: &ApiError, message: &str, status: Option<u16>) -> bool {
        let in_scope = match self.scope {
            StatusScope::Any => true,
            StatusScope::Refused => matches!(status, None | Some(400 | 413 | 422)),
            StatusScope::InBand => status.is_none(),
        };
        let has_code = |actual: &String| {
            let mut codes = self.codes.iter();
            codes.any(|code| matches_code(actual, code))
        };
        in_scope
            && (error.codes.iter().any(has_code)
                || self.messages.iter().any(|text| message.contains(text)))
    }
}

fn matches_code(actual: &str, pattern: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        actual.ends_with(end)
    } else if let Some(start) = pattern.strip_suffix('*') {
        actual.starts_with(start)
    } else {
        actual == pattern
    }
}

/// Rules for errors of the LiteLLM proxy, for all providers. The proxy answers 400 to a wrong key
/// when it has no database, and to an unknown model.
const PROXY_RULES: &[ErrorRule] = &[
    ErrorRule::match_codes(&["no_db_connection"], ErrorClass::Authentication),
    ErrorRule::match_messages(&["no connected db."], ErrorClass::Authentication),
    ErrorRule::match_messages(
        &["invalid model name passed in model="],
        ErrorClass::NotFound,
    )
    .restrict_to_refused(),
];

/// An error object that a provider sent, converted to fields that all providers share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiError {
    /// Error message for people.
    pub message: String,
    /// Error codes and types, the most specific first.
    pub codes: Vec<String>,
    /// Request field that caused the error.
    pub field: Option<String>,
    /// HTTP status that the error object contains. It classifies an error within a stream, where
    /// the response itself has status 200.
    pub status: Option<u16>,
    /// Pause before a retry that the provider requests.
    pub retry_after: Option<Duration>,
    /// Provider's id of the failed request.
    pub request_id: Option<String>,
}

impl ErrorTable {
    /// Reads the error in a response body or a stream frame. Returns `None` if there is no error.
    ///
    /// Recognizes `{"error": {…}}`, `{"error": "text"}`, and the forms of proxies: `{"message": …}`
    /// and `{"detail": …}`. In a list, the first element with an error counts.
    pub fn find_api_error(&self, body: &Value) -> Option<ApiError> {
        let object = match body {
            Value::Array(list) => return list.iter().find_map(|body| self.find_api_error(body)),
            Value::Object(object) => object,
            _ => return None,
        };
        let mut error = if let Some(error) = object.get("error").filter(|error| is_error(error)) {
            self.read_error_object(error)
        } else {
            let message = object.get("message").or_else(|| object.get("detail"))?;
            ApiError {
                message: value_to_text(Some(message)),
                ..self.read_error_object(body)
            }
        };
        error.request_id = error
            .request_id
            .or_else(|| non_empty_text(object, "request_id"));
        Some(error)
    }

    /// Converts the value of the JSON field `error` in a response body or stream frame.
    pub fn read_error_object(&self, error: &Value) -> ApiError {
        let no_fields = Map::new();
        let (fields, message) = match error {
            Value::Object(fields) => (fields, fields.get("message")),
            other => (&no_fields, Some(other)),
        };
        let codes = ["code", "type", "status"];
        let mut read = ApiError {
            message: value_to_text(message),
            codes: codes
                .iter()
                .filter_map(|it| non_empty_text(fields, it))
                .collect(),
            field: non_empty_text(fields, "param"),
            status: fields.get("code").and_then(read_status),
            ..ApiError::default()
        };
        (self.details)(fields, &mut read);
        read
    }

    /// Returns the kind of an error. `status` is the HTTP status of the response. It is `None` for
    /// an error in a stream, or in a whole body, that was sent with status 200.
    pub fn error_kind(
        &self,
        error: &ApiError,
        status: Option<u16>,
        retry_after: Option<Duration>,
    ) -> ModelErrorKind {
        let retry_after = retry_after.or(error.retry_after);
        let status = status.or(error.status);
        if status == Some(402) {
            return ModelErrorKind::QuotaExhausted;
        }
        let message = error.message.to_lowercase();
        let mut rules = PROXY_RULES.iter().chain(self.rules);
        if let Some(rule) = rules.find(|rule| rule.matches_error(error, &message, status)) {
            return rule.class.to_error_kind(error, retry_after);
        }
        match status.map(|status| classify_status(status, retry_after)) {
            Some(ModelErrorKind::InvalidRequest { .. }) => {
                ErrorClass::InvalidRequest.to_error_kind(error, None)
            }
            Some(kind) => kind,
            None if error.field.is_some() => ErrorClass::InvalidRequest.to_error_kind(error, None),
            // Nothing shows the cause of the error, so the stream counts as interrupted.
            None => ModelErrorKind::Interrupted,
        }
    }

    /// Converts an error object in a stream, or in a body with status 200, to a [`ModelError`].
    pub fn in_band_error(&self, provider: &str, error: ApiError) -> ModelError {
        let kind = self.error_kind(&error, None, None);
        let message = if error.message.is_empty() {
            "the server ended the answer with an error".to_owned()
        } else {
            error.message
        };
        ModelError::new(provider, kind, message).with_request_id(error.request_id)
    }
}

impl ErrorClassifier for ErrorTable {
    fn classify_failure(&self, failure: &HttpFailure<'_>) -> ClassifiedError {
        let by_status = StatusClassifier.classify_failure(failure);
        let body = serde_json::from_slice::<Value>(failure.body).ok();
        let Some(error) = body.as_ref().and_then(|body| self.find_api_error(body)) else {
            if failure.status != 404 || self.not_found_hint.is_empty() {
                return by_status;
            }
            let message = format!("{} ({})", by_status.message, self.not_found_hint);
            return ClassifiedError {
                message: message.trim_start().to_owned(),
                ..by_status
            };
        };
        ClassifiedError {
            kind: self.error_kind(&error, Some(failure.status), failure.retry_after),
            message: if error.message.is_empty() {
                by_status.message
            } else {
                error.message
            },
            request_id: error.request_id,
        }
    }
}

impl ErrorClass {
    fn to_error_kind(self, error: &ApiError, retry_after: Option<Duration>) -> ModelErrorKind {
        match self {
            Self::Authentication => ModelErrorKind::Authentication,
            Self::Permission => ModelErrorKind::Permission,
            Self::NotFound => ModelErrorKind::NotFound,
            Self::QuotaExhausted => ModelErrorKind::QuotaExhausted,
            Self::RateLimited => ModelErrorKind::RateLimited { retry_after },
            Self::Overloaded => ModelErrorKind::Overloaded { retry_after },
            Self::ContextOverflow => ModelErrorKind::ContextOverflow,
            Self::ContentFilter => ModelErrorKind::ContentFilter,
            Self::InvalidRequest => ModelErrorKind::InvalidRequest {
                field: error.field.clone(),
            },
            Self::Unsupported(feature) => ModelErrorKind::Unsupported {
                feature: feature.to_owned(),
            },
        }
    }
}

/// Returns whether the value of a field `error` reports an error. The values `null`, `false`, `""`
/// and `{}` do not.
pub fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

/// Returns a JSON string as text, and any other value as JSON text. `null` becomes an empty text.
pub fn value_to_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn non_empty_text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    Some(value_to_text(fields.get(name))).filter(|text| !text.is_empty())
}

/// Reads an HTTP status from a JSON number or a numeric string. Returns `None` for other values and
/// for numbers below 100.
fn read_status(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_u64()?,
    };
    u16::try_from(number).ok().filter(|code| *code >= 100)
}

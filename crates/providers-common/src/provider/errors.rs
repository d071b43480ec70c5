//! Errors that a provider reports in JSON, classified by a table of its codes and messages.

use std::time::Duration;

use serde_json::{Map, Value};
use switchboard_domain::{ModelError, ModelErrorKind};

use crate::{
    Classified, ErrorClassifier, HttpFailure, StatusClassifier, http::classify::kind_of_status,
};

/// How the errors of one wire are read and classified.
#[derive(Debug)]
pub struct ErrorTable {
    /// Completes an error from the fields of its JSON object, which only this wire has.
    pub details: fn(&Map<String, Value>, &mut ApiError),
    /// The rules, in order: the first that matches decides. Without a match the status decides.
    pub rules: &'static [ErrorRule],
    /// Appended to the message of a 404 without an error object: most often the address is wrong.
    pub not_found_hint: &'static str,
}

/// One row of an [`ErrorTable`].
#[derive(Debug, Clone, Copy)]
pub struct ErrorRule {
    /// The rule matches one of these codes. A `*` at the start or the end stands for any text.
    codes: &'static [&'static str],
    /// The rule matches one of these texts in the message, in lower case.
    messages: &'static [&'static str],
    scope: Scope,
    class: ErrorClass,
}

/// The statuses for which a rule holds.
#[derive(Debug, Clone, Copy)]
enum Scope {
    Any,
    /// 400, 413, 422, or an error within a stream.
    Refused,
    /// An error within a stream.
    InBand,
}

/// The meaning of an error. [`ModelErrorKind`] with the fields filled in later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// [`ModelErrorKind::Authentication`].
    Authentication,
    /// [`ModelErrorKind::Permission`].
    Permission,
    /// [`ModelErrorKind::NotFound`].
    NotFound,
    /// [`ModelErrorKind::QuotaExhausted`].
    QuotaExhausted,
    /// [`ModelErrorKind::RateLimited`].
    RateLimited,
    /// [`ModelErrorKind::Overloaded`].
    Overloaded,
    /// [`ModelErrorKind::ContextOverflow`].
    ContextOverflow,
    /// [`ModelErrorKind::ContentFilter`].
    ContentFilter,
    /// [`ModelErrorKind::InvalidRequest`] with the field of the error.
    InvalidRequest,
    /// [`ModelErrorKind::Unsupported`] with this feature.
    Unsupported(&'static str),
}

impl ErrorRule {
    /// A rule for these codes.
    pub const fn codes(codes: &'static [&'static str], class: ErrorClass) -> Self {
        Self::new(codes, &[], class)
    }

    /// A rule for messages that contain one of these texts, which are in lower case.
    pub const fn messages(texts: &'static [&'static str], class: ErrorClass) -> Self {
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
            scope: Scope::Any,
            class,
        }
    }

    /// Restricts the rule to refused requests: status 400, 413 or 422, or an error within a stream.
    #[must_use]
    pub const fn when_refused(mut self) -> Self {
        self.scope = Scope::Refused;
        self
    }

    /// Restricts the rule to errors within a stream.
    #[must_use]
    pub const fn when_in_band(mut self) -> Self {
        self.scope = Scope::InBand;
        self
    }

    fn matches(&self, error: &ApiError, message: &str, status: Option<u16>) -> bool {
        let in_scope = match self.scope {
            Scope::Any => true,
            Scope::Refused => matches!(status, None | Some(400 | 413 | 422)),
            Scope::InBand => status.is_none(),
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

/// Errors of the LiteLLM proxy, on every wire: it answers 400 to a wrong key when it has no
/// database, and to an unknown model.
const PROXY_RULES: &[ErrorRule] = &[
    ErrorRule::codes(&["no_db_connection"], ErrorClass::Authentication),
    ErrorRule::messages(&["no connected db."], ErrorClass::Authentication),
    ErrorRule::messages(
        &["invalid model name passed in model="],
        ErrorClass::NotFound,
    )
    .when_refused(),
];

/// An error object of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiError {
    /// The message for people.
    pub message: String,
    /// The codes and classes, the most exact first.
    pub codes: Vec<String>,
    /// The field at fault.
    pub field: Option<String>,
    /// The HTTP status that the object repeats.
    pub status: Option<u16>,
    /// When the request may be repeated.
    pub retry_after: Option<Duration>,
    /// The id of the request.
    pub request_id: Option<String>,
}

impl ErrorTable {
    /// Reads the error in a body or a frame. Returns `None` if there is none.
    ///
    /// Reads `{"error": {…}}`, `{"error": "text"}`, either in a list, and the forms of proxies:
    /// `{"message": …}` and `{"detail": …}`.
    pub fn find(&self, body: &Value) -> Option<ApiError> {
        let object = match body {
            Value::Array(list) => return list.iter().find_map(|body| self.find(body)),
            Value::Object(object) => object,
            _ => return None,
        };
        let mut error = if let Some(error) = object.get("error").filter(|error| is_error(error)) {
            self.read(error)
        } else {
            let message = object.get("message").or_else(|| object.get("detail"))?;
            ApiError {
                message: text_of(Some(message)),
                ..self.read(body)
            }
        };
        error.request_id = error.request_id.or_else(|| some_text(object, "request_id"));
        Some(error)
    }

    /// Reads the value of a field `error`.
    pub fn read(&self, error: &Value) -> ApiError {
        let no_fields = Map::new();
        let (fields, message) = match error {
            Value::Object(fields) => (fields, fields.get("message")),
            other => (&no_fields, Some(other)),
        };
        let codes = ["code", "type", "status"];
        let mut read = ApiError {
            message: text_of(message),
            codes: codes
                .iter()
                .filter_map(|it| some_text(fields, it))
                .collect(),
            field: some_text(fields, "param"),
            status: fields.get("code").and_then(status_of),
            ..ApiError::default()
        };
        (self.details)(fields, &mut read);
        read
    }

    /// Classifies an error. `status` is the status of the response, `None` for an error within a
    /// stream that began with 200.
    pub fn kind(
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
        if let Some(rule) = rules.find(|rule| rule.matches(error, &message, status)) {
            return rule.class.kind(error, retry_after);
        }
        match status.map(|status| kind_of_status(status, retry_after)) {
            Some(ModelErrorKind::InvalidRequest { .. }) => {
                ErrorClass::InvalidRequest.kind(error, None)
            }
            Some(kind) => kind,
            None if error.field.is_some() => ErrorClass::InvalidRequest.kind(error, None),
            // The stream broke off without a reason.
            None => ModelErrorKind::Interrupted,
        }
    }

    /// Converts an error within a stream, or within a body with status 200.
    pub fn in_band(&self, provider: &str, error: ApiError) -> ModelError {
        let kind = self.kind(&error, None, None);
        let message = if error.message.is_empty() {
            "the server ended the answer with an error".to_owned()
        } else {
            error.message
        };
        ModelError::new(provider, kind, message).with_request_id(error.request_id)
    }
}

impl ErrorClassifier for ErrorTable {
    fn classify(&self, failure: &HttpFailure<'_>) -> Classified {
        let by_status = StatusClassifier.classify(failure);
        let body = serde_json::from_slice::<Value>(failure.body).ok();
        let Some(error) = body.as_ref().and_then(|body| self.find(body)) else {
            if failure.status != 404 || self.not_found_hint.is_empty() {
                return by_status;
            }
            let message = format!("{} ({})", by_status.message, self.not_found_hint);
            return Classified {
                message: message.trim_start().to_owned(),
                ..by_status
            };
        };
        Classified {
            kind: self.kind(&error, Some(failure.status), failure.retry_after),
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
    fn kind(self, error: &ApiError, retry_after: Option<Duration>) -> ModelErrorKind {
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

/// Whether the value of a field `error` reports an error: `null`, `false`, `""` and `{}` do not.
pub fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

/// Returns a string as it is, and another value as JSON text. `null` is empty.
pub fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn some_text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    Some(text_of(fields.get(name))).filter(|text| !text.is_empty())
}

/// Reads an HTTP status from a number or a string.
fn status_of(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_u64()?,
    };
    u16::try_from(number).ok().filter(|code| *code >= 100)
}

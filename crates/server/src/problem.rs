//! Error responses of the server, as problem details (RFC 9457).

use std::{fmt, time::Duration};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Serialize, Serializer};
use switchboard_domain::SessionStoreError;
use utoipa::ToSchema;

use crate::RunSettingsError;

/// The prefix of all values of the JSON field `type` in error responses.
const TYPE: &str = "urn:switchboard:problem:";

/// The default delay before a client may retry, for the statuses 429 and 503.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The delay before a client may retry if the session store is unavailable.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reason why a request failed. HTTP responses contain it as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The machine-readable kind of the problem, with the prefix `urn:switchboard:problem:`.
    #[serde(rename = "type", serialize_with = "serialize_kind")]
    #[schema(example = "urn:switchboard:problem:not-found")]
    pub(crate) kind: &'static str,
    /// The title of the problem kind, for people. It is the same for all problems of the kind.
    pub(crate) title: &'static str,
    /// The HTTP status code of the response.
    #[serde(serialize_with = "serialize_status")]
    #[schema(value_type = u16, minimum = 400, maximum = 599)]
    pub(crate) status: StatusCode,
    /// The description of the failure, and what the client can do.
    pub(crate) detail: String,
    /// The invalid field of the request. Absent if no single field is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub(crate) field: Option<Box<str>>,
    /// The unfinished run that conflicts with the request. Absent for other problems.
    #[serde(rename = "run_id", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub(crate) run: Option<Box<str>>,
    /// The delay before a retry. It is sent only in the header `Retry-After`.
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

fn serialize_kind<S: Serializer>(kind: &&str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{TYPE}{kind}"))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
fn serialize_status<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    /// Creates a problem that names no request field and no run. With the status 429 or 503, the
    /// response asks the client to retry after one second.
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let (status, kind, title) = kind.status_name_and_title();
        let is_temporary = matches!(status.as_u16(), 429 | 503);
        Self {
            kind,
            title,
            status,
            detail: detail.into(),
            field: None,
            run: None,
            retry_after: is_temporary.then_some(RETRY_AFTER),
        }
    }

    /// Sets the field of the request that caused the problem.
    #[must_use]
    pub(crate) fn with_invalid_field(mut self, field: impl Into<Box<str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Sets the unfinished run that conflicts with the request.
    #[must_use]
    pub(crate) fn with_unfinished_run(mut self, run: &str) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Creates a problem with status 400 for a malformed request.
    pub(crate) fn malformed_request(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Malformed, detail)
    }

    /// Creates a problem with status 422 for a field with an invalid value.
    pub(crate) fn invalid_field(field: impl Into<Box<str>>, detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Invalid, detail).with_invalid_field(field)
    }

    /// Creates a problem with status 404 for a resource that does not exist or that belongs to
    /// another principal.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::NotFound, detail)
    }

    /// Creates a problem with status 404 for a run that does not exist.
    pub(crate) fn run_not_found(run: &str) -> Self {
        Self::not_found(format!(
            "run `{run}` does not exist: GET /sessions/{{id}} lists the runs of a session"
        ))
    }

    /// Creates a problem with status 404 for a session that does not exist.
    pub(crate) fn session_not_found(session: &str) -> Self {
        Self::not_found(format!(
            "session `{session}` does not exist: GET /sessions lists the sessions; omit \
             `session_id` to create one"
        ))
    }

    /// Creates a problem with status 409 for a session that already has an unfinished run.
    pub(crate) fn session_busy(session: &str, run: &str) -> Self {
        let detail = format!(
            "run `{run}` of session `{session}` is not finished: follow it (GET \
             /runs/{run}/events), decide about its waiting calls (GET /runs/{run}), continue it \
             (POST /runs/{run}/continue) or cancel it (POST /runs/{run}/cancel)"
        );
        Self::new(ProblemKind::SessionBusy, detail).with_unfinished_run(run)
    }

    /// Creates a problem with status 409 for an operation that the current state of a run or
    /// session does not allow.
    pub(crate) fn state_conflict(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Conflict, detail)
    }

    /// Creates a problem with status 503 for a request that the server cannot handle now.
    pub(crate) fn server_unavailable(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }

    /// Creates a problem with status 500. The cause of the failure is only in the server's log.
    pub(crate) fn internal_error() -> Self {
        let detail = "an internal error occurred: see the server log";
        Self::new(ProblemKind::Internal, detail)
    }
}

/// The kind of a [`Problem`], which determines its HTTP status and title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    Malformed,
    NoAccess,
    ForeignHost,
    ForeignOrigin,
    NotFound,
    NoMethod,
    TooSlow,
    Conflict,
    SessionBusy,
    BodyTooLarge,
    NotJson,
    Invalid,
    TooMany,
    HeadersTooLarge,
    Internal,
    Unavailable,
}

impl ProblemKind {
    /// Returns the HTTP status, the name for the JSON field `type`, and the title.
    fn status_name_and_title(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::Malformed => (S::BAD_REQUEST, "malformed", "Malformed request"),
            Self::NoAccess => (S::UNAUTHORIZED, "no-access", "Access token required"),
            Self::ForeignHost => (S::FORBIDDEN, "foreign-host", "Unknown host name"),
            Self::ForeignOrigin => (S::FORBIDDEN, "foreign-origin", "Origin not allowed"),
            Self::NotFound => (S::NOT_FOUND, "not-found", "Not found"),
            Self::NoMethod => (S::METHOD_NOT_ALLOWED, "no-method", "Method not allowed"),
            Self::TooSlow => (S::REQUEST_TIMEOUT, "too-slow", "Request body timed out"),
            Self::Conflict => (S::CONFLICT, "conflict", "Not allowed in the current state"),
            Self::SessionBusy => {
                let title = "Session has an unfinished run";
                (S::CONFLICT, "session-busy", title)
            }
            Self::BodyTooLarge => (S::PAYLOAD_TOO_LARGE, "too-large", "Request body too large"),
            Self::NotJson => {
                let title = "Unsupported content type";
                (S::UNSUPPORTED_MEDIA_TYPE, "not-json", title)
            }
            Self::Invalid => (S::UNPROCESSABLE_ENTITY, "invalid", "Invalid value"),
            Self::TooMany => (
                S::TOO_MANY_REQUESTS,
                "too-many",
                "Too many requests or runs",
            ),
            Self::HeadersTooLarge => {
                let status = S::REQUEST_HEADER_FIELDS_TOO_LARGE;
                (status, "too-large", "Request headers too large")
            }
            Self::Internal => (
                S::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal server error",
            ),
            Self::Unavailable => (
                S::SERVICE_UNAVAILABLE,
                "unavailable",
                "Temporarily unavailable",
            ),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, [(header::CONTENT_TYPE, kind)], text).into_response();
        self.set_headers(&mut response);
        // The middleware `observe_request` uses this copy to write the error in the format of the
        // client's protocol, such as OpenAI's.
        response.extensions_mut().insert(self);
        response
    }
}

impl Problem {
    /// Adds the header `Retry-After` if the problem has a retry delay, and `WWW-Authenticate` if
    /// its status is 401.
    pub(crate) fn set_headers(&self, response: &mut Response) {
        let headers = response.headers_mut();
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs().max(1);
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"switchboard\"");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
    }
}

impl From<RunSettingsError> for Problem {
    fn from(error: RunSettingsError) -> Self {
        let detail = error.to_string();
        match error {
            RunSettingsError::Unknown { field, .. } | RunSettingsError::Invalid { field, .. } => {
                Self::invalid_field(field, detail)
            }
            RunSettingsError::Unavailable { retry_after, .. } => Self {
                retry_after: retry_after.or(Some(RETRY_AFTER)),
                ..Self::server_unavailable(detail)
            },
        }
    }
}

impl From<SessionStoreError> for Problem {
    fn from(error: SessionStoreError) -> Self {
        match &error {
            SessionStoreError::NotFound { id } => Self::session_not_found(&id.0),
            SessionStoreError::NoSuchRun { run } => Self::run_not_found(run),
            SessionStoreError::Busy { session, run } => Self::session_busy(&session.0, run),
            SessionStoreError::Exists { .. }
            | SessionStoreError::Conflict { .. }
            | SessionStoreError::RunConflict { .. } => Self::state_conflict(format!(
                "{error}: read the session again (GET /sessions/{{id}}) and repeat the request"
            )),
            SessionStoreError::Unavailable { .. } => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the session store is unavailable");
                Self {
                    retry_after: Some(STORE_RETRY_AFTER),
                    ..Self::server_unavailable(
                        "the session store is locked by another program or not reachable, and \
                         nothing was changed: send the request again",
                    )
                }
            }
            _ => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the session store failed");
                Self::internal_error()
            }
        }
    }
}

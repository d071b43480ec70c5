//! Errors as problem details (RFC 9457).

use std::{fmt, time::Duration};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Serialize, Serializer};
use switchboard_domain::SessionStoreError;
use utoipa::ToSchema;

use crate::RunSettingsError;

/// The prefix of every problem kind in the JSON field `type`.
const TYPE: &str = "urn:switchboard:problem:";

/// The default delay before a client may retry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The delay before a client may retry if the session store is unavailable.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reason why a request failed. HTTP responses contain it as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The machine-readable kind of the problem, with the prefix `urn:switchboard:problem:`.
    #[serde(rename = "type", serialize_with = "serialize_kind")]
    #[schema(example = "urn:switchboard:problem:not-found")]
    pub kind: &'static str,
    /// The title of the problem kind, for people.
    pub title: &'static str,
    /// The HTTP status code of the response.
    #[serde(serialize_with = "serialize_status")]
    #[schema(value_type = u16, minimum = 400, maximum = 599)]
    pub status: StatusCode,
    /// The description of the failure, and what the client can do.
    pub detail: String,
    /// The invalid field of the request, or `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub field: Option<Box<str>>,
    /// The unfinished run that conflicts with the request, or `null`.
    #[serde(rename = "run_id", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub run: Option<Box<str>>,
    /// The delay before a retry. It is sent only in the header `Retry-After`.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

fn serialize_kind<S: Serializer>(kind: &&str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{TYPE}{kind}"))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde expects"
)]
fn serialize_status<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    /// Creates a problem without field, run and retry delay.
    pub fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            title,
            status,
            detail: detail.into(),
            field: None,
            run: None,
            retry_after: None,
        }
    }

    fn with_retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Sets the request field that caused the problem.
    #[must_use]
    pub fn at(mut self, field: impl Into<Box<str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Sets the unfinished run that conflicts with the request.
    #[must_use]
    pub(crate) fn with_run(mut self, run: &str) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Creates a problem with status 400: the request is malformed.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "malformed",
            "Malformed request",
            detail,
        )
    }

    /// Creates a problem with status 422: a field has an invalid value.
    pub fn invalid(field: impl Into<Box<str>>, detail: impl Into<String>) -> Self {
        Self::unfitting(detail).at(field)
    }

    /// Creates a problem with status 422: the body does not match the schema.
    pub fn unfitting(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid",
            "Invalid value",
            detail,
        )
    }

    /// Creates a problem with status 404: the resource does not exist for this principal.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    /// Creates a problem with status 404: the run does not exist.
    pub fn no_run(run: &str) -> Self {
        Self::not_found(format!(
            "run `{run}` does not exist: GET /sessions/{{id}} lists the runs of a session"
        ))
    }

    /// Creates a problem with status 404: the session does not exist.
    pub fn no_session(session: &str) -> Self {
        Self::not_found(format!(
            "session `{session}` does not exist: GET /sessions lists the sessions; omit \
             `session_id` to create one"
        ))
    }

    /// Creates a problem with status 409: the session already has an unfinished run.
    pub fn busy(session: &str, run: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "session-busy",
            "The session has an unfinished run",
            format!(
                "run `{run}` of session `{session}` is not finished: follow it (GET \
                 /runs/{run}/events), decide about its waiting calls (GET /runs/{run}), continue \
                 it (POST /runs/{run}/continue) or cancel it (POST /runs/{run}/cancel)"
            ),
        )
        .with_run(run)
    }

    /// Creates a problem with status 409: the current state does not allow the operation.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "conflict",
            "Not possible in the current state",
            detail,
        )
    }

    /// Creates a problem with status 429: the principal exceeds a limit.
    pub fn too_many(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many",
            "Too many requests or runs",
            detail,
        )
        .with_retry_after(RETRY_AFTER)
    }

    /// Creates a problem with status 503: the server cannot handle the request at the moment.
    pub fn unavailable(detail: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "Temporarily unavailable",
            detail,
        )
        .with_retry_after(retry_after.unwrap_or(RETRY_AFTER))
    }

    /// Creates a problem with status 503: the session store is locked or unavailable.
    pub fn store_unavailable() -> Self {
        Self::unavailable(
            "the session store is locked by another program or not reachable, and nothing was \
             changed: send the request again",
            Some(STORE_RETRY_AFTER),
        )
    }

    /// Creates a problem with status 500 for a fault of this program or its store. The cause is
    /// only in the log.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "The server failed",
            "an internal error occurred: see the log of the server",
        )
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
        // The middleware `observe_request` reads this copy to write the error in the dialect's
        // format.
        response.extensions_mut().insert(self);
        response
    }
}

impl Problem {
    /// Adds the headers of the problem, which do not depend on the format of the body.
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
                Self::invalid(field, detail)
            }
            RunSettingsError::Unavailable { retry_after, .. } => {
                Self::unavailable(detail, retry_after)
            }
        }
    }
}

impl From<SessionStoreError> for Problem {
    fn from(error: SessionStoreError) -> Self {
        match &error {
            SessionStoreError::NotFound { id } => Self::no_session(&id.0),
            SessionStoreError::NoSuchRun { run } => Self::no_run(run),
            SessionStoreError::Busy { session, run } => Self::busy(&session.0, run),
            SessionStoreError::Exists { .. }
            | SessionStoreError::Conflict { .. }
            | SessionStoreError::RunConflict { .. } => Self::conflict(format!(
                "{error}: read the session again (GET /sessions/{{id}}) and repeat the request"
            )),
            SessionStoreError::Unavailable { .. } => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the session store is unavailable");
                Self::store_unavailable()
            }
            _ => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the session store failed"
                );
                Self::internal()
            }
        }
    }
}

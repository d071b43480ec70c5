//! Response headers with the ids of a run and its session.

use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use switchboard_domain::SessionId;

/// The response header with the id of the run.
pub(crate) const RUN_ID: HeaderName = HeaderName::from_static("x-switchboard-run-id");
/// The response header with the session id of a durable run.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("x-switchboard-session-id");

/// Adds the ids of the run and its session to the headers of a response.
pub(crate) fn set_run_headers(response: &mut Response, run: &str, session: Option<&SessionId>) {
    let headers = response.headers_mut();
    if let Ok(run) = HeaderValue::from_str(run) {
        headers.insert(RUN_ID, run);
    }
    if let Some(Ok(session)) = session.map(|id| HeaderValue::from_str(&id.0)) {
        headers.insert(SESSION_ID, session);
    }
}

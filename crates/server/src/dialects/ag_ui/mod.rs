//! Implements the route `POST /ag-ui` for AG-UI, a protocol between agents and front ends.

mod request;
mod stream;

use axum::{Extension, extract::State, response::Response};

pub(crate) use request::AgUiRequest;
pub(crate) use stream::AgUiStream;

use super::{
    conversation::parse_session_id, response::paused_runs::PausedRuns,
    runs::durable_request::DurableRequest,
};
use crate::{
    App, Problem,
    http::{extractors::JsonBody, security::Caller},
};

/// Runs the agent in a thread, which is a session, and streams AG-UI events, protocol version 1.0.
///
/// When a call needs approval, the run ends with an interrupt, and the decision comes in `resume`
/// of the next run. A call of one of the request's `tools` ends the run too, and its result comes
/// as a message of the next run.
#[utoipa::path(
    post,
    path = "/ag-ui",
    operation_id = "agUi",
    tag = "dialects",
    request_body = AgUiRequest,
    responses(
        (
            status = 200,
            description = "Server-sent events, each an AG-UI event",
            body = String, content_type = "text/event-stream"
        ),
        (status = 404, description = "The run or the session does not exist.", body = Problem),
        (
            status = 409,
            description = "The call does not wait for a decision, or the session changed.",
            body = Problem
        ),
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(paused_runs): Extension<PausedRuns>,
    JsonBody(input): JsonBody<AgUiRequest>,
) -> Result<Response, Problem> {
    let session = parse_session_id(&input.thread_id, "threadId")?;
    let session = app.hub().stored_session_id(&principal, session).await?;
    let parsed = DurableRequest {
        session: session.clone(),
        settings: input.parse_run_settings()?,
        decisions: input.parse_decisions()?,
        tools: input.tools.clone(),
        conversation: &input,
    };
    let response = parsed.start_or_resume_run(app, principal, paused_runs);
    let response = response.await?;
    let encoder = AgUiStream::new(input.thread_id, input.run_id, session.0);
    Ok(response.into_stream(encoder))
}

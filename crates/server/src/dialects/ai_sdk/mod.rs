//! The routes of the Vercel AI SDK's UI message stream, the protocol of the chat hook `useChat`.

mod request;
mod stream;

use axum::{
    Extension,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use switchboard_domain::RunState;

pub(crate) use request::AiSdkRequest;
pub(crate) use stream::AiSdkStream;

use super::{
    conversation::parse_session_id, response::paused_runs::PausedRuns,
    response::run_response::RunResponse, runs::durable_request::DurableRequest,
};
use crate::{
    App, Problem, RunSettings,
    http::{
        extractors::{JsonBody, PathParameters},
        security::Caller,
    },
};

/// The response header with the protocol version, as in
/// `src/ui-message-stream/ui-message-stream-headers.ts` of the npm package `ai` 7.0.173.
const PROTOCOL: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// Continues a chat and streams the answer as the AI SDK's UI message stream, version 1.
///
/// The chat is a session. Its run continues when the client disconnects, and
/// `GET /api/chat/{id}/stream` returns its stream. When a call needs approval, the stream ends and
/// continues with the request of `addToolApprovalResponse`.
#[utoipa::path(
    post,
    path = "/api/chat",
    operation_id = "uiChat",
    tag = "dialects",
    request_body = AiSdkRequest,
    responses(
        (
            status = 200,
            description = "Server-sent events, each a UI message chunk",
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
pub(crate) async fn chat(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(paused_runs): Extension<PausedRuns>,
    JsonBody(request): JsonBody<AiSdkRequest>,
) -> Result<Response, Problem> {
    let session = parse_session_id(&request.id, "id")?;
    let session = app.hub().stored_session_id(&principal, session).await?;
    let parsed = DurableRequest {
        session: session.clone(),
        settings: RunSettings {
            provider: request.provider.clone(),
            model: request.model.clone(),
            recipe: request.recipe.clone(),
            parameters: request.parameters.clone(),
            context: request.context.clone().unwrap_or_default(),
        },
        decisions: request.parse_decisions()?,
        tools: Vec::new(),
        conversation: &request,
    };
    let response = parsed.start_or_resume_run(app, principal, paused_runs);
    let response = response.await?;
    let encoder = AiSdkStream::new(Some(session.0));
    Ok(add_protocol_header(response.into_stream(encoder)))
}

/// Streams the unfinished run of a chat from its start, for `useChat` with `resume: true`. The
/// status is 204 if the chat has no unfinished run.
#[utoipa::path(
    get,
    path = "/api/chat/{id}/stream",
    operation_id = "uiResume",
    tag = "dialects",
    params(("id" = String, Path, description = "The chat, which is the session")),
    responses(
        (
            status = 200,
            description = "Server-sent events, each a UI message chunk",
            body = String, content_type = "text/event-stream"
        ),
        (status = 204, description = "The chat has no open run"),
    )
)]
pub(crate) async fn resume(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
) -> Result<Response, Problem> {
    // The status 204 means that the chat has no session, or no run that can be followed.
    let nothing = || StatusCode::NO_CONTENT.into_response();
    let Ok(session) = parse_session_id(&id, "id") else {
        return Ok(nothing());
    };
    let hub = app.hub();
    let session = hub.stored_session_id(&principal, session).await?;
    if !hub.has_session(&principal, &session).await? {
        return Ok(nothing());
    }
    let open = hub.find_unfinished_run(&principal, &session).await?;
    // An interrupted run has no stream. It continues only after `POST /runs/{id}/continue`.
    let Some(open) = open.filter(|open| open.state != RunState::Interrupted) else {
        return Ok(nothing());
    };
    let reader = hub.event_reader(&principal, &open.id, 0).await?;
    let encoder = AiSdkStream::new(Some(session.0.clone()));
    let run = open.id.as_str().into();
    let response = RunResponse::new(app.clone(), principal, run, Some(session), reader);
    let response = response.end_when_run_waits().into_stream(encoder);
    Ok(add_protocol_header(response))
}

fn add_protocol_header(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(PROTOCOL, HeaderValue::from_static("v1"));
    response
}

//! The UI message stream of the Vercel AI SDK: what `useChat` speaks.

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

use super::{conversation::session_id, runs::durable::DurableRequest, response::run_response::RunResponse, response::paused_runs::PausedRuns};
use crate::{
    App, Problem, Wish,
    problem::ProblemBody,
    read::{ReadJson, ReadPath},
    security::Caller,
};

/// Names the protocol and its version: `src/ui-message-stream/ui-message-stream-headers.ts` of `ai` 7.0.173.
const PROTOCOL: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// Goes on with a chat, and streams the answer as the AI SDK's UI message stream, version 1.
///
/// The chat is a session. Its run goes on when the client goes away; `GET /api/chat/{id}/stream` comes back to it. Where a
/// call waits for a person, the stream ends, and goes on with the request that `addToolApprovalResponse` makes.
#[utoipa::path(
    post,
    path = "/api/chat",
    operation_id = "uiChat",
    tag = "dialects",
    request_body = AiSdkRequest,
    responses(
        (status = 200, description = "Server-sent events, each a UI message chunk", body = String, content_type = "text/event-stream"),
        (status = 400, description = "The body cannot be read, or asks for what is not supported.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such run, or no such session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A call waits for no word, or the session changed meanwhile.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not said to be JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A value cannot be, such as a model that there is not.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many runs of the same principal.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn chat(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(waiting): Extension<PausedRuns>,
    ReadJson(request): ReadJson<AiSdkRequest>,
) -> Result<Response, Problem> {
    let session = session_id(&request.id, "id")?;
    let session = app.hub().session_named(&principal, session).await?;
    let asked = DurableRequest {
        session: session.clone(),
        wish: Wish {
            provider: request.provider.clone(),
            model: request.model.clone(),
            recipe: request.recipe.clone(),
            parameters: request.parameters.clone(),
            context: request.context.clone().unwrap_or_default(),
        },
        words: request.words()?,
        tools: Vec::new(),
        talk: &request,
    };
    let telling = asked.begin(app, principal, waiting).await?;
    let projection = AiSdkStream::new(Some(session.0));
    Ok(named(telling.by(projection).response()))
}

/// Comes back to a chat's run, from its beginning, as `useChat` does with `resume: true`. 204 if none is under way.
#[utoipa::path(
    get,
    path = "/api/chat/{id}/stream",
    operation_id = "uiResume",
    tag = "dialects",
    params(("id" = String, Path, description = "The chat, which is the session")),
    responses(
        (status = 200, description = "Server-sent events, each a UI message chunk", body = String, content_type = "text/event-stream"),
        (status = 204, description = "Nothing is under way"),
    )
)]
pub(crate) async fn resume(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
) -> Result<Response, Problem> {
    // A chat that nobody has said anything in is no session yet, whatever its id.
    let nothing = || StatusCode::NO_CONTENT.into_response();
    let Ok(session) = session_id(&id, "id") else {
        return Ok(nothing());
    };
    let hub = app.hub();
    let session = hub.session_named(&principal, session).await?;
    if hub.sessions().get(&principal, &session).await?.is_none() {
        return Ok(nothing());
    }
    let open = hub.open_run(&principal, &session).await?;
    // One that broke off goes on only when somebody wants it to.
    let Some(open) = open.filter(|open| open.state != RunState::Interrupted) else {
        return Ok(nothing());
    };
    let reader = hub.reader(&principal, &open.run, 0).await?;
    let projection = AiSdkStream::new(Some(session.0.clone()));
    let telling = RunResponse::all(
        app.clone(),
        principal,
        open.run,
        Some(session),
        reader,
        projection,
    )
    .until_waiting();
    Ok(named(telling.response()))
}

fn named(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(PROTOCOL, HeaderValue::from_static("v1"));
    response
}

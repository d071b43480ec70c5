//! AG-UI, the protocol between agents and front ends.

mod request;
mod stream;

use axum::{Extension, extract::State, response::Response};

pub(crate) use request::AgUiRequest;
pub(crate) use stream::AgUiStream;

use super::{conversation::session_id, runs::durable::DurableRequest, response::paused_runs::PausedRuns};
use crate::{App, Problem, problem::ProblemBody, read::ReadJson, security::Caller};

/// Runs the agent in a thread, which is a session, and streams what happens as AG-UI events, protocol version 1.0.
///
/// Where a call waits for a person, the run ends with an interrupt; the answer comes in `resume` of the next one. A call of
/// one of the request's own `tools` ends it as well; its result comes as a message of the next one.
#[utoipa::path(
    post,
    path = "/ag-ui",
    operation_id = "agUi",
    tag = "dialects",
    request_body = AgUiRequest,
    responses(
        (status = 200, description = "Server-sent events, each an AG-UI event", body = String, content_type = "text/event-stream"),
        (status = 400, description = "The body cannot be read, or asks for what is not supported.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such run, or no such session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A call waits for no word, or the session changed meanwhile.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not said to be JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A value cannot be, such as a model that there is not.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many runs of the same principal.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(waiting): Extension<PausedRuns>,
    ReadJson(input): ReadJson<AgUiRequest>,
) -> Result<Response, Problem> {
    let session = session_id(&input.thread_id, "threadId")?;
    let session = app.hub().session_named(&principal, session).await?;
    let asked = DurableRequest {
        session: session.clone(),
        wish: input.wish()?,
        words: input.words()?,
        tools: input.tools(),
        talk: &input,
    };
    let telling = asked.begin(app, principal, waiting).await?;
    let projection = AgUiStream::new(input.thread_id, input.run_id, session.0);
    Ok(telling.by(projection).response())
}

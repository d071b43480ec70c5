//! `POST /chat`: one question, one answer.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use switchboard_domain::{Message, RunState, SessionId};
use switchboard_orchestration::tools::arguments::ClientContext;
use utoipa::ToSchema;

use crate::{
    App, Parameters, Problem, Wish,
    hub::{Ended, Start, Started, Talk},
    problem::ProblemBody,
    read::{ReadJson, check_id, check_text},
    schema,
    security::Caller,
};

/// A question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatRequest {
    /// The question.
    #[schema(min_length = 1)]
    message: String,
    /// The session in which it is asked; without, a new one is made.
    session_id: Option<String>,
    /// The provider, where `model` does not name it.
    provider: Option<String>,
    /// The model, as `PROVIDER/MODEL` or its name alone; without, the configured one.
    model: Option<String>,
    /// The recipe, by its name.
    recipe: Option<String>,
    /// How it is asked.
    #[serde(default)]
    parameters: Option<Parameters>,
    /// Values for tools that the model does not see, by name. The configuration names those that a client may send.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    context: Option<ClientContext>,
    /// Answer at once, and let the run go on: `GET /runs/{id}/events` tells what happens.
    #[serde(default)]
    background: Option<bool>,
}

/// A run that goes on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunAccepted {
    /// The run.
    pub(super) run_id: String,
    /// Its session; `null` for a run that is not kept.
    pub(super) session_id: Option<String>,
    /// How it stands. `waiting`: `GET /runs/{id}` says for what.
    #[schema(value_type = schema::RunState)]
    pub(super) state: RunState,
}

/// Ask a question and have it answered
///
/// The answer comes when the run is over. A run that has to wait for a person answers with 202 and goes on: `GET
/// /runs/{id}` says what it waits for. A client that goes away ends nothing: the run goes on, and its answer is in the
/// session.
#[utoipa::path(
    post, path = "/chat", operation_id = "chat", tag = "chat",
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The run is over; how it ended stands in `outcome`.", body = schema::RunReport),
        (status = 202, description = "The run goes on.", body = RunAccepted,
            headers(("location" = String, description = "The run: `/runs/{id}`."))),
        (status = 400, description = "The body cannot be read.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "The session has a run that is not over.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not said to be JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A value cannot be, such as a model that there is not.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many runs of the same principal.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Too many runs, or the model cannot be asked now.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn chat(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadJson(request): ReadJson<ChatRequest>,
) -> Result<Response, Problem> {
    if request.message.trim().is_empty() {
        return Err(Problem::invalid(
            "message",
            "`message` is empty: write a question",
        ));
    }
    check_text("message", &request.message)?;
    if let Some(id) = &request.session_id {
        check_id(id, || Problem::no_session(id))?;
    }
    let start = Start {
        principal,
        wish: Wish {
            provider: request.provider,
            model: request.model,
            recipe: request.recipe,
            parameters: request.parameters.unwrap_or_default(),
            context: request.context.unwrap_or_default(),
        },
        talk: Talk::Session {
            create: request.session_id.is_none(),
            id: request.session_id.map(SessionId),
            keep: None,
            messages: vec![Arc::new(Message::user(request.message))],
        },
        shape: None,
    };
    let started = app.hub().start(start).await?;
    if request.background == Some(true) {
        return Ok(accepted(&started, RunState::Running));
    }
    match started.wait().await {
        Ended::Finished(report) => Ok((names(&started), Json(report)).into_response()),
        Ended::Waiting => Ok(accepted(&started, RunState::Waiting)),
        Ended::Stopped => Err(Problem {
            run: Some((*started.run).into()),
            ..Problem::unavailable(
                format!(
                    "the server stopped before the run was over: POST /runs/{}/continue goes on with it",
                    started.run
                ),
                None,
            )
        }),
    }
}

/// A run that goes on without the request that began it.
fn accepted(started: &Started, state: RunState) -> Response {
    let body = RunAccepted {
        run_id: started.run.to_string(),
        session_id: started.session.as_ref().map(|it| it.0.clone()),
        state,
    };
    let location = [(header::LOCATION, format!("/runs/{}", started.run))];
    (StatusCode::ACCEPTED, names(started), location, Json(body)).into_response()
}

/// The ids of a run as headers.
fn names(started: &Started) -> [(HeaderName, String); 2] {
    let session = started.session.as_ref();
    [
        (
            HeaderName::from_static("x-switchboard-run-id"),
            started.run.to_string(),
        ),
        (
            HeaderName::from_static("x-switchboard-session-id"),
            session.map(|it| it.0.clone()).unwrap_or_default(),
        ),
    ]
}

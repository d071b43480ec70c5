//! The route `POST /chat`: answers one question in a session.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use switchboard_domain::{Message, Principal, Role, RunState, SessionId};
use switchboard_orchestration::tools::arguments::ClientContext;
use utoipa::ToSchema;

use crate::{
    App, Parameters, Problem, RunSettings,
    http::{
        extractors::{JsonBody, reject_nul_character},
        run_headers::set_run_headers,
        security::Caller,
    },
    hub::{ConversationInput, RunStartRequest, RunStatus, StartedRun, is_valid_id},
    openapi::schema,
};

/// A question for the model, and the settings of the run that answers it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatRequest {
    /// The text of the question.
    #[schema(min_length = 1)]
    message: String,
    /// The id of the session that the question continues. Without an id, a new session is created.
    session_id: Option<String>,
    /// Whether the question replaces the last question of the session. Its answer is removed.
    /// Requires `session_id`.
    replace_last: Option<bool>,
    /// The provider of the model, if `model` does not contain it.
    provider: Option<String>,
    /// The model of the run, as `PROVIDER/MODEL` or a model name alone. The default is the
    /// configured model.
    model: Option<String>,
    /// The name of the recipe, which is a file with a prompt, a tool selection and a strategy.
    recipe: Option<String>,
    /// Parameters of the run, such as temperature and limits.
    parameters: Option<Parameters>,
    /// Named values that tools receive but the model does not, such as access tokens. The
    /// configuration lists the accepted names.
    #[schema(value_type = Option<Object>)]
    context: Option<ClientContext>,
    /// Whether to respond immediately with status 202. `GET /runs/{id}/events` then returns the
    /// events.
    background: Option<bool>,
}

/// A run that continues after the response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunAccepted {
    /// The id of the run.
    pub(super) run_id: String,
    /// The id of the session, or `null` for an ephemeral run.
    pub(super) session_id: Option<String>,
    /// The state of the run. If it is `waiting`, `GET /runs/{id}` lists the waiting calls.
    #[schema(value_type = schema::RunState)]
    pub(super) state: RunState,
}

/// Ask a question
///
/// Returns the answer when the run is finished. If the run must wait for a person, the status is
/// 202, and `GET /runs/{id}` lists the waiting calls and questions. The run continues if the client
/// disconnects, and its answer is stored in the session.
#[utoipa::path(
    post, path = "/chat", operation_id = "chat", tag = "chat",
    request_body = ChatRequest,
    responses(
        (
            status = 200,
            description = "The run is finished; `outcome` contains its outcome.",
            body = schema::RunReport
        ),
        (status = 202, description = "The run continues.", body = RunAccepted,
            headers(("location" = String, description = "The run: `/runs/{id}`."))),
        (status = 404, description = "The session does not exist.", body = Problem),
        (status = 409, description = "The session has an unfinished run.", body = Problem),
    )
)]
pub(super) async fn chat(
    State(app): State<App>,
    Caller(principal): Caller,
    JsonBody(request): JsonBody<ChatRequest>,
) -> Result<Response, Problem> {
    if request.message.trim().is_empty() {
        let detail = "`message` is empty: send a question";
        return Err(Problem::invalid_field("message", detail));
    }
    reject_nul_character("message", &request.message)?;
    if let Some(id) = request.session_id.as_ref().filter(|id| !is_valid_id(id)) {
        return Err(Problem::session_not_found(id));
    }
    let keep = match (&request.session_id, request.replace_last) {
        (Some(id), Some(true)) => {
            Some(count_messages_before_last_question(&app, &principal, id).await?)
        }
        (None, Some(true)) => {
            let detail = "`replace_last` requires `session_id`";
            return Err(Problem::invalid_field("replace_last", detail));
        }
        _ => None,
    };
    let start = RunStartRequest {
        principal,
        settings: RunSettings {
            provider: request.provider,
            model: request.model,
            recipe: request.recipe,
            parameters: request.parameters.unwrap_or_default(),
            context: request.context.unwrap_or_default(),
        },
        conversation: ConversationInput::Session {
            create: request.session_id.is_none(),
            id: request.session_id.map(SessionId),
            keep,
            messages: vec![Arc::new(Message::user(request.message))],
        },
        client_tools: None,
        answer_form: None,
    };
    let started = app.hub().start_run(start).await?;
    if request.background == Some(true) {
        return Ok(accepted_response(&started, RunState::Running));
    }
    match started.wait_for_end_or_pause().await {
        RunStatus::Finished(report) => Ok(add_run_headers(&started, Json(report))),
        RunStatus::AwaitingInput(_) | RunStatus::Suspended(_) => {
            Ok(accepted_response(&started, RunState::Waiting))
        }
        RunStatus::Running | RunStatus::Interrupted => {
            let run = &started.run;
            let detail = format!(
                "the server stopped before the end of the run: continue it with POST \
                 /runs/{run}/continue"
            );
            Err(Problem::server_unavailable(detail).with_unfinished_run(run))
        }
    }
}

/// Returns the number of messages before the last question of a session.
async fn count_messages_before_last_question(
    app: &App,
    principal: &Principal,
    session: &str,
) -> Result<u64, Problem> {
    let id = SessionId(session.to_owned());
    let sessions = app.hub().session_store();
    let messages = sessions.load_messages(principal, &id, 0).await?;
    let counted = messages.iter().zip(0..);
    let questions = counted.filter(|(message, _)| message.role == Role::User);
    questions.last().map(|(_, count)| count).ok_or_else(|| {
        let detail = "the session has no question to replace: send the message without \
                      `replace_last`";
        Problem::state_conflict(detail).with_invalid_field("replace_last")
    })
}

/// Creates a response with status 202 for a run that continues after the response.
fn accepted_response(started: &StartedRun, state: RunState) -> Response {
    let body = RunAccepted {
        run_id: started.run.to_string(),
        session_id: started.session.as_ref().map(|it| it.0.clone()),
        state,
    };
    let location = [(header::LOCATION, format!("/runs/{}", started.run))];
    add_run_headers(started, (StatusCode::ACCEPTED, location, Json(body)))
}

fn add_run_headers(started: &StartedRun, response: impl IntoResponse) -> Response {
    let mut response = response.into_response();
    set_run_headers(&mut response, &started.run, started.session.as_ref());
    response
}

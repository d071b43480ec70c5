//! The routes and error format of OpenAI's Chat Completions API.

mod request;
mod stream;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

pub(crate) use request::OpenAiChatRequest;
pub(crate) use stream::OpenAiChatStream;
use stream::{completion_json, error_body, error_kind};

use super::{
    anthropic_messages,
    response::{paused_runs::PausedRuns, run_failure::RunFailure},
    runs::ephemeral_request::EphemeralRequest,
};
use crate::{
    App, ModelInfo, Problem,
    http::{
        extractors::{JsonBody, PathParameters},
        security::Caller,
    },
};

/// Answers a conversation in the format of OpenAI's Chat Completions API.
///
/// The server's tools run on the server. Tools of the request run at the client: their calls end
/// the response with `tool_calls`, and a request with their results continues the run. Events of
/// the server's tools are in the field `switchboard` of chunks and answers.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "openaiChat",
    tag = "dialects",
    request_body = OpenAiChatRequest,
    responses(
        (
            status = 200,
            description = "The answer, or with `stream` events with a `chat.completion.chunk`",
            body = Object
        ),
        (status = "4XX", description = "An error in OpenAI's format", body = Object),
        (status = "5XX", description = "An error in OpenAI's format", body = Object),
    )
)]
pub(crate) async fn completions(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(paused_runs): Extension<PausedRuns>,
    JsonBody(request): JsonBody<OpenAiChatRequest>,
) -> Result<Response, Problem> {
    let parsed = EphemeralRequest {
        parameters: request.parse_parameters()?,
        messages: request.parse_conversation()?,
        tools: request.parse_tools()?,
        answer_form: request.parse_answer_schema()?,
        switchboard: request.switchboard.clone().unwrap_or_default(),
        model: &request.model,
    };
    let response = parsed.start_or_resume_run(app, principal, paused_runs);
    let response = response.await?;
    let options = request.stream_options.as_ref();
    let with_usage = options.is_some_and(|options| options.include_usage);
    let (is_streamed, model) = (request.stream == Some(true), request.model);
    let encoder = |state| OpenAiChatStream::new(Some(model.clone()), with_usage, state);
    let answer = |collected: &_, report: Option<&_>| completion_json(collected, report, &model);
    let response = response.build_response(is_streamed, encoder, answer, run_failure_response);
    Ok(response.await)
}

/// Returns a model in OpenAI's format. `created` is 0, because the time of creation is unknown.
fn model_json(model: &ModelInfo) -> Value {
    json!({"id": model.id, "created": 0, "object": "model", "owned_by": model.provider})
}

/// Lists the models whose provider is configured, in OpenAI's format. The header
/// `anthropic-version` selects Anthropic's format.
#[utoipa::path(
    get,
    path = "/v1/models",
    tag = "dialects",
    params((
        "anthropic-version" = Option<String>, Header,
        description = "Selects Anthropic's format"
    )),
    responses((status = 200, description = "The models", body = Object))
)]
pub(crate) async fn models(
    State(app): State<App>,
    Caller(_): Caller,
    headers: HeaderMap,
) -> Json<Value> {
    let models = app.engine().available_models().await;
    let ready = models.iter().filter(|model| model.ready);
    Json(if headers.contains_key("anthropic-version") {
        anthropic_messages::model_list_json(ready)
    } else {
        json!({"object": "list", "data": ready.map(model_json).collect::<Vec<_>>()})
    })
}

/// Returns one model in OpenAI's format. In the URL, a slash in the model id is written as `%2F`.
#[utoipa::path(
    get,
    path = "/v1/models/{id}",
    operation_id = "openaiModel",
    tag = "dialects",
    params(("id" = String, Path, description = "The id, as listed by `GET /v1/models`")),
    responses(
        (status = 200, description = "The model", body = Object),
        (status = 404, description = "The model does not exist", body = Object),
    )
)]
pub(crate) async fn model(
    State(app): State<App>,
    Caller(_): Caller,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<Value>, Problem> {
    let models = app.engine().available_models().await;
    let found = models.into_iter().find(|model| model.id == id);
    found.map(|model| Json(model_json(&model))).ok_or_else(|| {
        Problem::not_found(format!(
            "the model `{id}` does not exist; GET /v1/models lists the models"
        ))
        .with_invalid_field("model")
    })
}

/// Creates an error response in OpenAI's format.
pub(crate) fn problem_response(status: StatusCode, problem: &Problem) -> Response {
    let field = problem.field.as_deref();
    let field = field.map(|field| field.trim_start_matches("parameters."));
    error_response(status, &problem.detail, field, problem.kind)
}

fn run_failure_response(failure: &RunFailure<'_>) -> Response {
    error_response(failure.status, failure.message, None, &failure.code)
}

fn error_response(status: StatusCode, message: &str, param: Option<&str>, code: &str) -> Response {
    let kind = error_kind(status);
    (status, Json(error_body(kind, message, param, code))).into_response()
}

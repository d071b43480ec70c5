//! OpenAI's Chat Completions API.

mod request;
mod stream;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use request::OpenAiChatRequest;
pub(crate) use stream::OpenAiChatStream;
use stream::{completion, error_body, error_kind};

use super::{
    anthropic_messages,
    response::{failure::Failure, paused_runs::PausedRuns},
    runs::ephemeral::EphemeralRequest,
};
use crate::{
    App, ModelInfo, Problem,
    http::{
        read::{ReadJson, ReadPath},
        security::Caller,
    },
};

/// Answers the conversation, as OpenAI's Chat Completions API.
///
/// The server's tools run on the server. Tools of the request run at the client: their calls end
/// the response with `tool_calls`, and the run continues with the results. Events of the server's
/// tools are in the field `switchboard` of chunks and answers.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "openaiChat",
    tag = "dialects",
    request_body = OpenAiChatRequest,
    responses(
        (
            status = 200,
            description = "The answer, or with `stream` server-sent events of `chat.completion.chunk`",
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
    ReadJson(request): ReadJson<OpenAiChatRequest>,
) -> Result<Response, Problem> {
    let parsed = EphemeralRequest {
        parameters: request.parameters()?,
        messages: request.conversation()?,
        tools: request.tools()?,
        answer_form: request.answer_form()?,
        switchboard: request.switchboard.clone().unwrap_or_default(),
        model: &request.model,
    };
    let response = parsed.start(app, principal, paused_runs).await?;
    let options = request.stream_options.as_ref();
    let with_usage = options.is_some_and(|options| options.include_usage);
    let (is_streamed, model) = (request.stream == Some(true), request.model);
    let encoder = |options| OpenAiChatStream::new(Some(model.clone()), with_usage, options);
    let answer = |collected: &_, report: Option<&_>| completion(collected, report, &model);
    Ok(response.respond(is_streamed, encoder, answer, failed).await)
}

/// A model in OpenAI's format.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Model {
    /// The value for `model`.
    id: String,
    /// Unknown, therefore 0.
    created: i64,
    /// `model`.
    object: &'static str,
    /// The provider.
    owned_by: String,
}

impl From<ModelInfo> for Model {
    fn from(model: ModelInfo) -> Self {
        Self {
            id: model.id,
            created: 0,
            object: "model",
            owned_by: model.provider,
        }
    }
}

/// The available models in OpenAI's format.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Models {
    /// `list`.
    object: &'static str,
    /// The models whose provider is configured.
    data: Vec<Model>,
}

/// The models in one of two formats.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "for the document only")]
enum EitherModels {
    /// The default.
    OpenAi(Models),
    /// With the header `anthropic-version`.
    Anthropic(anthropic_messages::Models),
}

/// Lists the models whose provider is configured, in OpenAI's format, or with the header
/// `anthropic-version` in Anthropic's.
#[utoipa::path(
    get,
    path = "/v1/models",
    tag = "dialects",
    params(("anthropic-version" = Option<String>, Header, description = "Selects Anthropic's format")),
    responses((status = 200, description = "The models", body = EitherModels))
)]
pub(crate) async fn models(
    State(app): State<App>,
    Caller(_): Caller,
    headers: HeaderMap,
) -> Response {
    let models = app.engine().models().await;
    let ready = models.into_iter().filter(|model| model.ready);
    if headers.contains_key("anthropic-version") {
        return Json(anthropic_messages::Models::of(ready)).into_response();
    }
    let models = Models {
        object: "list",
        data: ready.map(Model::from).collect(),
    };
    Json(models).into_response()
}

/// Returns one model in OpenAI's format. A slash in its id is sent as `%2F`.
#[utoipa::path(
    get,
    path = "/v1/models/{id}",
    operation_id = "openaiModel",
    tag = "dialects",
    params(("id" = String, Path, description = "The id, as listed by `GET /v1/models`")),
    responses(
        (status = 200, description = "The model", body = Model),
        (status = 404, description = "The model does not exist", body = Object),
    )
)]
pub(crate) async fn model(
    State(app): State<App>,
    Caller(_): Caller,
    ReadPath(id): ReadPath<String>,
) -> Result<Json<Model>, Problem> {
    let models = app.engine().models().await;
    let found = models.into_iter().find(|model| model.id == id);
    found.map(|model| Json(model.into())).ok_or_else(|| {
        Problem::not_found(format!(
            "the model `{id}` does not exist; GET /v1/models lists the models"
        ))
        .at("model")
    })
}

/// Returns a problem in OpenAI's format.
pub(crate) fn problem(problem: &Problem) -> Response {
    let status = match problem.status {
        // OpenAI's status for an invalid body.
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let field = problem.field.as_deref();
    let field = field.map(|field| field.trim_start_matches("parameters."));
    error(status, &problem.detail, field, problem.kind)
}

fn failed(failure: &Failure<'_>) -> Response {
    error(failure.status, failure.message, None, &failure.code)
}

fn error(status: StatusCode, message: &str, param: Option<&str>, code: &str) -> Response {
    let kind = error_kind(status);
    (status, Json(error_body(kind, message, param, code))).into_response()
}

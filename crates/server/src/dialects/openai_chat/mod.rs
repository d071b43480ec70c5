//! OpenAI's Chat Completions.

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

pub(crate) use request::{OpenAiChatRequest, SwitchboardFields};
pub(crate) use stream::OpenAiChatStream;
pub(crate) use stream::RunDetails;
use stream::{Completion, ErrorBody, error_kind};

use super::{
    response::failure::Failure,
    runs::ephemeral::EphemeralRequest,
    anthropic_messages,
    response::run_response::{RunResponse, name_run},
    response::paused_runs::PausedRuns,
    response::collected::CollectedResponse,
};
use crate::{
    App, ModelInfo, Problem,
    read::{ReadJson, ReadPath},
    security::Caller,
};

/// Answers the last of these messages, in the form of OpenAI's Chat Completions.
///
/// The server's own tools run on the server, those of the request at the client: a call of one of them ends the response with
/// `tool_calls`, and the run goes on with the results. What the server's tools did stands in the field `switchboard` of chunks and answers.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "openaiChat",
    tag = "dialects",
    request_body = OpenAiChatRequest,
    responses(
        (status = 200, description = "The answer; with `stream` server-sent events of `chat.completion.chunk`", body = Object),
        (status = "4XX", description = "An error in OpenAI's form", body = Object),
        (status = "5XX", description = "An error in OpenAI's form", body = Object),
    )
)]
pub(crate) async fn completions(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(waiting): Extension<PausedRuns>,
    ReadJson(request): ReadJson<OpenAiChatRequest>,
) -> Result<Response, Problem> {
    let asked = EphemeralRequest {
        parameters: request.parameters()?,
        messages: request.conversation()?,
        tools: request.tools()?,
        form: request.form()?,
        recipe: request
            .switchboard
            .as_ref()
            .and_then(|it| it.recipe.clone()),
        context: request
            .switchboard
            .as_ref()
            .and_then(|it| it.context.clone())
            .unwrap_or_default(),
        model: &request.model,
    };
    let telling = asked.begin(app, principal, waiting).await?;
    Ok(respond(telling, request).await)
}

/// Says what a run says, at once or as it comes.
async fn respond(telling: RunResponse<()>, request: OpenAiChatRequest) -> Response {
    if request.stream == Some(true) {
        let with_usage = request
            .stream_options
            .as_ref()
            .is_some_and(|options| options.include_usage);
        let terms = telling.terms();
        let projection = OpenAiChatStream::new(Some(request.model), with_usage, terms);
        return telling.by(projection).response();
    }
    let terms = telling.terms();
    let said = telling.by(CollectedResponse::new(terms)).finish().await;
    let mut response = match (&said.report, &said.broken) {
        (Some(report), _) => match said.course.failure(report) {
            Some(failure) => failed(&failure),
            None => Json(Completion::new(&said, report, &request.model)).into_response(),
        },
        (None, Some(why)) => failed(&Failure::interrupted(why)),
        (None, None) => Json(Completion::calls(&said, &request.model)).into_response(),
    };
    name_run(&mut response, said.course.run(), None);
    response
}

/// A model in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Model {
    /// As `model` wants it.
    id: String,
    /// When it was made: not known, which is 0.
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

/// The models that can be named, in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Models {
    /// `list`.
    object: &'static str,
    /// The models whose provider can be asked.
    data: Vec<Model>,
}

/// The models, in one of two forms.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "for the document only")]
enum EitherModels {
    /// For everybody.
    OpenAi(Models),
    /// For whoever sends `anthropic-version`.
    Anthropic(anthropic_messages::Models),
}

/// The models whose provider can be asked, in OpenAI's form; in Anthropic's for whoever sends `anthropic-version`.
#[utoipa::path(
    get,
    path = "/v1/models",
    tag = "dialects",
    params(("anthropic-version" = Option<String>, Header, description = "Asks for the list in Anthropic's form")),
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

/// One model, in OpenAI's form. A slash in its id is sent as `%2F`.
#[utoipa::path(
    get,
    path = "/v1/models/{id}",
    operation_id = "openaiModel",
    tag = "dialects",
    params(("id" = String, Path, description = "The model, as `GET /v1/models` lists it")),
    responses(
        (status = 200, description = "The model", body = Model),
        (status = 404, description = "There is no such model", body = Object),
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
            "there is no model `{id}`; GET /v1/models lists those there are"
        ))
        .at("model")
    })
}

/// A problem in OpenAI's form.
pub(crate) fn problem(problem: &Problem) -> Response {
    let status = match problem.status {
        // What OpenAI says of a body that does not fit.
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let field = problem.field.as_deref();
    let field = field.map(|field| field.trim_start_matches("parameters."));
    error(status, &problem.detail, field, Some(problem.kind))
}

fn failed(failure: &Failure<'_>) -> Response {
    let mut response = error(failure.status, failure.message, None, Some(&failure.code));
    failure.set_headers(&mut response);
    response
}

fn error(status: StatusCode, message: &str, param: Option<&str>, code: Option<&str>) -> Response {
    let kind = error_kind(status);
    (status, Json(ErrorBody::new(kind, message, param, code))).into_response()
}

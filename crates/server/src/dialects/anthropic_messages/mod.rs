//! Anthropic's Messages.

mod request;
mod stream;

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use request::AnthropicMessagesRequest;
pub(crate) use stream::AnthropicMessagesStream;
use stream::{ErrorBody, Message, error_kind};

use super::{
    response::failure::Failure,
    runs::ephemeral::EphemeralRequest,
    response::run_response::{RunResponse, name_run},
    response::paused_runs::PausedRuns,
    response::collected::CollectedResponse,
};
use crate::{App, ModelInfo, Problem, read::ReadJson, security::Caller};

/// Answers the last of these messages, in the form of Anthropic's Messages.
///
/// The server's own tools run on the server, those of the request at the client: a call of one of them ends the response with
/// `tool_use`, and the run goes on with the results. What the server's tools did stands in the field `switchboard` of `ping` events and answers.
#[utoipa::path(
    post,
    path = "/v1/messages",
    operation_id = "anthropicMessages",
    tag = "dialects",
    request_body = AnthropicMessagesRequest,
    responses(
        (status = 200, description = "The message; with `stream` server-sent events", body = Object),
        (status = "4XX", description = "An error in Anthropic's form", body = Object),
        (status = "5XX", description = "An error in Anthropic's form", body = Object),
    )
)]
pub(crate) async fn messages(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(waiting): Extension<PausedRuns>,
    ReadJson(request): ReadJson<AnthropicMessagesRequest>,
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
async fn respond(telling: RunResponse<()>, request: AnthropicMessagesRequest) -> Response {
    if request.stream == Some(true) {
        let terms = telling.terms();
        let projection = AnthropicMessagesStream::new(Some(request.model), terms);
        return telling.by(projection).response();
    }
    let terms = telling.terms();
    let said = telling.by(CollectedResponse::new(terms)).finish().await;
    let mut response = match (&said.report, &said.broken) {
        (Some(report), _) => match said.course.failure(report) {
            Some(failure) => failed(&failure),
            None => Json(Message::new(&said, report, &request.model)).into_response(),
        },
        (None, Some(why)) => failed(&Failure::interrupted(why)),
        (None, None) => Json(Message::calls(&said, &request.model)).into_response(),
    };
    name_run(&mut response, said.course.run(), None);
    response
}

/// The models in Anthropic's form: `types/model_info.py` and `pagination.py` of `anthropic` 2.12.0. All are on one page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AnthropicModels)]
pub(crate) struct Models {
    /// The models whose provider can be asked.
    data: Vec<Model>,
    /// Never.
    has_more: bool,
    /// The first of them.
    first_id: Option<String>,
    /// The last of them.
    last_id: Option<String>,
}

/// A model in Anthropic's form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AnthropicModel)]
struct Model {
    /// `model`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// As `model` wants it.
    id: String,
    /// Its name without the provider.
    display_name: String,
    /// Not known, for which the vendor has the beginning of time.
    created_at: &'static str,
    /// `active`.
    lifecycle: &'static str,
    /// Its context window, where that is known.
    max_input_tokens: Option<u64>,
    /// What it writes at most, where that is known.
    max_tokens: Option<u64>,
}

impl Models {
    pub(crate) fn of(models: impl Iterator<Item = ModelInfo>) -> Self {
        let data: Vec<Model> = models
            .map(|model| Model {
                kind: "model",
                id: model.id,
                display_name: model.name,
                created_at: "1970-01-01T00:00:00Z",
                lifecycle: "active",
                max_input_tokens: model.context_window,
                max_tokens: model.max_output_tokens,
            })
            .collect();
        Self {
            has_more: false,
            first_id: data.first().map(|model| model.id.clone()),
            last_id: data.last().map(|model| model.id.clone()),
            data,
        }
    }
}

/// A problem in Anthropic's form.
pub(crate) fn problem(problem: &Problem) -> Response {
    let status = match problem.status {
        // What Anthropic says of a body that does not fit.
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    error(status, &problem.detail)
}

fn failed(failure: &Failure<'_>) -> Response {
    let mut response = error(failure.status, failure.message);
    failure.set_headers(&mut response);
    response
}

fn error(status: StatusCode, message: &str) -> Response {
    let kind = error_kind(status.as_u16());
    (status, Json(ErrorBody::new(kind, message))).into_response()
}

//! Anthropic's Messages API.

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
use stream::{collected_message, error_body, error_kind};

use super::{
    response::{failure::Failure, paused_runs::PausedRuns},
    runs::ephemeral::EphemeralRequest,
};
use crate::{
    App, ModelInfo, Problem,
    http::{read::ReadJson, security::Caller},
};

/// Answers the conversation, as Anthropic's Messages API.
///
/// The server's tools run on the server. Tools of the request run at the client: their calls end
/// the response with `tool_use`, and the run continues with the results. Events of the server's
/// tools are in the field `switchboard` of `ping` events and answers.
#[utoipa::path(
    post,
    path = "/v1/messages",
    operation_id = "anthropicMessages",
    tag = "dialects",
    request_body = AnthropicMessagesRequest,
    responses(
        (
            status = 200,
            description = "The message, or with `stream` server-sent events",
            body = Object
        ),
        (status = "4XX", description = "An error in Anthropic's format", body = Object),
        (status = "5XX", description = "An error in Anthropic's format", body = Object),
    )
)]
pub(crate) async fn messages(
    State(app): State<App>,
    Caller(principal): Caller,
    Extension(paused_runs): Extension<PausedRuns>,
    ReadJson(request): ReadJson<AnthropicMessagesRequest>,
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
    let (is_streamed, model) = (request.stream == Some(true), request.model);
    let encoder = |options| AnthropicMessagesStream::new(Some(model.clone()), options);
    let answer = |collected: &_, report: Option<&_>| collected_message(collected, report, &model);
    Ok(response.respond(is_streamed, encoder, answer, failed).await)
}

/// The models in Anthropic's format (`types/model_info.py` and `pagination.py` of `anthropic`
/// 2.12.0), all on one page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AnthropicModels)]
pub(crate) struct Models {
    /// The models whose provider is configured.
    data: Vec<Model>,
    /// Always false.
    has_more: bool,
    /// The id of the first model.
    first_id: Option<String>,
    /// The id of the last model.
    last_id: Option<String>,
}

/// A model in Anthropic's format.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AnthropicModel)]
struct Model {
    /// `model`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The value for `model`.
    id: String,
    /// The name without the provider.
    display_name: String,
    /// Unknown, therefore the start of 1970, as in Anthropic's API.
    created_at: &'static str,
    /// `active`.
    lifecycle: &'static str,
    /// The context window, if known.
    max_input_tokens: Option<u64>,
    /// The output limit, if known.
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

/// Returns a problem in Anthropic's format.
pub(crate) fn problem(problem: &Problem) -> Response {
    let status = match problem.status {
        // Anthropic's status for an invalid body.
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    error(status, &problem.detail)
}

fn failed(failure: &Failure<'_>) -> Response {
    error(failure.status, failure.message)
}

fn error(status: StatusCode, message: &str) -> Response {
    let kind = error_kind(status.as_u16());
    (status, Json(error_body(kind, message))).into_response()
}

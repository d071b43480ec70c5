//! The route and error format of Anthropic's Messages API.

mod request;
mod stream;

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

pub(crate) use request::AnthropicMessagesRequest;
pub(crate) use stream::AnthropicMessagesStream;
use stream::{error_body, error_kind, response_json};

use super::{
    response::{paused_runs::PausedRuns, run_failure::RunFailure},
    runs::ephemeral_request::EphemeralRequest,
};
use crate::{
    App, ModelInfo, Problem,
    http::{extractors::JsonBody, security::Caller},
};

/// Answers a conversation in the format of Anthropic's Messages API.
///
/// The server's tools run on the server. Tools of the request run at the client: their calls end
/// the response with `tool_use`, and a request with their results continues the run. Events of the
/// server's tools are in the field `switchboard` of `ping` events and answers.
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
    JsonBody(request): JsonBody<AnthropicMessagesRequest>,
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
    let (is_streamed, model) = (request.stream == Some(true), request.model);
    let encoder = |state| AnthropicMessagesStream::new(Some(model.clone()), state);
    let answer = |collected: &_, report: Option<&_>| response_json(collected, report, &model);
    let response = response.build_response(is_streamed, encoder, answer, run_failure_response);
    Ok(response.await)
}

/// Returns all models on one page in Anthropic's format (`types/model_info.py` and `pagination.py`
/// of the Python package `anthropic` 2.12.0). The time of creation is unknown. Anthropic's API uses
/// the start of 1970 in this case.
pub(crate) fn model_list_json<'m>(models: impl Iterator<Item = &'m ModelInfo>) -> Value {
    let to_json = |model: &ModelInfo| {
        json!({
            "type": "model",
            "id": model.id,
            "display_name": model.name,
            "created_at": "1970-01-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": model.context_window,
            "max_tokens": model.max_output_tokens,
        })
    };
    let data: Vec<Value> = models.map(to_json).collect();
    let id_of = |model: Option<&Value>| model.map(|model| model["id"].clone());
    let (first, last) = (id_of(data.first()), id_of(data.last()));
    json!({"data": data, "has_more": false, "first_id": first, "last_id": last})
}

fn run_failure_response(failure: &RunFailure<'_>) -> Response {
    error_response(failure.status, failure.message)
}

/// Creates an error response in Anthropic's format.
pub(crate) fn error_response(status: StatusCode, message: &str) -> Response {
    let kind = error_kind(status.as_u16());
    (status, Json(error_body(kind, message))).into_response()
}

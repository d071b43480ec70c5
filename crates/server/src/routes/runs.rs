//! Routes of runs: show, follow, decide, cancel, continue.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use serde::Deserialize;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, ElicitationAnswer, JsonObject, RunRecord,
};
use utoipa::ToSchema;

use super::{chat::RunAccepted, sessions::EventStreamQuery};
use crate::{
    App, Problem,
    http::{
        extractors::{
            JsonBody, PathParameters, QueryParameters, check_object_depth, reject_nul_character,
        },
        security::Caller,
        sse,
    },
    hub::RunView,
    openapi::schema,
};

/// An approval decision about a tool call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Decision {
    /// The tool call is executed.
    Allow {
        /// The scope of the approval. By default it applies to this tool call only.
        #[serde(default)]
        #[schema(value_type = Option<schema::ApprovalScope>)]
        scope: ApprovalScope,
        /// Input for the tool call that replaces the input that the model wrote.
        #[schema(value_type = Option<BTreeMap<String, Value>>)]
        input: Option<JsonObject>,
    },
    /// The tool call is not executed.
    Deny {
        /// The scope of the denial. By default it applies to this tool call only.
        #[serde(default)]
        #[schema(value_type = Option<schema::ApprovalScope>)]
        scope: ApprovalScope,
        /// The reason for the denial, which the model receives.
        reason: Option<String>,
    },
}

/// A person's answer to an elicitation request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// The person answers the question.
    Accept {
        /// The person's values for the fields of the question, by field name.
        #[serde(default)]
        #[schema(value_type = Option<BTreeMap<String, Value>>)]
        content: JsonObject,
    },
    /// The person refuses to answer the question.
    Decline {},
    /// The person closes the question without a choice.
    Cancel {},
}

impl Decision {
    fn into_approval_decision(self) -> Result<ApprovalDecision, Problem> {
        match self {
            Self::Allow { scope, input } => {
                let input = input.map(|input| check_object_depth("input", input));
                let input = input.transpose()?;
                Ok(ApprovalDecision::Allow { input, scope })
            }
            Self::Deny { scope, reason } => {
                reject_nul_character("reason", reason.as_deref().unwrap_or_default())?;
                Ok(ApprovalDecision::Deny { reason, scope })
            }
        }
    }
}

impl Answer {
    fn into_elicitation_answer(self) -> Result<ElicitationAnswer, Problem> {
        Ok(match self {
            Self::Accept { content } => ElicitationAnswer::Accept {
                content: check_object_depth("content", content)?,
            },
            Self::Decline {} => ElicitationAnswer::Decline,
            Self::Cancel {} => ElicitationAnswer::Cancel,
        })
    }
}

/// Creates a response with status 202 that contains the ids and the state of a run.
fn accepted_response(record: RunRecord) -> Response {
    let body = RunAccepted {
        run_id: record.id,
        session_id: Some(record.session.0).filter(|id| !id.is_empty()),
        state: record.state,
    };
    (StatusCode::ACCEPTED, Json(body)).into_response()
}

/// Show a run
#[utoipa::path(
    get, path = "/runs/{id}", operation_id = "getRun", tag = "runs",
    params(("id" = String, Path, description = "The run.")),
    responses(
        (status = 200, description = "The run.", body = RunView),
    )
)]
pub(super) async fn show_run(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<RunView>, Problem> {
    app.hub().run_view(&principal, &id).await.map(Json)
}

/// Follow a run
///
/// Server-sent events: `id` is the event's number in the run, `event` its type, `data` the event
/// (`RunEvent`). The stream ends with the run and stays open while the run waits for a person. 204
/// if the run is finished and has no later event, so that a browser's `EventSource` does not
/// reconnect.
#[utoipa::path(
    get, path = "/runs/{id}/events", operation_id = "followRun", tag = "runs",
    params(
        ("id" = String, Path, description = "The run."),
        EventStreamQuery,
        (
            "Last-Event-ID" = Option<String>, Header,
            description = "The number of the last event that the client has."
        ),
    ),
    responses(
        (
            status = 200,
            description = "Events, each with a `RunEvent` as its data.",
            body = schema::RunEvent, content_type = "text/event-stream"
        ),
        (status = 204, description = "The run is finished and has no later event."),
    )
)]
pub(super) async fn stream_run_events(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
    QueryParameters(query): QueryParameters<EventStreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = sse::parse_last_event_id(query.after, &headers)?;
    let reader = app.hub().event_reader(&principal, &id, after).await?;
    if reader.is_over {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let frames = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((sse::format_sse_event(event.seq, &event), reader))
    });
    Ok(sse::stream_response(frames, app.options().keep_alive))
}

/// Decide about a waiting call
///
/// Decisions may arrive in any order. A stored run is resumed by the first one.
#[utoipa::path(
    post, path = "/runs/{id}/approvals/{call_id}", operation_id = "decide", tag = "runs",
    params(
        ("id" = String, Path, description = "The run."),
        ("call_id" = String, Path, description = "The call: `tool_use.id`."),
    ),
    request_body = Decision,
    responses(
        (status = 202, description = "The decision was accepted.", body = RunAccepted),
        (status = 409, description = "The call does not wait for a decision.", body = Problem),
    )
)]
pub(super) async fn decide(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters((id, call)): PathParameters<(String, String)>,
    JsonBody(decision): JsonBody<Decision>,
) -> Result<Response, Problem> {
    let decision = decision.into_approval_decision()?;
    let decided = app.hub().decide_call(&principal, &id, &call, decision);
    decided.await.map(accepted_response)
}

/// Answer an elicitation request
#[utoipa::path(
    post, path = "/runs/{id}/questions/{question_id}", operation_id = "answer", tag = "runs",
    params(
        ("id" = String, Path, description = "The run."),
        ("question_id" = String, Path, description = "The question."),
    ),
    request_body = Answer,
    responses(
        (status = 202, description = "The answer was accepted.", body = RunAccepted),
        (status = 409, description = "The question is not open.", body = Problem),
    )
)]
pub(super) async fn answer(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters((id, question)): PathParameters<(String, String)>,
    JsonBody(answer): JsonBody<Answer>,
) -> Result<Response, Problem> {
    let answer = answer.into_elicitation_answer()?;
    let answered = app
        .hub()
        .answer_question(&principal, &id, &question, answer);
    answered.await.map(accepted_response)
}

/// Cancel a run
///
/// Cancels every active call at its server. The messages stay in the session. A finished run does
/// not change.
#[utoipa::path(
    post, path = "/runs/{id}/cancel", operation_id = "cancelRun", tag = "runs",
    params(("id" = String, Path, description = "The run.")),
    responses(
        (
            status = 202,
            description = "The run is finished or will finish soon.",
            body = RunAccepted
        ),
        (status = 409, description = "Another process executes the run.", body = Problem),
    )
)]
pub(super) async fn cancel(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
) -> Result<Response, Problem> {
    let cancelled = app.hub().cancel_run(&principal, &id).await;
    cancelled.map(accepted_response)
}

/// Continue a waiting or interrupted run
///
/// Calls with a result are not repeated. A call that was active when its process ended is repeated
/// only if its tool declares that this is safe. An active run does not change.
#[utoipa::path(
    post, path = "/runs/{id}/continue", operation_id = "continueRun", tag = "runs",
    params(("id" = String, Path, description = "The run.")),
    responses(
        (status = 202, description = "The run continues.", body = RunAccepted),
        (
            status = 409,
            description = "The run is finished, or another process executes it.",
            body = Problem
        ),
    )
)]
pub(super) async fn continue_run(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
) -> Result<Response, Problem> {
    let continued = app.hub().continue_run(&principal, &id).await;
    continued.map(accepted_response)
}

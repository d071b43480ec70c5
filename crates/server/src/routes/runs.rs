//! Routes of runs: show, follow, decide, cancel, continue.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Elicitation, ElicitationAnswer, JsonObject,
    RunRecord,
};
use switchboard_orchestration::RunReport;
use utoipa::ToSchema;

use super::{chat::RunAccepted, sessions::EventsQuery};
use crate::{
    App, Problem,
    http::{
        read::{ReadJson, ReadPath, ReadQuery, check_id, check_object, check_text},
        security::Caller,
        sse,
    },
    hub::type_of,
    openapi::schema,
};

/// A run with its waiting calls and questions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunDetails {
    /// The run.
    #[schema(value_type = schema::RunRecord)]
    run: RunRecord,
    /// Calls that wait for a decision: `POST /runs/{id}/approvals/{call_id}`, where the call's id
    /// is `tool_use.id`.
    #[schema(value_type = Vec<schema::ApprovalRequest>)]
    waiting: Vec<ApprovalRequest>,
    /// Elicitation requests of servers: `POST /runs/{id}/questions/{question_id}`.
    questions: Vec<QuestionDetails>,
    /// The report; `null` until the run is finished.
    #[schema(value_type = Option<schema::RunReport>)]
    report: Option<Box<RunReport>>,
}

/// An elicitation request of a server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionDetails {
    /// The id for the answer.
    id: String,
    /// The request.
    #[schema(value_type = schema::Elicitation)]
    question: Elicitation,
}

/// A decision about a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    /// The decision.
    #[serde(rename = "decision")]
    action: DecisionAction,
    /// The validity of the decision.
    scope: Option<Scope>,
    /// The input instead of the model's. Only with `allow`.
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    input: Option<JsonObject>,
    /// The reason for the model. Only with `deny`.
    reason: Option<String>,
}

/// The action for a call.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionAction {
    /// The call is executed.
    Allow,
    /// The call is not executed.
    Deny,
}

/// The validity of a decision: this call, the tool in this session, or the tool from now on.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Once,
    Session,
    Always,
}

/// An answer to an elicitation request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// The action.
    action: Action,
    /// The fields of the form. Only with `accept`.
    #[schema(value_type = Option<std::collections::BTreeMap<String, serde_json::Value>>)]
    content: Option<JsonObject>,
}

/// The action of the person: accepts, declines or cancels.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Accept,
    Decline,
    Cancel,
}

impl Decision {
    fn validate(self) -> Result<ApprovalDecision, Problem> {
        let scope = match self.scope {
            None | Some(Scope::Once) => ApprovalScope::Once,
            Some(Scope::Session) => ApprovalScope::Session,
            Some(Scope::Always) => ApprovalScope::Always,
        };
        match (self.action, self.input, self.reason) {
            (DecisionAction::Allow, input, None) => {
                let input = input
                    .map(|input| check_object("input", input))
                    .transpose()?;
                Ok(ApprovalDecision::Allow { input, scope })
            }
            (DecisionAction::Deny, None, reason) => {
                if let Some(reason) = &reason {
                    check_text("reason", reason)?;
                }
                Ok(ApprovalDecision::Deny { reason, scope })
            }
            (DecisionAction::Allow, _, Some(_)) => Err(Problem::invalid(
                "reason",
                "`reason` is allowed only with `deny`",
            )),
            (DecisionAction::Deny, Some(_), _) => Err(Problem::invalid(
                "input",
                "`input` is allowed only with `allow`",
            )),
        }
    }
}

impl Answer {
    fn validate(self) -> Result<ElicitationAnswer, Problem> {
        match (self.action, self.content) {
            (Action::Accept, content) => Ok(ElicitationAnswer::Accept {
                content: check_object("content", content.unwrap_or_default())?,
            }),
            (_, Some(_)) => Err(Problem::invalid(
                "content",
                "`content` is allowed only with `accept`",
            )),
            (Action::Decline, None) => Ok(ElicitationAnswer::Decline),
            (Action::Cancel, None) => Ok(ElicitationAnswer::Cancel),
        }
    }
}

fn check_run_id(id: &str) -> Result<(), Problem> {
    check_id(id, || Problem::no_run(id))
}

/// Returns the response with the state of a run after an operation.
fn accepted(record: RunRecord) -> Response {
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
        (status = 200, description = "The run.", body = RunDetails),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
) -> Result<Json<RunDetails>, Problem> {
    check_run_id(&id)?;
    let view = app.hub().view(&principal, &id).await?;
    let questions = view.questions.into_iter().map(|open| QuestionDetails {
        id: open.id,
        question: open.question,
    });
    Ok(Json(RunDetails {
        run: view.run,
        waiting: view.waiting,
        questions: questions.collect(),
        report: view.report,
    }))
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
        EventsQuery,
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
pub(super) async fn events(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
    ReadQuery(query): ReadQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_run_id(&id)?;
    let after = sse::after(query.after, &headers)?;
    let reader = app.hub().reader(&principal, &id, after).await?;
    if app.hub().is_finished(&principal, &id, after).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let frames = reader.map(|event| {
        let json = event.json();
        sse::frame(Some(event.seq), Some(type_of(&json)), &json)
    });
    Ok(sse::response(frames, app.options().keep_alive))
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
    ReadPath((id, call)): ReadPath<(String, String)>,
    ReadJson(decision): ReadJson<Decision>,
) -> Result<Response, Problem> {
    check_run_id(&id)?;
    let decision = decision.validate()?;
    app.hub().check_exists(&principal, &id).await?;
    let decided = app.hub().decide(&principal, &id, &call, decision).await;
    decided.map(accepted)
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
    ReadPath((id, question)): ReadPath<(String, String)>,
    ReadJson(answer): ReadJson<Answer>,
) -> Result<Response, Problem> {
    check_run_id(&id)?;
    let answer = answer.validate()?;
    app.hub().check_exists(&principal, &id).await?;
    let record = app.hub().answer(&principal, &id, &question, answer)?;
    Ok(accepted(record))
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
    ReadPath(id): ReadPath<String>,
) -> Result<Response, Problem> {
    check_run_id(&id)?;
    app.hub().cancel(&principal, &id).await.map(accepted)
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
    ReadPath(id): ReadPath<String>,
) -> Result<Response, Problem> {
    check_run_id(&id)?;
    app.hub().continue_run(&principal, &id).await.map(accepted)
}

//! Routes of sessions: create, list, show, rename, delete, follow.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use switchboard_domain::{Message, RunRecord, Session, SessionId};
use utoipa::{IntoParams, ToSchema};

use crate::{
    App, Problem,
    http::{
        extractors::{
            JsonBody, OptionalJsonBody, PathParameters, QueryParameters, reject_nul_character,
        },
        security::Caller,
        sse,
    },
    hub::{SessionReader, is_valid_id},
    openapi::schema,
};

/// Maximum number of characters in the title of a session.
const MAX_TITLE_LENGTH: usize = 500;
/// Maximum number of runs in the response that shows a session.
const MAX_RUNS: u32 = 1_000;

/// The properties that a client can set for a new session.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// The title of the session.
    #[schema(max_length = 500)]
    title: Option<String>,
}

/// A change of the properties of a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionChange {
    /// The title that replaces the current title of the session.
    #[schema(max_length = 500)]
    title: String,
}

/// The query parameters of `GET /sessions`.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionListQuery {
    /// Maximum number of sessions in the response. The default is 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The position in a stream of events at which a client starts to read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventStreamQuery {
    /// The number of the last event that the client has. The stream contains only later events. A
    /// browser that reconnects also sends the header `Last-Event-ID`; the larger number counts.
    pub(super) after: Option<u64>,
}

/// A list of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// The sessions, newest first.
    #[schema(value_type = Vec<schema::Session>)]
    sessions: Vec<Session>,
    /// The unfinished runs among the newest 1,000 runs. A run that waits for a person has the state
    /// `waiting`.
    #[schema(value_type = Vec<schema::RunRecord>)]
    unfinished_runs: Vec<RunRecord>,
}

/// A session with its messages and runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// The properties of the session: its id, title, creation time and number of messages.
    #[schema(value_type = schema::Session)]
    session: Session,
    /// The stored messages, oldest first. Messages of an unfinished run are only in its events.
    #[schema(value_type = Vec<schema::Message>)]
    messages: Vec<Arc<Message>>,
    /// The newest runs of the session, newest first, at most 1,000.
    #[schema(value_type = Vec<schema::RunRecord>)]
    runs: Vec<RunRecord>,
    /// The number of the last event in the session, for `GET /sessions/{id}/events?after=N`.
    last_event: u64,
}

fn check_session_title(title: &str) -> Result<(), Problem> {
    reject_nul_character("title", title)?;
    if title.chars().count() > MAX_TITLE_LENGTH {
        let detail = format!("`title` has more than {MAX_TITLE_LENGTH} characters");
        return Err(Problem::invalid_field("title", detail));
    }
    Ok(())
}

/// Returns the number of items in a list: 100, or the `limit` of the query, at most 1,000.
pub(super) fn check_list_limit(limit: Option<u32>) -> Result<u32, Problem> {
    let limit = limit.unwrap_or(100);
    if !(1..=1_000).contains(&limit) {
        let detail = "`limit` must be a whole number from 1 to 1000";
        return Err(Problem::invalid_field("limit", detail));
    }
    Ok(limit)
}

fn parse_session_id(id: String) -> Result<SessionId, Problem> {
    if !is_valid_id(&id) {
        return Err(Problem::session_not_found(&id));
    }
    Ok(SessionId(id))
}

/// Create a session
#[utoipa::path(
    post, path = "/sessions", operation_id = "createSession", tag = "sessions",
    request_body(content = Option<NewSession>, content_type = "application/json"),
    responses(
        (status = 201, description = "The session was created.", body = schema::Session,
            headers(("location" = String, description = "The session: `/sessions/{id}`."))),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Caller(principal): Caller,
    OptionalJsonBody(new): OptionalJsonBody<Option<NewSession>>,
) -> Result<Response, Problem> {
    let title = new.and_then(|new| new.title).unwrap_or_default();
    check_session_title(&title)?;
    let session = app.hub().create_session(&principal, title).await?;
    let location = [(header::LOCATION, format!("/sessions/{}", session.id))];
    Ok((StatusCode::CREATED, location, Json(session)).into_response())
}

/// List the sessions
#[utoipa::path(
    get, path = "/sessions", operation_id = "listSessions", tag = "sessions",
    params(SessionListQuery),
    responses(
        (status = 200, description = "The sessions, newest first.", body = SessionList),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    Caller(principal): Caller,
    QueryParameters(query): QueryParameters<SessionListQuery>,
) -> Result<Json<SessionList>, Problem> {
    let limit = check_list_limit(query.limit)?;
    let sessions = app.hub().session_store();
    let sessions = sessions.list_sessions(&principal, limit).await?;
    let unfinished_runs = app.hub().list_unfinished_runs(&principal, MAX_RUNS).await?;
    Ok(Json(SessionList {
        sessions,
        unfinished_runs,
    }))
}

/// Show a session with its messages and runs
#[utoipa::path(
    get, path = "/sessions/{id}", operation_id = "getSession", tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    responses(
        (status = 200, description = "The session.", body = SessionView),
    )
)]
pub(super) async fn show_session(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<SessionView>, Problem> {
    let id = parse_session_id(id)?;
    let (hub, sessions) = (app.hub(), app.hub().session_store());
    // Runs are read before messages, so that the messages of every finished run are included.
    let runs = hub.list_session_runs(&principal, &id, MAX_RUNS).await?;
    let session = sessions.find_session(&principal, &id).await?;
    let session = session.ok_or_else(|| Problem::session_not_found(&id.0))?;
    let messages = sessions.load_messages(&principal, &id, 0).await?;
    Ok(Json(SessionView {
        last_event: runs
            .first()
            .map_or(0, |newest| newest.events_before + newest.last_event),
        session,
        messages,
        runs,
    }))
}

/// Rename a session
#[utoipa::path(
    patch, path = "/sessions/{id}", operation_id = "renameSession", tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    request_body = SessionChange,
    responses(
        (status = 204, description = "The session was renamed."),
    )
)]
pub(super) async fn rename(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
    JsonBody(change): JsonBody<SessionChange>,
) -> Result<StatusCode, Problem> {
    let id = parse_session_id(id)?;
    let title = &change.title;
    check_session_title(title)?;
    let sessions = app.hub().session_store();
    sessions.rename_session(&principal, &id, title).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Delete a session with its messages and runs
#[utoipa::path(
    delete, path = "/sessions/{id}", operation_id = "deleteSession", tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    responses(
        (status = 204, description = "The session was deleted or did not exist."),
        (status = 409, description = "A run of the session is active.", body = Problem),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
) -> Result<StatusCode, Problem> {
    let id = parse_session_id(id)?;
    app.hub().delete_session(&principal, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a session
///
/// Server-sent events: `id` is the event's number in the session, `event` its type, `data` the
/// event (`RunEvent`). The stream contains current and future runs and ends when the server stops.
/// A client that reconnects with the last number gets all later events.
#[utoipa::path(
    get, path = "/sessions/{id}/events", operation_id = "followSession", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session."),
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
    )
)]
pub(super) async fn stream_session_events(
    State(app): State<App>,
    Caller(principal): Caller,
    PathParameters(id): PathParameters<String>,
    QueryParameters(query): QueryParameters<EventStreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = parse_session_id(id)?;
    let after = sse::parse_last_event_id(query.after, &headers)?;
    let reader = app.hub().session_reader(&principal, &id, after).await?;
    let frames = futures_util::stream::unfold(reader, |mut reader: SessionReader| async move {
        let (number, event) = reader.next().await?;
        Some((sse::format_sse_event(number, &event), reader))
    });
    Ok(sse::stream_response(frames, app.options().keep_alive))
}

//! Sessions: made, listed, shown, renamed, forgotten, and followed.

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
    hub::{SessionReader, type_of},
    problem::ProblemBody,
    read::{ReadJson, ReadJsonOrNothing, ReadPath, ReadQuery, check_id, check_text},
    schema,
    security::Caller,
    sse,
};

/// Characters that a title may have.
const LONGEST_TITLE: usize = 500;
/// Runs of a session that are shown with it.
const RUNS_SHOWN: u32 = 1_000;

/// A session to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// What it is about.
    #[schema(max_length = 500)]
    title: Option<String>,
}

/// A new title.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionChange {
    /// What it is about.
    #[schema(max_length = 500)]
    title: String,
}

/// How many are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many at most; 100 if it is not said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// From where on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Only events with numbers above this one. A browser that comes back says it in the header `Last-Event-ID`, which
    /// counts if it is the larger one.
    pub(super) after: Option<u64>,
}

/// Sessions, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// Them.
    #[schema(value_type = Vec<schema::Session>)]
    sessions: Vec<Session>,
}

/// A session with everything in it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// The session.
    #[schema(value_type = schema::Session)]
    session: Session,
    /// What was said, oldest first. What a run that is not over says comes with its end; until then it is in its
    /// events.
    #[schema(value_type = Vec<schema::Message>)]
    messages: Vec<Arc<Message>>,
    /// Its runs, newest first, at most 1,000.
    #[schema(value_type = Vec<schema::RunRecord>)]
    runs: Vec<RunRecord>,
    /// The number of its last event: `GET /sessions/{id}/events?after=` this goes on from here.
    last_event: u64,
}

fn check_title(title: &str) -> Result<(), Problem> {
    check_text("title", title)?;
    if title.chars().count() > LONGEST_TITLE {
        let detail = format!("`title` may have {LONGEST_TITLE} characters");
        return Err(Problem::invalid("title", detail));
    }
    Ok(())
}

fn session_id(id: String) -> Result<SessionId, Problem> {
    check_id(&id, || Problem::no_session(&id))?;
    Ok(SessionId(id))
}

/// Make a session
#[utoipa::path(
    post, path = "/sessions", operation_id = "createSession", tag = "sessions",
    request_body(content = Option<NewSession>, content_type = "application/json"),
    responses(
        (status = 201, description = "It is there.", body = schema::Session,
            headers(("location" = String, description = "The session: `/sessions/{id}`."))),
        (status = 400, description = "The body cannot be read.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not said to be JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The title cannot be.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadJsonOrNothing(new): ReadJsonOrNothing<Option<NewSession>>,
) -> Result<Response, Problem> {
    let title = new.and_then(|new| new.title).unwrap_or_default();
    check_title(&title)?;
    let session = app.hub().create(&principal, None, title).await?;
    let location = [(header::LOCATION, format!("/sessions/{}", session.id))];
    Ok((StatusCode::CREATED, location, Json(session)).into_response())
}

/// List the sessions
#[utoipa::path(
    get, path = "/sessions", operation_id = "listSessions", tag = "sessions",
    params(ListQuery),
    responses(
        (status = 200, description = "Sessions, newest first.", body = SessionList),
        (status = 400, description = "The query does not fit.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The limit cannot be.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadQuery(query): ReadQuery<ListQuery>,
) -> Result<Json<SessionList>, Problem> {
    let limit = query.limit.unwrap_or(100);
    if !(1..=1_000).contains(&limit) {
        return Err(Problem::invalid(
            "limit",
            "`limit` is a whole number from 1 to 1000",
        ));
    }
    let sessions = app.hub().sessions().list(&principal, limit).await?;
    Ok(Json(SessionList { sessions }))
}

/// Show a session with its messages and runs
#[utoipa::path(
    get, path = "/sessions/{id}", operation_id = "getSession", tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    responses(
        (status = 200, description = "The session.", body = SessionView),
        (status = 404, description = "There is no such session.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
) -> Result<Json<SessionView>, Problem> {
    let id = session_id(id)?;
    let (hub, sessions) = (app.hub(), app.hub().sessions());
    // In this order: what a run adds to the messages is in them once the run says that it is over.
    let runs = hub.runs_of(&principal, &id, RUNS_SHOWN).await?;
    let session = sessions.get(&principal, &id).await?;
    let session = session.ok_or_else(|| Problem::no_session(&id.0))?;
    let messages = sessions.messages(&principal, &id, 0).await?;
    Ok(Json(SessionView {
        last_event: runs
            .first()
            .map_or(0, |newest| newest.events_before + newest.last_event),
        session,
        messages,
        runs,
    }))
}

/// Give a session another title
#[utoipa::path(
    patch, path = "/sessions/{id}", operation_id = "renameSession", tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    request_body = SessionChange,
    responses(
        (status = 204, description = "It has that title."),
        (status = 400, description = "The body cannot be read.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not said to be JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The title cannot be.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn rename(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
    ReadJson(change): ReadJson<SessionChange>,
) -> Result<StatusCode, Problem> {
    let id = session_id(id)?;
    check_title(&change.title)?;
    let sessions = app.hub().sessions();
    sessions.rename(&principal, &id, &change.title).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forget a session with everything in it
#[utoipa::path(
    delete, path = "/sessions/{id}", operation_id = "deleteSession", tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    responses(
        (status = 204, description = "It is gone, or was not there."),
        (status = 404, description = "This can be no session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A run of it is under way.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
) -> Result<StatusCode, Problem> {
    let id = session_id(id)?;
    app.hub().delete(&principal, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a session
///
/// Server-sent events: `id` is the event's number in the session, `event` its type, `data` the event (`RunEvent`). The
/// stream stays open over any number of runs. It ends when the server stops; whoever comes back with the last number
/// misses nothing.
#[utoipa::path(
    get, path = "/sessions/{id}/events", operation_id = "followSession", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session."),
        EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that was read."),
    ),
    responses(
        (status = 200, description = "Events, each with a `RunEvent` as its data.", body = schema::RunEvent, content_type = "text/event-stream"),
        (status = 400, description = "The number is none.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such session.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
    ReadQuery(query): ReadQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = session_id(id)?;
    let after = sse::after(query.after, &headers)?;
    let reader = app.hub().session_reader(&principal, &id, after).await?;
    let frames = futures_util::stream::unfold(reader, |mut reader: SessionReader| async move {
        let (number, event) = reader.next().await?;
        let json = event.json();
        Some((
            sse::frame(Some(number), Some(type_of(&json)), &json),
            reader,
        ))
    });
    Ok(sse::response(frames, app.options().keep_alive))
}

//! The UI message stream of the Vercel AI SDK: what `useChat` speaks.

mod inbound;
mod stream;

use std::collections::HashSet;

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use switchboard_domain::{Principal, RunState, SessionId};

pub(crate) use inbound::UiRequest;
use inbound::{Trigger, Words};
pub use stream::UiStream;

use super::{inbound::session_id, respond::Telling};
use crate::{
    App, Problem, Wish,
    hub::{Start, Talk},
    problem::ProblemBody,
    read::{ReadJson, ReadPath},
    security::Caller,
};

/// Names the protocol and its version: `src/ui-message-stream/ui-message-stream-headers.ts` of `ai` 7.0.173.
const PROTOCOL: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// Goes on with a chat, and streams the answer as the AI SDK's UI message stream, version 1.
///
/// The chat is a session. Its run goes on when the client goes away; `GET /api/chat/{id}/stream` comes back to it. Where a
/// call waits for a person, the stream ends, and goes on with the request that `addToolApprovalResponse` makes.
#[utoipa::path(
    post,
    path = "/api/chat",
    operation_id = "uiChat",
    tag = "dialects",
    request_body = UiRequest,
    responses(
        (status = 200, description = "Server-sent events, each a UI message chunk", body = String, content_type = "text/event-stream"),
        (status = 400, description = "The body cannot be read, or asks for what is not supported.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such run, or no such session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A call waits for no word, or the session changed meanwhile.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not said to be JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A value cannot be, such as a model that there is not.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many runs of the same principal.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn chat(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadJson(request): ReadJson<UiRequest>,
) -> Result<Response, Problem> {
    let session = session_id(&request.id, "id")?;
    if let Some(words) = request.words()? {
        return go_on(app, principal, session, words).await;
    }
    request.parameters.check()?;
    let is_known = app.hub().sessions().get(&principal, &session).await?;
    let messages = match is_known {
        // The client's own copy of what was said is not read: the session has it, with all that models need back.
        Some(_) => {
            let newest = request.newest()?;
            end_what_is_open(&app, &principal, &session).await?;
            newest
        }
        None if request.trigger == Trigger::RegenerateMessage || request.messages.len() > 1 => {
            request.conversation()?
        }
        None => request.newest()?,
    };
    let start = Start {
        principal: principal.clone(),
        wish: Wish {
            provider: request.provider,
            model: request.model,
            recipe: request.recipe,
            parameters: request.parameters,
        },
        talk: Talk::Session {
            id: Some(session.clone()),
            create: true,
            messages,
        },
        shape: None,
    };
    let started = app.hub().start(start).await?;
    let projection = UiStream::new(Some(session.0));
    let telling = Telling::of(app, principal, &started, projection).until_waiting();
    Ok(named(telling.response()))
}

/// Somebody said something new while a run was not over: they stopped it, or went on without it.
pub(super) async fn end_what_is_open(
    app: &App,
    principal: &Principal,
    session: &SessionId,
) -> Result<(), Problem> {
    if let Some(open) = app.hub().open_run(principal, session).await? {
        app.hub().cancel(principal, &open.run).await?;
    }
    Ok(())
}

/// Says the words, and tells what comes of them.
async fn go_on(
    app: App,
    principal: Principal,
    session: SessionId,
    words: Words,
) -> Result<Response, Problem> {
    let hub = app.hub();
    hub.check(&principal, &words.run).await?;
    let mut decided = HashSet::new();
    for (call, word) in words.said {
        match hub.decide(&principal, &words.run, &call, word).await {
            Ok(_) => drop(decided.insert(call)),
            // Somebody else had a word, or the run went on without: what came of it is told all the same.
            Err(problem) if problem.status == StatusCode::CONFLICT => {}
            Err(problem) => return Err(problem),
        }
    }
    let reader = hub.reader(&principal, &words.run, 0).await?;
    let projection = UiStream::new(Some(session.0.clone()));
    let run = words.run.as_str().into();
    let telling = Telling::all(
        app.clone(),
        principal,
        run,
        Some(session),
        reader,
        projection,
    )
    .after(words.seen, decided)
    .until_waiting();
    Ok(named(telling.response()))
}

/// Comes back to a chat's run, from its beginning, as `useChat` does with `resume: true`. 204 if none is under way.
#[utoipa::path(
    get,
    path = "/api/chat/{id}/stream",
    operation_id = "uiResume",
    tag = "dialects",
    params(("id" = String, Path, description = "The chat, which is the session")),
    responses(
        (status = 200, description = "Server-sent events, each a UI message chunk", body = String, content_type = "text/event-stream"),
        (status = 204, description = "Nothing is under way"),
    )
)]
pub(crate) async fn resume(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadPath(id): ReadPath<String>,
) -> Result<Response, Problem> {
    // A chat that nobody has said anything in is no session yet, whatever its id.
    let nothing = || StatusCode::NO_CONTENT.into_response();
    let Ok(session) = session_id(&id, "id") else {
        return Ok(nothing());
    };
    let hub = app.hub();
    if hub.sessions().get(&principal, &session).await?.is_none() {
        return Ok(nothing());
    }
    let open = hub.open_run(&principal, &session).await?;
    // One that broke off goes on only when somebody wants it to.
    let Some(open) = open.filter(|open| open.state != RunState::Interrupted) else {
        return Ok(nothing());
    };
    let reader = hub.reader(&principal, &open.run, 0).await?;
    let projection = UiStream::new(Some(session.0.clone()));
    let telling = Telling::all(
        app.clone(),
        principal,
        open.run,
        Some(session),
        reader,
        projection,
    )
    .until_waiting();
    Ok(named(telling.response()))
}

fn named(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(PROTOCOL, HeaderValue::from_static("v1"));
    response
}

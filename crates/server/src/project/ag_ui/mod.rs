//! AG-UI, the protocol between agents and front ends.

mod inbound;
mod stream;

use std::collections::HashSet;

use axum::{extract::State, http::StatusCode, response::Response};
use switchboard_domain::{Principal, SessionId};

pub(crate) use inbound::RunInput;
use inbound::Words;
pub use stream::AgUiStream;

use super::{inbound::session_id, respond::Telling, ui::end_what_is_open};
use crate::{
    App, Problem,
    hub::{Start, Talk},
    problem::ProblemBody,
    read::ReadJson,
    security::Caller,
};

/// Runs the agent in a thread, which is a session, and streams what happens as AG-UI events, protocol version 1.0.
///
/// Where a call waits for a person, the run ends with an interrupt; the answer comes in `resume` of the next one.
#[utoipa::path(
    post,
    path = "/ag-ui",
    operation_id = "agUi",
    tag = "dialects",
    request_body = RunInput,
    responses(
        (status = 200, description = "Server-sent events, each an AG-UI event", body = String, content_type = "text/event-stream"),
        (status = 400, description = "The body cannot be read, or asks for what is not supported.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such run, or no such session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A call waits for no word, or the session changed meanwhile.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not said to be JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A value cannot be, such as a model that there is not.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many runs of the same principal.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    Caller(principal): Caller,
    ReadJson(input): ReadJson<RunInput>,
) -> Result<Response, Problem> {
    let session = session_id(&input.thread_id, "threadId")?;
    let wish = input.wish()?;
    if let Some(words) = input.words()? {
        return go_on(app, principal, session, input.run_id, words).await;
    }
    let messages = if app
        .hub()
        .sessions()
        .get(&principal, &session)
        .await?
        .is_some()
    {
        let newest = input.newest()?;
        end_what_is_open(&app, &principal, &session).await?;
        newest
    } else {
        input.conversation()?
    };
    let start = Start {
        principal: principal.clone(),
        wish,
        talk: Talk::Session {
            id: Some(session.clone()),
            create: true,
            messages,
        },
        shape: None,
    };
    let started = app.hub().start(start).await?;
    let projection = AgUiStream::new(session.0, input.run_id);
    let telling = Telling::of(app, principal, &started, projection).until_waiting();
    Ok(telling.response())
}

/// Says the words, and tells what comes of them.
async fn go_on(
    app: App,
    principal: Principal,
    session: SessionId,
    client_run: String,
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
    let projection = AgUiStream::new(session.0.clone(), client_run);
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
    Ok(telling.response())
}

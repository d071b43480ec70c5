//! The dialects: a run's events in the forms that others speak, and their requests in ours.
//!
//! | route | form |
//! |---|---|
//! | `POST /api/chat`, `GET /api/chat/{id}/stream` | `ui`: the UI message stream of the Vercel AI SDK, version 1 |
//! | `POST /v1/chat/completions`, `GET /v1/models` | `chat`: OpenAI's Chat Completions |
//! | `POST /v1/messages` | `messages`: Anthropic's Messages |
//! | `POST /ag-ui` | `ag_ui`: AG-UI 1.0 |
//!
//! Each is a `projection`: a state machine that is given the events of one run in order and writes what a client reads. It
//! does no I/O and keeps no history. `telling` puts the events into an order that all of them can say. The AI SDK's chat and AG-UI
//! begin their runs in sessions (`kept`); to OpenAI's and Anthropic's clients nothing is kept (`loose`).

pub(crate) mod ag_ui;
pub(crate) mod chat;
mod client_tools;
mod course;
mod failure;
mod frames;
mod inbound;
mod kept;
mod loose;
#[cfg(feature = "benches")]
pub(crate) mod measured;
pub(crate) mod messages;
mod projection;
mod respond;
mod telling;
mod tool_output;
pub(crate) mod ui;
mod waiting;
mod whole;

use axum::{Extension, response::Response};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{App, Problem};
pub(crate) use client_tools::SERVER as CLIENT;

/// The routes of all dialects.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(ui::chat))
        .routes(routes!(ui::resume))
        .routes(routes!(chat::completions))
        .routes(routes!(chat::models))
        .routes(routes!(chat::model))
        .routes(routes!(messages::messages))
        .routes(routes!(ag_ui::run))
        .layer(Extension(waiting::Waiting::default()))
}

/// A problem in the form of the dialect that is spoken at a path; `None` where that is none of its own.
pub(crate) fn problem(path: &str, problem: &Problem) -> Option<Response> {
    let mut response = match path {
        _ if path.starts_with("/v1/messages") => messages::problem(problem),
        // Whatever else is asked for there is asked for by OpenAI's SDKs.
        _ if path.starts_with("/v1/") => chat::problem(problem),
        _ => return None,
    };
    problem.set_headers(&mut response);
    Some(response)
}

#[cfg(test)]
use frames::Frames;

#[cfg(test)]
#[path = "laws_tests.rs"]
mod laws;

#[cfg(test)]
#[path = "problem_tests.rs"]
mod problem_tests;

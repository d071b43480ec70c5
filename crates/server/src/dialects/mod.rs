//! Parses requests and encodes run events in the HTTP protocols of other systems, such as OpenAI.
//!
//! | route | module |
//! |---|---|
//! | `POST /api/chat`, `GET /api/chat/{id}/stream` | `ai_sdk`: Vercel AI SDK, UI message stream 1 |
//! | `POST /v1/chat/completions`, `GET /v1/models` | `openai_chat`: OpenAI's Chat Completions |
//! | `POST /v1/messages` | `anthropic_messages`: Anthropic's Messages |
//! | `POST /ag-ui` | `ag_ui`: AG-UI 1.0 |
//!
//! Each dialect has an `EventEncoder`: a state machine that receives the events of one run in order
//! and writes the server-sent events of its protocol. It does no I/O and keeps no history. The
//! `EventSequencer` puts the events into an order that every protocol accepts. Runs of the AI SDK
//! and AG-UI are durable and belong to a session; those of OpenAI and Anthropic are ephemeral.

pub(crate) mod ag_ui;
pub(crate) mod ai_sdk;
pub(crate) mod anthropic_messages;
mod conversation;
mod event_encoder;
mod event_sequencer;
pub(crate) mod openai_chat;
mod response;
mod runs;
mod tools;

use axum::{Extension, http::StatusCode, response::Response};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{App, Problem};
use response::paused_runs::PausedRuns;

/// Returns the routes of all dialects: the protocols of the AI SDK, OpenAI, Anthropic and AG-UI.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(ai_sdk::chat))
        .routes(routes!(ai_sdk::resume))
        .routes(routes!(openai_chat::completions))
        .routes(routes!(openai_chat::models))
        .routes(routes!(openai_chat::model))
        .routes(routes!(anthropic_messages::messages))
        .routes(routes!(ag_ui::run))
        .layer(Extension(PausedRuns::default()))
}

/// Converts an error to the format of OpenAI or Anthropic if `path` belongs to their API. Returns
/// `None` for other paths.
pub(crate) fn to_dialect_error_response(path: &str, problem: &Problem) -> Option<Response> {
    // OpenAI and Anthropic use the status 400 for invalid values too, not 422.
    let status = match problem.status {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let mut response = match path {
        _ if path.starts_with("/v1/messages") => {
            anthropic_messages::error_response(status, &problem.detail)
        }
        // All other paths below `/v1/` belong to OpenAI's API, so their errors have OpenAI's
        // format.
        _ if path.starts_with("/v1/") => openai_chat::problem_response(status, problem),
        _ => return None,
    };
    problem.set_headers(&mut response);
    Some(response)
}

#[cfg(test)]
use response::sse_frames::SseFrames;

#[cfg(test)]
#[path = "laws_tests.rs"]
mod laws;

#[cfg(test)]
#[path = "problem_tests.rs"]
mod problem_tests;

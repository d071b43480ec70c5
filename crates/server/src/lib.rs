//! The HTTP server and its web page. Clients run agents through the server's own routes, or through
//! the protocols of OpenAI, Anthropic, the AI SDK and AG-UI.
//!
//! A [`Server`] consists of an [`Engine`], which builds agents, and of the stores for sessions and
//! runs. A run in a session continues when no client reads its events. Each of its events is stored
//! before clients receive it, so that any number of clients can read, disconnect and reconnect.
//!
//! | module | content |
//! |---|---|
//! | `hub` | the active runs, their events and readers |
//! | `router`, `state` | all routes with their middleware, and the state of the handlers |
//! | `routes` | the native routes and the web page |
//! | `dialects` | the same events in the protocols of other clients |
//! | `http` | connections, limits, access control, extractors, server-sent events |
//! | `openapi` | the OpenAPI document |
//! | `monitoring` | metrics and readiness |
#![deny(missing_docs)]

mod dialects;
mod engine;
mod http;
mod hub;
mod monitoring;
mod openapi;
mod options;
mod problem;
mod router;
mod routes;
mod state;

pub use engine::{
    Approve, Engine, ModelInfo, Parameters, RecipeInfo, RunEventObserver, RunSettings,
    RunSettingsError, ToolPage,
};
pub use http::serve::{Server, ServerError, Shutdown};
pub use options::{AccessToken, MIN_TOKEN_LENGTH, ServerOptions};
pub(crate) use problem::{Problem, ProblemKind};
pub(crate) use state::App;

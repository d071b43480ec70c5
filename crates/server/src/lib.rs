//! The HTTP server and the web page: runs as events for any client, in five dialects.
//!
//! A [`Server`] consists of an [`Engine`], which builds agents, and of the stores for sessions and
//! runs. A run continues without readers: its events are stored and then emitted, and any number
//! of readers can follow, disconnect and reconnect.
//!
//! | module | content |
//! |---|---|
//! | `hub` | the active runs, their events and readers |
//! | `routes` | the native routes |
//! | `project` | the dialects: the same events in the protocols of other clients |
//! | `security` | hosts, origins, and tokens |
//! | `limits` | limits on concurrent requests and runs |
//! | `serve`, `write_timeout` | connections and the shutdown |
//! | `page` | the web page |
#![deny(missing_docs)]

mod app;
mod counts;
mod dialects;
mod document;
mod engine;
mod hub;
mod limits;
mod options;
mod page;
mod problem;
mod read;
mod readiness;
mod routes;
mod schema;
mod security;
mod serve;
mod sse;
mod write_timeout;

pub(crate) use app::App;
pub use engine::{
    Approve, Engine, ModelInfo, Observer, Parameters, RecipeInfo, RunSettings, RunSettingsError,
    ToolPage,
};
pub use options::{AccessToken, MIN_TOKEN_LENGTH, ServerOptions};
pub use problem::Problem;
pub use serve::{Server, ServerError, Shutdown};

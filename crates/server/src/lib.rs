//! The HTTP server and the web page: runs as events that any client reads, in five dialects.
//!
//! [`Server`] is made of an [`Engine`], which makes agents, and of the stores that keep sessions and runs. A run goes on
//! whether or not anybody reads it: its events are stored, then told, and any number of readers come, go and come back.
//!
//! | module | holds |
//! |---|---|
//! | `hub` | the runs under way, their events, and whoever reads them |
//! | `routes` | the native routes |
//! | `project` | the dialects: the same events in the words of other interfaces |
//! | `security` | hosts, origins, and tokens |
//! | `places` | how many requests at once |
//! | `serve`, `patience` | connections, and how they end |
//! | `page` | the web page |
#![deny(missing_docs)]

mod app;
mod counts;
mod document;
mod engine;
mod hub;
mod options;
mod page;
mod patience;
mod places;
mod problem;
mod project;
mod read;
mod readiness;
mod routes;
mod schema;
mod security;
mod serve;
mod sse;

pub(crate) use app::App;
pub use engine::{
    Approve, Engine, ModelInfo, Observer, Parameters, RecipeInfo, ToolPage, Wish, WishError,
};
pub use options::{AccessToken, SHORTEST_TOKEN, ServerOptions};
pub use problem::Problem;
#[cfg(feature = "benches")]
pub use project::measured::Dialect;
pub use serve::{Server, ServerError, Shutdown};

//! Features of servers beside tools: resources, prompts, completions and pages of MCP Apps.
//!
//! Methods take the configured name of the server and send their request when they are called.
//! Invalid items of an answer are skipped and reported.

pub(crate) mod apps;
pub(crate) mod completions;
pub(crate) mod prompts;
pub(crate) mod request;
pub(crate) mod resource_updates;
pub(crate) mod resources;

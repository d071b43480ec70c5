//! Features of MCP servers beside tools: resources, prompts, completions and pages of MCP Apps.
//!
//! The methods take the configured name of the server, and each call sends a new request. Invalid
//! items of an answer are skipped and reported as problems.

pub(crate) mod apps;
pub(crate) mod completions;
pub(crate) mod feature_client;
pub(crate) mod prompts;
pub(crate) mod resource_updates;
pub(crate) mod resources;

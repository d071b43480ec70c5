//! What servers offer beside tools: resources, prompts, completions, pages of MCP Apps; and calls that
//! become tasks.
//!
//! Everything is asked for by the server's name in the configuration, when it is wanted: nothing is asked
//! of a server of which nobody wants it. What is read is read leniently: one bad item is left out alone.

pub(crate) mod apps;
pub(crate) mod completions;
pub(crate) mod error;
pub(crate) mod list_cache;
pub(crate) mod pages;
pub(crate) mod prompts;
pub(crate) mod request;
pub(crate) mod resource_updates;
pub(crate) mod resources;

//! Commands about MCP servers and what they offer.

mod accept;
mod login;
pub(super) mod mcp_server;
mod offers;
pub(super) mod prompts;
pub(super) mod resources;
pub(crate) mod servers;
mod template;
pub(crate) mod tools;

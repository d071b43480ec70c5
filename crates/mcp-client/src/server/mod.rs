//! One configured MCP server: its process, its connection, its supervisor and its state.

pub(crate) mod circuits;
mod client_handler;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod list_cache;
pub(crate) mod output;
pub(crate) mod process;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod supervisor;

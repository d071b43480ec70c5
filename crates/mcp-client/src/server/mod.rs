//! One configured MCP server: its process, its connection, its supervisor and its state.

pub(crate) mod circuit_breakers;
mod client_handler;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod list_cache;
pub(crate) mod process;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod stderr_and_logs;
pub(crate) mod supervisor;

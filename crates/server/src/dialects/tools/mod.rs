//! Tools that the client executes, and tool results in MCP's format.

pub(crate) mod client_tools;
pub(crate) mod tool_output;

//! Tools of the client, and tool results in the form of MCP.

pub(crate) mod client_tools;
pub(crate) mod tool_output;

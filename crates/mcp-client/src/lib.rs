//! mcp-client

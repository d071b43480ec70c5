//! mcp-client (not yet built)

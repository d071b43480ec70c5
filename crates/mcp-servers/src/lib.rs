//! mcp-servers (not yet built)

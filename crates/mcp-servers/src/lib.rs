//! mcp-servers

//! mcp-servers: not yet built.
#![deny(missing_docs)]

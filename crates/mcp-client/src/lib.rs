//! mcp-client: not yet built.
#![deny(missing_docs)]

//! Logins against an authorization server and an MCP server on loopback: real HTTP, and a browser
//! that follows redirects.

mod clients;
mod discovery;
mod files;
mod logins;
mod scopes;
mod stage;
mod tokens;
mod world;

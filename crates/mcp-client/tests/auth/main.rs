//! Logins against an authorization server and an MCP server on loopback: real HTTP, and a browser
//! that follows redirects.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions around the tests fail as the tests do"
)]

#[path = "../shared/mod.rs"]
mod shared;

mod clients;
mod discovery;
mod files;
mod logins;
mod scopes;
mod stage;
mod tokens;
mod world;

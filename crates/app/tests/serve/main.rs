//! `switchboard serve` end to end: the real program, HTTP on loopback, and real MCP
//! servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "../chat/asking_server.rs"]
mod asking_server;
mod client_tools;
mod commits;
mod concurrency;
mod connections;
mod context;
mod crash;
mod decisions;
mod deep;
mod dialects;
mod elicitation;
mod engine;
mod hostile;
mod in_process;
mod limits;
mod locked_store;
mod models;
mod native;
mod nested;
mod openapi;
mod recorded;
mod resumed;
mod security;
mod serving;
mod session_ids;
#[path = "../cli/slow_server.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line")]
mod slow_server;
mod stopping;
mod streams;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line")]
mod support;

/// Not a test: the server that some tests configure. The clients ignore the lines that the test
/// runner writes to standard output.
#[test]
#[ignore = "a server that the other tests start"]
fn server() {
    asking_server::serve();
}

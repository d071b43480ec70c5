//! `chat`, `ask --session` and `sessions`: the program at a pseudo-terminal, whose screen the tests
//! read, and over pipes.
//!
//! Reading the screen blocks a thread, so these tests use several worker threads.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod approvals;
mod asking_server;
mod conversation;
mod elicitation;
mod hangup;
mod interrupts;
mod pipe;
mod recorded;
mod stored;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the other commands")]
mod support;
mod terminal;

/// Not a test: this function is the MCP server that some tests configure.
#[test]
#[ignore = "a server that another test starts"]
fn server() {
    asking_server::serve();
}

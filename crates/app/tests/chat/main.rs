//! `chat`, `ask --session` and `sessions` as a user has them: the program at a pseudo-terminal,
//! whose screen is looked at, and over pipes.
//!
//! Looking at a screen blocks its thread, so these tests have more than one.
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

/// Not a test: the server that a test configures.
#[test]
#[ignore = "a server that another test starts"]
fn server() {
    asking_server::serve();
}

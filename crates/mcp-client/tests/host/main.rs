//! The host against real servers: processes (this program, started again) and HTTP on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions around the tests fail as the tests do"
)]

#[path = "../shared/mod.rs"]
mod shared;

mod bad;
mod calls;
mod circuits;
mod definitions;
mod endings;
mod faults;
mod good;
mod hosts;
mod http;
mod hung;
mod invalid_answers;
mod lists;
mod secrets;
mod stage;
mod starts;

/// Which server to be.
const SERVER: &str = "SWITCHBOARD_TEST_SERVER";

/// Not a test: the program that the tests start as their servers, and as a host of its own. What
/// the test runner itself writes to the standard output is noise that a client has to put up with.
#[test]
#[ignore = "a server that the other tests start"]
fn server() {
    let Ok(kind) = std::env::var(SERVER) else {
        return;
    };
    match kind.split_once(' ') {
        Some(("good", versions)) => shared::serve_stdio(good::Good::new(versions)),
        Some(("host", which)) => hosts::be(which),
        _ => bad::serve(&kind),
    }
    std::process::exit(0);
}

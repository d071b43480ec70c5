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

mod auth;
mod features;
mod host;
mod server_requests;

/// Not a test: the program that the tests start as their servers, and as a host. The output of the
/// test runner is noise that a client has to ignore.
#[test]
#[ignore = "a server that the other tests start"]
fn server() {
    features::serve();
    host::serve();
    server_requests::serve();
}

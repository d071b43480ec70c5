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

/// Runs this program as a server or a host that a test starts. A client has to ignore the output of
/// the test runner.
#[test]
#[ignore = "a server that the other tests start"]
fn server() {
    features::serve();
    host::serve();
    server_requests::serve();
}

//! What servers ask in the middle of a call, against real servers of both eras over both
//! transports: processes (this program, started again) and HTTP on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions around the tests fail as the tests do"
)]

#[path = "../shared/mod.rs"]
mod shared;

mod asking_server;
mod attribution;
mod elicitation;
mod logging;
mod roots;
mod sampling;
mod server_stream;
mod support;

/// Which version of the protocol the server speaks.
const VERSION: &str = "SWITCHBOARD_TEST_ASKER";

/// Not a test: the program that the tests start as their servers. What the test runner itself
/// writes to the standard output is noise that a client has to put up with.
#[test]
#[ignore = "a server that the other tests start"]
fn server() {
    let Ok(version) = std::env::var(VERSION) else {
        return;
    };
    shared::serve_stdio(asking_server::AskingServer::new(&version));
    std::process::exit(0);
}

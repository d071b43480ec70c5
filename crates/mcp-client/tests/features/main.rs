//! What servers offer beside tools, and calls that become tasks, against real servers of both eras
//! over both transports: processes (this program, started again) and HTTP on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions around the tests fail as the tests do"
)]

#[path = "../shared/mod.rs"]
mod shared;

mod apps;
mod flaws;
mod library;
mod lists;
mod odd;
mod prompts;
mod resources;
mod stage;
mod tasks;
mod teller;

/// Which server to be: a version of the protocol, or one of those by hand.
const SERVER: &str = "SWITCHBOARD_TEST_LIBRARY";

/// Not a test: the program that the tests start as their servers. What the test runner itself
/// writes to the standard output is noise that a client has to put up with.
#[test]
#[ignore = "a server that the other tests start"]
fn server() {
    let Ok(kind) = std::env::var(SERVER) else {
        return;
    };
    match kind.as_str() {
        "odd" => odd::serve(),
        "fleeting" => odd::serve_fleeting(),
        "teller" => teller::serve(),
        version => shared::serve_stdio(library::Library::new(version)),
    }
    std::process::exit(0);
}

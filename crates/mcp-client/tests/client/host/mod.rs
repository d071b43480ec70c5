//! The host against real servers: processes (this program, started again) and HTTP on loopback.

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

/// The environment variable with the kind of server.
const SERVER: &str = "SWITCHBOARD_TEST_SERVER";

/// Serves as a server of these tests if this process was started as one.
pub(crate) fn serve() {
    let Ok(kind) = std::env::var(SERVER) else {
        return;
    };
    match kind.split_once(' ') {
        Some(("good", versions)) => crate::shared::serve_stdio(good::Good::new(versions)),
        Some(("host", which)) => hosts::be(which),
        _ => bad::serve(&kind),
    }
    std::process::exit(0);
}

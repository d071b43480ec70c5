//! Requests of servers during a call, with both protocols over both transports: processes (this
//! program, started again) and HTTP on loopback.

mod asking_server;
mod attribution;
mod elicitation;
mod logging;
mod roots;
mod sampling;
mod server_stream;
mod support;

/// The environment variable with the protocol version of the server.
const VERSION: &str = "SWITCHBOARD_TEST_ASKER";

/// Serves as a server of these tests if this process was started as one.
pub(crate) fn serve() {
    let Ok(version) = std::env::var(VERSION) else {
        return;
    };
    crate::shared::serve_stdio(asking_server::AskingServer::new(&version));
    std::process::exit(0);
}

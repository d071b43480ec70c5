//! Features besides tools, and calls that become tasks, against servers of both protocols over both
//! transports: processes (this program, started again) and HTTP on loopback.

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

/// The environment variable with the kind of server: a protocol version, or a hand-written server.
const SERVER: &str = "SWITCHBOARD_TEST_LIBRARY";

/// Serves as a server of these tests if this process was started as one.
pub(crate) fn serve() {
    let Ok(kind) = std::env::var(SERVER) else {
        return;
    };
    match kind.as_str() {
        "odd" => odd::serve(),
        "fleeting" => odd::serve_fleeting(),
        "teller" => teller::serve(),
        version => crate::shared::serve_stdio(library::Library::new(version)),
    }
    std::process::exit(0);
}

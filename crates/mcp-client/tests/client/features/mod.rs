//! What servers offer beside tools, and calls that become tasks, against real servers of both eras
//! over both transports: processes (this program, started again) and HTTP on loopback.

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

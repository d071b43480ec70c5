//! What `switchboard serve` bears: `cargo xtask bench load`.
//!
//! `sessions` is many slow streams at once, beside the same streams without the server. `requests` is how many short
//! requests are answered in a second, beside a floor that is written by hand. Model, server and clients are processes of
//! this machine; nothing leaves it.
//!
//! `load sessions SWITCHBOARD [SESSIONS]` and `load requests SWITCHBOARD TURN [ROUNDS]` print a line for each
//! measurement. TURN is the example `turn`, which has the model and the tools of a turn. A request or a stream that does not
//! end as it should fails the whole. `load serve-model` and `load serve-floor` are servers.

#![allow(
    clippy::print_stdout,
    reason = "the measurements are what this program is for"
)]

#[cfg(target_os = "linux")]
mod floor;
#[cfg(target_os = "linux")]
mod model;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod requests;
#[cfg(target_os = "linux")]
mod sessions;

/// As in the program, so that the floor has it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(target_os = "linux")]
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[cfg(target_os = "linux")]
fn main() -> Outcome<()> {
    use tokio::runtime::Builder;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // A thread for each CPU; the server has two at least.
    let many = || Builder::new_multi_thread().enable_all().build();
    match &arguments[..] {
        ["serve-model"] => many()?.block_on(model::serve()),
        ["serve-floor", model, turn @ ..] => many()?.block_on(floor::serve(model, turn.first())),
        ["sessions", program, sessions @ ..] => {
            let sessions = sessions.first().map_or(Ok(500), |count| count.parse())?;
            many()?.block_on(sessions::measure(program, sessions))
        }
        ["requests", program, turn, rounds @ ..] => {
            let rounds = rounds.first().map_or(Ok(5), |count| count.parse())?;
            // One thread, which stays on one CPU, and so does what it starts.
            let one = Builder::new_current_thread().enable_all().build()?;
            one.block_on(requests::measure(program, turn, rounds))
        }
        _ => Err("what to measure is the first argument: `sessions` or `requests`".into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("what a process uses is read from /proc, on Linux only");
}

/// The value below which `percent` of them lie.
#[cfg(target_os = "linux")]
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

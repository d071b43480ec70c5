//! Measures how many requests per second `switchboard serve` answers: `cargo xtask bench load`.
//!
//! `load SWITCHBOARD TURN [ROUNDS]` gets the paths of the program `switchboard` and of the example
//! `turn`. It starts the model server of `turn`, and one `switchboard serve` on a separate CPU for
//! each kind of request. Every round sends the same number of requests to the model directly and to
//! the server. A request without a complete answer fails the benchmark.
//!
//! A round prints the kind, then requests per second, median and 99th percentile of the response
//! time in microseconds: of the model, then of the server. The CPU time of the server per request
//! in microseconds and its peak memory in bytes follow.

#![allow(clippy::print_stdout, reason = "the program prints its measurements")]

#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
#[path = "../turn/cpu.rs"]
mod cpu;
#[cfg(target_os = "linux")]
mod server_process;

#[cfg(target_os = "linux")]
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[cfg(target_os = "linux")]
fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [program, turn, rounds @ ..] = &arguments[..] else {
        return Err("usage: load SWITCHBOARD TURN [ROUNDS]".into());
    };
    let rounds = rounds.first().map_or(Ok(5), |count| count.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(client::measure_load(program, turn, rounds))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the load benchmark reads /proc and runs on Linux only");
}

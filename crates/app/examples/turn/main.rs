//! Compares the cost of a complete turn with a hand-written baseline: `cargo xtask bench turn`.
//!
//! A turn is: the model calls a tool, an MCP server over stdio runs it, the model answers. The
//! baseline has no validation, limits, events or approvals. Both sides use the same model server in
//! another process and one MCP server each. The servers run on another CPU than this process, so
//! that their work does not slow it, as with a remote model.
//!
//! `turn [BATCHES]` prints one line for each batch: its name, then the CPU time per turn of the
//! baseline and of Switchboard in microseconds. CPU time is that of this process only.
//! `turn serve-tools` and `turn serve-model` run the servers.

#![allow(clippy::print_stdout, reason = "the program prints its measurements")]

#[cfg(target_os = "linux")]
mod baseline;
#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
mod mock_servers;
#[cfg(target_os = "linux")]
mod scripted_conversation;

/// The `switchboard` program also uses this allocator. The baseline runs in this process too, so
/// both sides of the comparison use it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(target_os = "linux")]
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[cfg(target_os = "linux")]
fn main() -> Outcome<()> {
    // A single thread is used, so that the measured CPU time includes no wake-ups of other threads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match std::env::args().nth(1).as_deref() {
        Some("serve-tools") => runtime.block_on(mock_servers::serve_tools()),
        Some("serve-model") => runtime.block_on(mock_servers::serve_model()),
        batches => runtime.block_on(bench::measure_turns(batches.map_or(Ok(10), str::parse)?)),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the CPU time of a process is measured on Linux only");
}

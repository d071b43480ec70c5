//! `switchboard`, the program.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let code = switchboard_app::cli::main();
    #[cfg(unix)]
    leave(code);
    #[cfg(not(unix))]
    code.into()
}

/// Ends the program. All is closed and dropped by now; the allocator would only give each page back to the system that takes
/// all of them at once, which a short command takes longer for than for most of what it does.
#[cfg(unix)]
#[allow(
    clippy::disallowed_methods,
    reason = "the last thing that the program does: nothing is left to be dropped, and what is buffered is written"
)]
fn leave(code: switchboard_app::cli::Code) -> ! {
    use std::io::Write as _;
    // Nobody is left to be told that nobody reads it.
    let _ = std::io::stdout().flush();
    signal_hook::low_level::exit(i32::from(code as u8))
}

//! `switchboard`, the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    switchboard_app::cli::main()
}

//! `cargo xtask docs`: the documentation as a reader gets it.

use anyhow::Result;

use crate::process;

/// Builds the documentation of our crates; any warning is an error.
pub(crate) fn run() -> Result<()> {
    let mut command = process::cargo(["doc", "--workspace", "--no-deps"]);
    process::run(command.env("RUSTDOCFLAGS", "-Dwarnings"))
}

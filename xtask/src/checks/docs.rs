//! `cargo xtask docs`: builds the API documentation.

use anyhow::Result;

use crate::process;

/// Builds the documentation of all crates in the workspace. A warning is an error.
pub(crate) fn run() -> Result<()> {
    let mut command = process::cargo(["doc", "--workspace", "--no-deps"]);
    process::run(command.env("RUSTDOCFLAGS", "-Dwarnings"))
}

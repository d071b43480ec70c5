//! `cargo xtask lint`: format, clippy, and the repository's own rules.

use anyhow::Result;

use crate::{process, tidy};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Only the repository's own rules: seconds, no compilation
    #[arg(long)]
    tidy: bool,
}

/// The cheap checks come first, so that they are the first to complain.
pub(crate) fn run(args: &Args) -> Result<()> {
    tidy::run()?;
    if args.tidy {
        return Ok(());
    }
    process::run(&mut process::cargo(["fmt", "--all", "--check"]))?;
    process::run(&mut process::cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))
}

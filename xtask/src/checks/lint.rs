//! `cargo xtask lint`: checks formatting, clippy lints and the repository's own rules.

use anyhow::Result;

use super::tidy;
use crate::process;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Check the repository's own rules only, without compilation
    #[arg(long)]
    tidy: bool,
    /// Print every line with an idiom, even below the limit
    #[arg(long)]
    list: bool,
}

/// Runs all checks. The repository's own rules are checked first, because they need no compilation.
pub(crate) fn run(args: &Args) -> Result<()> {
    tidy::run(args.list)?;
    if args.tidy {
        return Ok(());
    }
    process::run(&mut process::cargo(["fmt", "--all", "--check"]))?;
    let mut clippy = process::cargo(["clippy", "--workspace", "--all-targets"]);
    process::run(clippy.args(["--all-features", "--", "-D", "warnings"]))
}

//! Routine jobs of the repository: `cargo xtask test` and its like.

use std::{env, process::Command};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Routine jobs of the Switchboard repository"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every test of the workspace, and the doc tests; needs no network
    Test,
    /// Check format and clippy
    Lint,
    /// Build the documentation; any warning is an error
    Docs,
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Test => {
            let with_nextest = cargo(&["nextest", "--version"]).output();
            if with_nextest.is_ok_and(|output| output.status.success()) {
                run(cargo(&["nextest", "run", "--workspace", "--all-features"]))?;
            } else {
                run(cargo(&[
                    "test",
                    "--workspace",
                    "--all-features",
                    "--lib",
                    "--bins",
                    "--tests",
                ]))?;
            }
            run(cargo(&["test", "--workspace", "--all-features", "--doc"]))
        }
        Task::Lint => {
            run(cargo(&["fmt", "--all", "--check"]))?;
            let mut command = cargo(&["clippy", "--workspace", "--all-targets", "--all-features"]);
            command.args(["--", "-D", "warnings"]);
            run(command)
        }
        Task::Docs => {
            let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
            command.env("RUSTDOCFLAGS", "-Dwarnings");
            run(command)
        }
    }
}

/// The cargo that started this task.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs to the end with our own standard streams; anything but 0 is an error.
fn run(mut command: Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} could not be started"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

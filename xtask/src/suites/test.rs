//! `cargo xtask test`: runs the tests and then the doc tests of the workspace.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{peers, postgres};
use crate::process;

/// Cargo features that the tests need. All steps use the same features, so that nothing is compiled
/// twice.
pub(crate) const FEATURES: &str = "switchboard-app/postgres,switchboard-app/otlp";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Also run the tests against third-party software, installed with npm into target/peers
    #[arg(long)]
    peers: bool,
    /// Arguments for the test runner, such as a part of a test's name; skips the doc tests
    #[arg(last = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runner = Runner::find_runner();
    if args.arguments.is_empty() {
        run_all_tests(runner)?;
    } else {
        process::run(runner.all_tests().args(&args.arguments))?;
    }
    if args.peers {
        peers::run(runner)?;
    }
    Ok(())
}

/// Runs all tests and then all doc tests.
fn run_all_tests(runner: Runner) -> Result<()> {
    let mut tests = runner.all_tests();
    record_snapshot_references(&mut tests)?;
    process::run(&mut tests)?;
    process::run(Runner::Cargo.all_tests().arg("--doc"))?;
    postgres::print_note();
    Ok(())
}

/// Runs all tests except the doc tests. Continues after a failed test. `insta_update` is the value
/// of the variable `INSTA_UPDATE`, which controls how insta handles snapshots that differ.
pub(crate) fn run_with_insta_update(insta_update: impl AsRef<OsStr>) -> Result<()> {
    let mut tests = Runner::find_runner().all_tests();
    record_snapshot_references(&mut tests)?;
    process::run(
        tests
            .arg("--no-fail-fast")
            .env("INSTA_UPDATE", insta_update),
    )
}

/// Returns the path of the file in which insta lists the snapshots that the last run of all tests
/// used.
pub(crate) fn snapshot_references_path() -> PathBuf {
    process::target_dir().join("snapshots/references.txt")
}

fn record_snapshot_references(tests: &mut Command) -> Result<()> {
    let file = snapshot_references_path();
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // insta appends to the file, so the list of an earlier run is removed.
    fs::write(&file, "")?;
    tests.env("INSTA_SNAPSHOT_REFERENCES_FILE", file);
    Ok(())
}

/// Program that runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// Runs tests in parallel across crates, with time-outs (`.config/nextest.toml`).
    Nextest,
    /// `cargo test`, which every Rust installation has.
    Cargo,
}

impl Runner {
    pub(crate) fn find_runner() -> Self {
        if process::succeeds(&mut process::cargo(["nextest", "--version"])) {
            Self::Nextest
        } else {
            eprintln!("cargo-nextest is not installed: the tests run with `cargo test`");
            Self::Cargo
        }
    }

    /// Returns the command that runs all tests of libraries, programs and `tests/` folders. It has
    /// no option such as `--tests`, because cargo then would not build the examples.
    fn all_tests(self) -> Command {
        match self {
            Self::Nextest => {
                process::cargo(["nextest", "run", "--workspace", "--features", FEATURES])
            }
            Self::Cargo => process::cargo(["test", "--workspace", "--features", FEATURES]),
        }
    }

    /// Returns the command that runs only the ignored tests whose names contain `part`.
    pub(crate) fn ignored_tests(self, part: &str) -> Command {
        let mut command = self.all_tests();
        match self {
            Self::Nextest => command
                .args(["--run-ignored", "ignored-only", "--no-tests", "fail", "-E"])
                .arg(format!("test({part})")),
            Self::Cargo => command.args([part, "--", "--ignored"]),
        };
        command
    }
}

/// Builds the program and the examples that the suites use. The options equal those of the tests,
/// so that nothing is compiled twice.
pub(super) fn build_programs() -> Result<()> {
    let mut build = process::cargo(["build", "--workspace", "--features", FEATURES]);
    build.args(["--bin", "switchboard"]);
    process::run(build.args(["--example", "page", "--example", "conformance"]))
}

/// Returns the path of a built example.
pub(super) fn example_path(name: &str) -> PathBuf {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    process::target_dir().join("debug/examples").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(command: &Command) -> Vec<&str> {
        command.get_args().filter_map(OsStr::to_str).collect()
    }

    #[test]
    fn ignored_tests_are_chosen_by_name() {
        assert_eq!(
            arguments(&Runner::Nextest.ignored_tests("peer_"))[5..],
            [
                "--run-ignored",
                "ignored-only",
                "--no-tests",
                "fail",
                "-E",
                "test(peer_)"
            ]
        );
        assert_eq!(
            arguments(&Runner::Cargo.ignored_tests("peer_")),
            [
                "test",
                "--workspace",
                "--features",
                FEATURES,
                "peer_",
                "--",
                "--ignored"
            ]
        );
    }
}

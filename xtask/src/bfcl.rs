//! `cargo xtask bfcl`: compares the importer's scorer with the scorer of the Berkeley Function
//! Calling Leaderboard.
//!
//! The package with the data and the checker is installed in `target/bfcl`, without the many
//! packages that it needs to call models. Its data are not in this repository. The test is
//! `crates/evals/tests/bfcl`.

use anyhow::Result;

use crate::{peers, process};

/// The package, with its exact version.
const PACKAGE: &str = "bfcl-eval==2026.3.23";

pub(crate) fn run() -> Result<()> {
    let folder = process::target_dir().join("bfcl");
    peers::install_python_packages(&folder, &["--no-deps", PACKAGE])?;
    // All of the workspace, so that the builds of the other steps serve this one.
    let mut test = process::cargo(["test", "--workspace", "--test", "bfcl"]);
    test.args(["--", "--ignored", "--nocapture", "--test-threads", "1"]);
    test.env("SWITCHBOARD_BFCL_PYTHON", peers::interpreter(&folder));
    let checker = process::root().join("xtask/bfcl/verdicts.py");
    process::run(test.env("SWITCHBOARD_BFCL_CHECKER", checker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_exact() {
        assert!(matches!(PACKAGE.split_once("=="), Some((_, version)) if !version.contains('*')));
    }
}

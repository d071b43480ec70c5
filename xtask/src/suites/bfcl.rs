//! `cargo xtask bfcl`: compares the importer's scorer with the scorer of the Berkeley Function
//! Calling Leaderboard.
//!
//! The package with the data and the checker is installed in `target/bfcl`, without the many
//! packages that it needs to call models. Its data are not in this repository. The test is
//! `crates/evals/tests/bfcl`.

use anyhow::Result;

use super::test::FEATURES;
use crate::packages::install_python;
use crate::process;

/// The Python package of the benchmark, with its exact version.
const PACKAGE: &str = "bfcl-eval==2026.3.23";

pub(crate) fn run() -> Result<()> {
    let folder = process::target_dir().join("bfcl");
    let python = install_python(&folder, &["--no-deps", PACKAGE])?;
    // The workspace is built with the options of the other steps, so that nothing is compiled
    // twice.
    let mut test = process::cargo(["test", "--workspace", "--features", FEATURES]);
    test.args(["--test", "bfcl"]);
    test.args(["--", "--ignored", "--nocapture", "--test-threads", "1"]);
    test.env("SWITCHBOARD_BFCL_PYTHON", python);
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

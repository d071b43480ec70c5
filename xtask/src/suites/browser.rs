//! `cargo xtask browser`, `pictures` and `vendor`: tests of the web page in a real browser, its
//! screenshot, and its third-party files.
//!
//! The tests in `crates/server/browser` use the test runner of Node.js. They start the program
//! `switchboard` and control an installed Chromium. Their npm packages are installed in `target/`.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::served::{self, Server};
use super::{clients, test};
use crate::packages::{NpmPackage, Scripts, install_npm, npm_works};
use crate::process;

/// npm packages of the tests, in exact versions.
const PACKAGES: &[NpmPackage<'static>] = &[
    // Controls the installed Chromium. Does not download a browser.
    ("playwright-core", "1.65.1"),
    // Checks the accessibility of the page.
    ("axe-core", "4.14.1"),
];

/// Folder of the tests and scripts, relative to the repository.
const SCRIPTS: &str = "crates/server/browser";
const TESTS: [&str; 6] = [
    "vendor.test.mjs",
    "page.test.mjs",
    "artifacts.test.mjs",
    "frames.test.mjs",
    "report.test.mjs",
    "graph-app.test.mjs",
];

/// Names of Chromium programs, in order of preference. The variable `CHROMIUM` can name another
/// one.
const CHROMIUMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Run only tests whose names match this regular expression
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
}

/// Returns whether the software that the tests need is installed: npm and Chromium.
pub(crate) fn can_run() -> bool {
    npm_works() && find_chromium().is_ok()
}

/// Runs the tests of the page.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut tests = node_command()?;
    tests.env("SWITCHBOARD_REPORT_PAGE", test::example_path("page"));
    let packages = clients::install_javascript()?;
    tests.env("SWITCHBOARD_CLIENT_PACKAGES", packages);
    tests.args(["--test", "--test-concurrency=1", "--test-reporter=spec"]);
    if let Some(pattern) = &args.only {
        tests.arg(format!("--test-name-pattern={pattern}"));
    }
    tests.args(TESTS.map(|test| format!("{SCRIPTS}/{test}")));
    process::run(&mut tests)
}

/// Creates the screenshots of the page in `docs/pictures`.
pub(crate) fn pictures() -> Result<()> {
    let folder = process::root().join("docs/pictures");
    fs::create_dir_all(&folder)?;
    let mut script = node_command()?;
    script.arg(format!("{SCRIPTS}/pictures.mjs")).arg(folder);
    process::run(&mut script)
}

/// Rebuilds the page's third-party files from their npm packages.
pub(crate) fn vendor() -> Result<()> {
    let list = process::root().join("crates/server/web/vendor/packages.json");
    let list =
        fs::read_to_string(&list).with_context(|| format!("failed to read {}", list.display()))?;
    let list: serde_json::Value = serde_json::from_str(&list)?;
    let packages: Vec<NpmPackage<'_>> = list["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| Some((package["name"].as_str()?, package["version"].as_str()?)))
        .collect();
    let folder = process::target_dir().join("vendor");
    install_npm(&folder, &packages, Scripts::Ignore)?;
    let mut script = process::command("node");
    process::run(script.arg(format!("{SCRIPTS}/vendor.mjs")).arg(folder))
}

/// Returns the command `node` with the paths that the scripts need in its environment: the program,
/// the npm packages and the browser.
fn node_command() -> Result<std::process::Command> {
    let chromium = find_chromium()?;
    let folder = process::target_dir().join("browser");
    install_npm(&folder, PACKAGES, Scripts::Ignore)?;
    let program = Server::program()?;
    let mut node = process::command("node");
    node.env(served::PROGRAM, program)
        .env("SWITCHBOARD_BROWSER_PACKAGES", folder)
        .env("SWITCHBOARD_CHROMIUM", chromium);
    Ok(node)
}

fn find_chromium() -> Result<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM") {
        return Ok(PathBuf::from(named));
    }
    let folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    CHROMIUMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
        .context(
            "the page is tested in a real Chromium, but none was found on PATH: install one (on \
             Debian the package `chromium`), or set the variable CHROMIUM to its path",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_run() {
        let mut found: Vec<String> = fs::read_dir(process::root().join(SCRIPTS))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".test.mjs"))
            .collect();
        found.sort();
        let mut run = TESTS.map(str::to_owned);
        run.sort();
        assert_eq!(found, run);
    }
}

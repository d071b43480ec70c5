//! Third-party software that our tests talk to: installed here, used by ignored tests.
//!
//! Such a test is marked `#[ignore = "needs peers: cargo xtask test --peers"]`, has `peer_` in its
//! name, and finds the software in the folder named by `SWITCHBOARD_PEERS`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::test::Runner;
use crate::{files, process};

/// npm packages with their exact versions.
const NPM_PACKAGES: &[(&str, &str)] = &[
    // The reference MCP server that shows every feature of the protocol.
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
];

/// How such a test is marked; the rest of the reason is for the reader.
const MARK: &str = "#[ignore = \"needs peers";

/// Part of the name of every such test.
const NAME_PART: &str = "peer_";

/// Installs what is missing, and runs the tests that need it.
pub(crate) fn run(runner: Runner) -> Result<()> {
    // Without this, "no test ran" could mean both "none was written" and "none was found".
    if !a_test_needs_peers()? {
        println!("No test needs peers (`{MARK} …\"]`): nothing to install or run.");
        return Ok(());
    }
    let folder = folder();
    fs::create_dir_all(&folder)?;
    install_npm_packages(&folder)?;
    process::run(runner.ignored(NAME_PART).env("SWITCHBOARD_PEERS", folder))
}

/// Whether npm can be called.
pub(crate) fn npm_works() -> bool {
    process::works(process::command(npm()).arg("--version"))
}

fn folder() -> PathBuf {
    process::target_dir().join("peers")
}

/// Windows has a script there, which is only started by its full name.
fn npm() -> &'static str {
    if cfg!(windows) { "npm.cmd" } else { "npm" }
}

fn a_test_needs_peers() -> Result<bool> {
    for file in files::ours()? {
        let rust_of_a_crate = file.starts_with("crates/") && files::is_rust(&file);
        if rust_of_a_crate && files::text(&file)?.is_some_and(|text| text.contains(MARK)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn install_npm_packages(folder: &Path) -> Result<()> {
    let missing: Vec<String> = NPM_PACKAGES
        .iter()
        .filter(|(name, version)| installed_version(folder, name).as_deref() != Some(version))
        .map(|(name, version)| format!("{name}@{version}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !npm_works() {
        bail!(
            "the peers of our tests come from npm, and `npm` cannot be started: install Node.js \
             20 or newer (it brings npm) and try again. Missing: {}",
            missing.join(", ")
        );
    }
    let mut install = process::command(npm());
    install.args(["install", "--no-fund", "--no-audit", "--prefix"]);
    process::run(install.arg(folder).args(missing))
}

fn installed_version(folder: &Path, name: &str) -> Option<String> {
    let manifest = folder.join("node_modules").join(name).join("package.json");
    let manifest = fs::read_to_string(manifest).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_version_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(installed_version(folder.path(), "@a/b"), None);
        let package = folder.path().join("node_modules/@a/b");
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("package.json"), r#"{"version":"1.2.3"}"#).unwrap();
        assert_eq!(
            installed_version(folder.path(), "@a/b").as_deref(),
            Some("1.2.3")
        );
    }
}

//! `cargo xtask conformance`: runs the protocol's conformance suite against the MCP client.
//!
//! The suite starts a server for each scenario and connects the client to it. The client is the
//! example `conformance` of `switchboard-mcp-client`. Each version of the protocol has its own
//! version of the suite. The files `expected-failures-….yaml` beside the example list the expected
//! failures, each with its reason.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use super::test;
use crate::packages::{NpmPackage, Scripts, install_npm};
use crate::process;

/// npm package with the program Node.js 22, which the suite needs. The installed Node.js may have
/// another version.
const NODE: NpmPackage<'static> = ("node", "22.23.3");
const PACKAGE: &str = "@modelcontextprotocol/conformance";

/// Tested versions of the protocol, each with the version of the suite that tests it.
const SUITES: [(&str, &str); 2] = [("2025-11-25", "0.1.16"), ("2026-07-28", "0.2.0-alpha.12")];

pub(crate) fn run() -> Result<()> {
    let folder = process::target_dir().join("conformance");
    let node = install_package(&folder.join("node"), NODE)?.join("bin/node");
    let client = build_client()?;
    let mut table = "| protocol | suite | result |\n|---|---|---|\n".to_owned();
    let mut failures = Vec::new();
    for (specification, version) in SUITES {
        let expected = expected_failures(specification)?;
        let package = install_package(&folder.join(version), (PACKAGE, version))?;
        let results = folder.join("results").join(specification);
        if results.exists() {
            fs::remove_dir_all(&results)?;
        }
        fs::create_dir_all(&results)?;
        // The standard error of the suite is long, so it goes to a file and not to the terminal.
        let log = results.join("log.txt");
        let output = process::command(&node)
            .arg(package.join("dist/index.js"))
            .args(["client", "--suite", "all", "--spec-version", specification])
            .arg("--expected-failures")
            .arg(expected)
            .arg("--output-dir")
            .arg(&results)
            .arg("--command")
            .arg(&client)
            .stdin(Stdio::null())
            .stderr(File::create(&log)?)
            .output()
            .context("failed to start the conformance suite")?;
        let text = String::from_utf8_lossy(&output.stdout);
        println!("\n=== {specification} ({PACKAGE} {version}) ===");
        print!("{text}");
        let mut lines = text.lines().rev();
        let total = lines.find_map(|line| line.strip_prefix("Total: "));
        let total =
            total.with_context(|| format!("the suite printed no total: see {}", log.display()))?;
        let _ = writeln!(table, "| {specification} | {version} | {total} |");
        if !output.status.success() {
            failures.push(specification);
        }
    }
    println!("\n{table}");
    if !failures.is_empty() {
        bail!(
            "unexpected results: {}; the output of each client is in {}",
            failures.join(", "),
            folder.join("results").display()
        );
    }
    Ok(())
}

/// Builds the client and returns its path.
fn build_client() -> Result<PathBuf> {
    test::build_programs()?;
    let client = test::example_path("conformance");
    // The suite splits the command at its spaces.
    if client.to_string_lossy().contains(' ') {
        bail!(
            "the path of the client must not contain a space: {}",
            client.display()
        );
    }
    Ok(client)
}

/// Returns the path of the list of expected failures. Fails if an item of the list has no reason.
fn expected_failures(specification: &str) -> Result<PathBuf> {
    let file = process::root()
        .join("crates/mcp-client/examples/conformance")
        .join(format!("expected-failures-{specification}.yaml"));
    let text =
        fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    match find_item_without_reason(&text) {
        Some(entry) => bail!(
            "{}: add a comment above `{entry}` that states why it fails",
            file.display()
        ),
        None => Ok(file),
    }
}

/// Returns the first item of a YAML list that has no comment on the line above it.
fn find_item_without_reason(yaml: &str) -> Option<&str> {
    let mut above = "";
    for line in yaml.lines().map(str::trim) {
        if line.starts_with("- ") && !above.starts_with('#') {
            return Some(line);
        }
        above = line;
    }
    None
}

/// Installs an npm package, and returns its folder.
fn install_package(prefix: &Path, package: NpmPackage<'_>) -> Result<PathBuf> {
    install_npm(prefix, &[package], Scripts::Run)?;
    Ok(prefix.join("node_modules").join(package.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expected_failure_is_explained() {
        let explained =
            "# All of them.\nclient:\n  # It is not done because …\n  - a\n  # Nor this.\n  - b\n";
        assert_eq!(find_item_without_reason(explained), None);
        assert_eq!(find_item_without_reason("client: []\n"), None);
        let not = "client:\n  # It is not done because …\n  - a\n  - b:check\n";
        assert_eq!(find_item_without_reason(not), Some("- b:check"));
    }
}

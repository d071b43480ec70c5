//! Installs third-party MCP servers and model servers, and runs the tests that need them.
//!
//! Such a test has the attribute `#[ignore = "needs peers: cargo xtask test --peers"]` and `peer_`
//! in its name. The variable `SWITCHBOARD_PEERS` contains the folder of the software: npm packages
//! are in `node_modules`, and Python packages in the virtual environments `python` and
//! `older-python`.

use anyhow::Result;

use super::test::Runner;
use crate::packages::{NpmPackage, Scripts, install_npm, install_python};
use crate::{files, process};

/// npm packages with their exact versions.
const NPM_PACKAGES: &[NpmPackage<'static>] = &[
    // The reference MCP server with all features of the protocol.
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    // The reference MCP server for files.
    ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    // A mock model server for all API formats, with scripted answers and errors.
    ("@copilotkit/aimock", "1.43.0"),
];

/// Python packages with their exact versions, in the format of pip.
const PYTHON_PACKAGES: &[&str] = &[
    // A mock model server that returns faulty answers on request.
    "llmock==0.2.2",
    // Another mock model server, which is independent of the other two.
    "llm-mock-api==0.1.2",
    // A proxy that converts requests from one API format to another.
    "litellm[proxy]==1.106.2",
    // MCP servers with the Python SDK for the protocol version 2026-07-28, which litellm needs too.
    "mcp-server-git==2026.10.19",
    "mcp-server-time==2026.10.19",
    // A framework for MCP servers in Python.
    "fastmcp==4.1.2",
];

/// Python packages that conflict with [`PYTHON_PACKAGES`]: the MCP SDK for protocol versions before
/// 2026-07-28.
const OLDER_PYTHON_PACKAGES: &[&str] = &["mcp==1.30.0"];

/// Start of the attribute of a test that needs third-party software.
const MARK: &str = "#[ignore = \"needs peers";

/// Part of the name of every test that needs third-party software.
const NAME_PART: &str = "peer_";

/// Installs missing packages and runs the tests that need them.
pub(crate) fn run(runner: Runner) -> Result<()> {
    // Without such a test, the test runner would report an error, because it found no test to run.
    if !a_test_needs_peers()? {
        println!("No test needs peers (`{MARK} …\"]`): nothing to install or run.");
        return Ok(());
    }
    let folder = process::target_dir().join("peers");
    install_npm(&folder, NPM_PACKAGES, Scripts::Run)?;
    install_python(&folder.join("python"), PYTHON_PACKAGES)?;
    install_python(&folder.join("older-python"), OLDER_PYTHON_PACKAGES)?;
    process::run(
        runner
            .ignored_tests(NAME_PART)
            .env("SWITCHBOARD_PEERS", folder),
    )
}

fn a_test_needs_peers() -> Result<bool> {
    for file in files::list_repository_files()? {
        let rust_of_a_crate = file.starts_with("crates/") && files::is_rust(&file);
        if rust_of_a_crate && files::read_text(&file)?.is_some_and(|text| text.contains(MARK)) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_exact() {
        for package in PYTHON_PACKAGES.iter().chain(OLDER_PYTHON_PACKAGES) {
            let (name, version) = package.split_once("==").unwrap();
            assert!(!name.is_empty() && !version.contains('*'), "{package}");
        }
        for (name, version) in NPM_PACKAGES {
            let exact = version.split('.').all(|part| part.parse::<u32>().is_ok());
            assert!(exact, "{name}@{version}");
        }
    }
}

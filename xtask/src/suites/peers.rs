//! Installs third-party software for the ignored tests that talk to it.
//!
//! Such a test is marked `#[ignore = "needs peers: cargo xtask test --peers"]` and has `peer_` in
//! its name. It finds the software in the folder named by `SWITCHBOARD_PEERS`: npm packages in
//! `node_modules`, pip packages in the virtual environments `python` and `older-python`.

use anyhow::Result;

use super::test::Runner;
use crate::packages::{NpmPackage, Scripts, install_npm, install_python};
use crate::{files, process};

/// npm packages with their exact versions.
const NPM_PACKAGES: &[NpmPackage<'static>] = &[
    // The reference MCP server that shows every feature of the protocol.
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    // The reference server that most people start with.
    ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    // A mock of every wire that we speak, with fixtures and faults.
    ("@copilotkit/aimock", "1.43.0"),
];

/// Python packages with their exact versions, as pip takes them.
const PYTHON_PACKAGES: &[&str] = &[
    // A mock that breaks answers on demand, and judges how the client took it.
    "llmock==0.2.2",
    // A mock by another author, with his own reading of the wires.
    "llm-mock-api==0.1.2",
    // The proxy that many people have before their models; it translates one wire into another.
    "litellm[proxy]==1.106.2",
    // MCP servers on the newest Python SDK, which speaks 2026-07-28, the version of litellm.
    "mcp-server-git==2026.10.19",
    "mcp-server-time==2026.10.19",
    // The framework that most MCP servers in Python are written with.
    "fastmcp==4.1.2",
];

/// Packages that conflict with the list above: the MCP SDK before 2026-07-28, which most Python
/// servers still use.
const OLDER_PYTHON_PACKAGES: &[&str] = &["mcp==1.30.0"];

/// How such a test is marked; the rest of the reason is for the reader.
const MARK: &str = "#[ignore = \"needs peers";

/// Part of the name of every such test.
const NAME_PART: &str = "peer_";

/// Installs missing packages and runs the tests that need them.
pub(crate) fn run(runner: Runner) -> Result<()> {
    // Without this, "no test ran" could mean both "none was written" and "none was found".
    if !a_test_needs_peers()? {
        println!("No test needs peers (`{MARK} …\"]`): nothing to install or run.");
        return Ok(());
    }
    let folder = process::target_dir().join("peers");
    install_npm(&folder, NPM_PACKAGES, Scripts::Run)?;
    install_python(&folder.join("python"), PYTHON_PACKAGES)?;
    install_python(&folder.join("older-python"), OLDER_PYTHON_PACKAGES)?;
    process::run(runner.ignored(NAME_PART).env("SWITCHBOARD_PEERS", folder))
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

//! Installs third-party software for the ignored tests that talk to it.
//!
//! Such a test is marked `#[ignore = "needs peers: cargo xtask test --peers"]` and has `peer_` in
//! its name. It finds the software in the folder named by `SWITCHBOARD_PEERS`: npm packages in
//! `node_modules`, pip packages in the virtual environments `python` and `older-python`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::test::Runner;
use crate::{files, process};

/// npm packages with their exact versions.
const NPM_PACKAGES: &[(&str, &str)] = &[
    // The reference MCP server that shows every feature of the protocol.
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    // The reference servers that most people start with.
    ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    ("@modelcontextprotocol/server-memory", "2026.8.31"),
    (
        "@modelcontextprotocol/server-sequential-thinking",
        "2026.8.31",
    ),
    // An MCP App: its tool has a page to be shown.
    ("@modelcontextprotocol/server-basic-vanillajs", "2.0.3"),
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
const OLDER_PYTHON_PACKAGES: &[&str] = &[
    "mcp==1.30.0",
    // Cannot be started with a newer SDK.
    "mcp-server-sqlite==2025.4.25",
];

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
    let folder = folder();
    fs::create_dir_all(&folder)?;
    install_npm_packages(&folder)?;
    install_python_packages(&folder.join("python"), PYTHON_PACKAGES)?;
    install_python_packages(&folder.join("older-python"), OLDER_PYTHON_PACKAGES)?;
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
pub(crate) fn npm() -> &'static str {
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

pub(crate) fn installed_version(folder: &Path, name: &str) -> Option<String> {
    let manifest = folder.join("node_modules").join(name).join("package.json");
    let manifest = fs::read_to_string(manifest).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

/// Rebuilds a virtual environment unless it holds exactly these packages.
pub(crate) fn install_python_packages(folder: &Path, packages: &[&str]) -> Result<()> {
    // Programs of an environment only run at the place where they were installed.
    let place = folder.display();
    let wanted = format!("{place}\n{}", packages.join("\n"));
    // Written last: an installation that was interrupted does not count.
    let mark = folder.join("installed.txt");
    let installed = fs::read_to_string(&mark).is_ok_and(|text| text == wanted);
    let python = interpreter(folder);
    // The environment refers to the system's Python, which may have been replaced meanwhile.
    if installed && process::works(process::command(&python).arg("--version")) {
        return Ok(());
    }
    let mut create = process::command(system_python()?);
    create.args(["-m", "venv", "--clear"]).arg(folder);
    process::run(&mut create).context(
        "the virtual environment could not be made; on Debian and Ubuntu the module `venv` is in \
         the package python3-venv",
    )?;
    let mut install = process::command(&python);
    install.args(["-m", "pip", "install"]);
    install.args(["--quiet", "--disable-pip-version-check"]);
    process::run(install.args(packages))?;
    fs::write(mark, wanted)?;
    Ok(())
}

pub(crate) fn interpreter(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    })
}

fn system_python() -> Result<&'static str> {
    const NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 10))";
    ["python3", "python"]
        .into_iter()
        .find(|name| process::works(process::command(name).args(["-c", NEW_ENOUGH])))
        .with_context(|| {
            format!(
                "some peers of our tests come from PyPI, and neither `python3` nor `python` is a \
                 Python 3.10 or newer: install one and try again. Missing: {}",
                [PYTHON_PACKAGES, OLDER_PYTHON_PACKAGES].concat().join(", ")
            )
        })
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

//! `cargo xtask clients`: tests official client packages against a real server.
//!
//! `openai` and `anthropic` from `PyPI`, the AI SDK and AG-UI's client from npm send questions to
//! `switchboard serve` with the demo model and the bundled customer-service server. A scripted
//! model gives the answers that the demo model cannot give. The tests are in
//! `crates/server/clients`, with the exact versions of their packages, which are installed below
//! `target/`.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use anyhow::Result;

use super::served::{self, Server};
use crate::packages;
use crate::process;

/// Folder of the tests, relative to the repository.
const TESTS: &str = "crates/server/clients";

/// Installs missing packages, starts the servers and runs the tests.
pub(crate) fn run() -> Result<()> {
    let folder = process::target_dir().join("clients");
    let requirements = process::root().join(TESTS).join("python/requirements.txt");
    let python = packages::install_requirements(&folder.join("python"), &requirements)?;
    let javascript = install_javascript()?;
    let program = Server::program()?;
    // Reserves a port for the scripted model until the servers have chosen their ports. The tests
    // start the scripted model at the reserved port.
    let reserved = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = reserved.local_addr()?.port();
    let free = Server::start(&program, &folder.join("free"), "all", None)?;
    let asking = Server::start(&program, &folder.join("asking"), "ask", None)?;
    let scripted = Server::start(&program, &folder.join("scripted"), "all", Some(port))?;
    drop(reserved);
    let with_servers = |command: &mut std::process::Command| {
        command
            .env("SWITCHBOARD_URL", &free.address)
            .env("SWITCHBOARD_ASKING_URL", &asking.address)
            .env("SWITCHBOARD_SCRIPTED_URL", &scripted.address)
            .env("SWITCHBOARD_SCRIPTED_PORT", port.to_string())
            .env("SWITCHBOARD_TOKEN", served::TOKEN);
    };
    let mut tests = process::command(python);
    // `-B` prevents that Python writes compiled files into the folder of the sources.
    tests.args(["-B", "-m", "unittest", "discover", "-v", "-s"]);
    tests.arg(format!("{TESTS}/python"));
    with_servers(&mut tests);
    process::run(&mut tests)?;
    let mut tests = process::command("node");
    tests.arg("--test").current_dir(javascript);
    with_servers(&mut tests);
    process::run(&mut tests)
}

/// Installs the packages and copies the tests beside them, so that Node.js resolves their imports.
/// Returns the folder.
pub(crate) fn install_javascript() -> Result<PathBuf> {
    let source = process::root().join(TESTS).join("javascript");
    let folder = process::target_dir().join("clients/javascript");
    fs::create_dir_all(&folder)?;
    let lock = fs::read_to_string(source.join("package-lock.json"))?;
    // This file is written last. If it is missing, the installation was interrupted and is
    // repeated.
    let mark = folder.join("installed.json");
    let is_installed = fs::read_to_string(&mark).is_ok_and(|text| text == lock);
    for entry in fs::read_dir(&source)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    if !is_installed {
        packages::install_npm_lock(&folder)?;
        fs::write(mark, lock)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_exact() {
        let folder = process::root().join(TESTS);
        let python = fs::read_to_string(folder.join("python/requirements.txt")).unwrap();
        let packages = packages::requirements(&python);
        for wanted in ["openai", "anthropic"] {
            assert!(
                packages
                    .iter()
                    .any(|it| it.starts_with(&format!("{wanted}==")))
            );
        }
        assert!(
            packages
                .iter()
                .all(|it| it.contains("==") && !it.contains('*'))
        );
        let manifest = fs::read_to_string(folder.join("javascript/package.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        for (name, version) in manifest["dependencies"].as_object().unwrap() {
            let version = version.as_str().unwrap();
            let exact = version.split('.').all(|part| part.parse::<u32>().is_ok());
            assert!(exact, "{name}@{version}");
        }
    }

    #[test]
    fn the_lock_file_contains_no_registry_urls() {
        let folder = process::root().join(TESTS);
        let lock = fs::read_to_string(folder.join("javascript/package-lock.json")).unwrap();
        assert!(
            !lock.contains("\"resolved\""),
            "make it with --omit-lockfile-registry-resolved"
        );
    }
}

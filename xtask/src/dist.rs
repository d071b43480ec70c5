//! `cargo xtask dist`: builds the program for publication, with profile-guided optimization.
//!
//! The benchmarks run in a build with counters, which record how often each piece of code runs. The
//! compiler optimizes the next build for these records: a turn takes a third less CPU time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result};

use crate::{bench, process};

/// Arguments of cargo that build the program, and the benchmarks of the app.
pub(crate) const PROGRAMS: [&str; 2] = [
    "--package switchboard-app --bin switchboard",
    "--package switchboard-app --example turn --example load",
];

/// Builds programs of this machine for publication.
pub(crate) struct OptimizedBuild {
    /// Target triple of this machine. If a target is given, cargo applies `RUSTFLAGS` only to the
    /// programs, and not to build scripts.
    target: String,
    /// File with the records of the benchmarks.
    records: PathBuf,
}

pub(crate) fn run() -> Result<()> {
    let build = OptimizedBuild::prepare()?;
    build.build_programs(PROGRAMS[0])?;
    println!("built {}", build.program("switchboard").display());
    Ok(())
}

impl OptimizedBuild {
    /// Runs the benchmarks in a build with counters, and stores their records.
    pub(crate) fn prepare() -> Result<Self> {
        let folder = process::target_dir().join("profile-guided");
        let counters = folder.join("counters");
        let build = Self {
            target: rustc_setting("host-tuple")?,
            records: folder.join("records.profdata"),
        };
        let merge_tool = find_merge_tool(&build.target)?;
        if counters.exists() {
            fs::remove_dir_all(&counters).context("failed to remove the old counters")?;
        }
        let with_counters = |command: &str, arguments: &str| {
            let flags = format!("-Cprofile-generate={}", counters.display());
            let mut cargo = build.cargo(command, arguments, &flags);
            cargo.env("CARGO_TARGET_DIR", &folder);
            cargo
        };
        // The symbols that the records name depend on the profile and on the features of packages.
        // Both builds must have the same ones, so the program and the examples are built apart.
        for programs in PROGRAMS {
            process::run(&mut with_counters("build", programs))?;
        }
        let programs = folder.join(&build.target).join("dist");
        let turn = programs.join("examples/turn");
        process::stdout_of(process::command(&turn).arg("3"))?;
        let mut load = process::command(programs.join("examples/load"));
        process::stdout_of(load.args([&programs.join("switchboard"), &turn]).arg("1"))?;
        process::stdout_of(with_counters("bench", bench::DECODE).arg("3"))?;

        let mut merge = process::command(merge_tool);
        merge.args(["merge", "-o"]);
        process::run(merge.args([&build.records, &counters]))?;
        Ok(build)
    }

    /// Builds programs, optimized for the records. `programs` is one of [`PROGRAMS`].
    pub(crate) fn build_programs(&self, programs: &str) -> Result<()> {
        process::run(&mut self.optimized_cargo("build", programs))
    }

    /// Returns a cargo command whose build is optimized for the records.
    pub(crate) fn optimized_cargo(&self, command: &str, arguments: &str) -> Command {
        let flags = format!("-Cprofile-use={}", self.records.display());
        self.cargo(command, arguments, &flags)
    }

    /// Returns the path of a program that [`OptimizedBuild::build_programs`] built.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let folder = process::target_dir().join(&self.target);
        folder.join("dist").join(name)
    }

    fn cargo(&self, command: &str, arguments: &str, flags: &str) -> Command {
        let mut cargo = process::cargo([command, "--profile", "dist", "--target", &self.target]);
        cargo.args(arguments.split(' ')).env("RUSTFLAGS", flags);
        cargo
    }
}

fn rustc_setting(name: &str) -> Result<String> {
    let mut rustc = process::command(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let setting = process::stdout_of(rustc.args(["--print", name]))?;
    Ok(setting.trim().to_owned())
}

/// Finds the program that merges counters: of this Rust toolchain, or of the system. Its version
/// must not be much older than the LLVM of the compiler.
fn find_merge_tool(target: &str) -> Result<OsString> {
    let tool = format!("lib/rustlib/{target}/bin/llvm-profdata");
    let of_toolchain = PathBuf::from(rustc_setting("sysroot")?).join(tool);
    let of_system = (19..30).rev();
    let of_system = of_system.map(|version| format!("llvm-profdata-{version}").into());
    let installed = || {
        let mut tools = std::iter::once(of_toolchain.into()).chain(of_system);
        tools.find(|tool| process::works(process::command(tool).arg("--version")))
    };
    env::var_os("LLVM_PROFDATA").or_else(installed).context(
        "`llvm-profdata` is missing: run `rustup component add llvm-tools`, install LLVM 19 or \
         later, or set `LLVM_PROFDATA` to the path of the program",
    )
}

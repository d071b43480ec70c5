//! `cargo xtask dist`: builds the program for publication, with profile-guided optimization.
//!
//! The first build contains counters. The benchmarks run in this build, and the counters record how
//! often each piece of code is executed. The compiler optimizes the second build with these
//! records. The benchmark `turn` then uses a third less CPU time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result};

use crate::{bench, process};

/// Arguments of two cargo commands: the first builds the program, and the second builds the
/// benchmarks of the crate `app`.
pub(crate) const PROGRAMS: [&str; 2] = [
    "--package switchboard-app --bin switchboard",
    "--package switchboard-app --example turn --example load",
];

/// Builder of optimized programs for this machine.
pub(crate) struct OptimizedBuild {
    /// Target triple of this machine. It is passed to cargo explicitly, because cargo then applies
    /// `RUSTFLAGS` only to the programs and not to build scripts.
    target: String,
    /// File with the counters that the benchmarks recorded.
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
        // The records apply only to a build with the same profile and the same features. The
        // program and the examples have different features, so each build compiles them separately.
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

    /// Builds optimized programs. `programs` is an item of [`PROGRAMS`].
    pub(crate) fn build_programs(&self, programs: &str) -> Result<()> {
        process::run(&mut self.optimized_cargo("build", programs))
    }

    /// Returns a cargo command that compiles optimized code.
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
        tools.find(|tool| process::succeeds(process::command(tool).arg("--version")))
    };
    env::var_os("LLVM_PROFDATA").or_else(installed).context(
        "`llvm-profdata` is missing: run `rustup component add llvm-tools`, install LLVM 19 or \
         later, or set `LLVM_PROFDATA` to the path of the program",
    )
}

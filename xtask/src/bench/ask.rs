//! An offline question with one tool beside the same call by bare rmcp (`crates/app/examples/bare_call.rs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::{interleaved, ratios, series, table};
use crate::process;

/// What of the time that bare rmcp needs a question may take.
const MOST: f64 = 1.5;
/// Where the system puts the pages of a file is chance, and stays so for as long as the file does: of two copies of one
/// program, one may take a tenth longer. So many are measured, each as often as is asked for.
const COPIES: u32 = 4;
/// The question of the README, and what its answer says.
const QUESTION: &str = "What is the account value of customer 42?";
const ANSWER: &str = "530.19";

pub(super) fn ask(runs: u32) -> Result<()> {
    let app = ["--package", "switchboard-app"];
    let build =
        |what: &[&str]| process::run(process::cargo(["build", "--release"]).args(app).args(what));
    build(&["--bin", "switchboard"])?;
    build(&["--example", "bare_call"])?;
    let release = process::target_dir().join("release");
    let suffix = std::env::consts::EXE_SUFFIX;
    let programs = [
        release.join(format!("switchboard{suffix}")),
        release.join(format!("examples/bare_call{suffix}")),
    ];
    let bench = process::target_dir().join("bench");
    let nobody = bench.join("nobody");
    fs::create_dir_all(&nobody)?;

    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..COPIES {
        let [switchboard, bare_call] = installed(&programs, &bench)?;
        let mut asked = alone(&switchboard, &nobody);
        asked.args(["ask", "--model", "offline/planner", QUESTION]);
        let mut called = alone(&bare_call, &nobody);
        called.args(["calculate_account_value", r#"{"customer_id":42}"#]);
        called
            .arg(&switchboard)
            .args(["mcp-server", "customer-service"]);
        for command in [&mut asked, &mut called] {
            let said = process::stdout_of(command)?;
            if !said.contains(ANSWER) {
                bail!("`{said}` does not say {ANSWER}");
            }
            command.stderr(Stdio::null());
        }
        let (asked, called) = interleaved(&mut asked, &mut called, runs)?;
        ours.extend(asked);
        bare.extend(called);
    }
    print!("{}", table("switchboard ask", &ours, "bare rmcp", &bare)?);
    let ratio = series(ratios(&ours, &bare))?.median();
    if ratio > MOST {
        bail!(
            "a question takes {ratio:.2} times what bare rmcp takes for its call, and {MOST} is allowed"
        );
    }
    Ok(())
}

/// New copies of the programs, as an installer makes them.
fn installed(programs: &[PathBuf; 2], folder: &Path) -> Result<[PathBuf; 2]> {
    let copy = |from: &Path| -> Result<PathBuf> {
        let name = from.file_name().context("a program without a name")?;
        let to = folder.join(name);
        // Not over the old one, which keeps its place.
        if to.exists() {
            fs::remove_file(&to)?;
        }
        fs::copy(from, &to)?;
        Ok(to)
    };
    let [ours, bare] = programs;
    Ok([copy(ours)?, copy(bare)?])
}

/// A program for a person who has configured nothing and has no key.
pub(super) fn alone(program: &Path, home: &Path) -> Command {
    let mut command = process::command(program);
    command.env_clear().current_dir(home);
    // Programs are found, and on Windows nothing starts without the last two.
    for kept in ["PATH", "SystemRoot", "TEMP"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    for home_of in ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        command.env(home_of, home);
    }
    command
}

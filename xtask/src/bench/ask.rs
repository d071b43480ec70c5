//! An offline question with one tool beside the same call by bare rmcp (`crates/app/examples/bare_call.rs`).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::{interleaved, ratios, series, table};
use crate::process;

/// What of the time that bare rmcp needs a question may take.
const MOST: f64 = 1.5;
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
    let switchboard = release.join(format!("switchboard{suffix}"));
    let nobody = process::target_dir().join("bench/nobody");
    fs::create_dir_all(&nobody)?;

    let mut ours = alone(&switchboard, &nobody);
    ours.args(["ask", "--model", "offline/planner", QUESTION]);
    let mut bare = alone(
        &release.join(format!("examples/bare_call{suffix}")),
        &nobody,
    );
    bare.args(["calculate_account_value", r#"{"customer_id":42}"#]);
    bare.arg(&switchboard)
        .args(["mcp-server", "customer-service"]);
    for command in [&mut ours, &mut bare] {
        let said = process::stdout_of(command)?;
        if !said.contains(ANSWER) {
            bail!("`{said}` does not say {ANSWER}");
        }
        command.stderr(Stdio::null());
    }
    let (ours, bare) = interleaved(&mut ours, &mut bare, runs)?;
    print!("{}", table("switchboard ask", &ours, "bare rmcp", &bare)?);
    let ratio = series(ratios(&ours, &bare))?.median();
    if ratio > MOST {
        bail!(
            "a question takes {ratio:.2} times what bare rmcp takes for its call, and {MOST} is allowed"
        );
    }
    Ok(())
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

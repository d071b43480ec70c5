//! `cargo xtask ci`: everything that continuous integration does, on any machine.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::test::{self, Runner};
use crate::{
    bfcl, browser, clients, conformance, docs, layers, lint, oracle, peers, postgres, process,
    schemathesis, snapshots,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fail when npm is missing, instead of leaving out the tests against peers
    #[arg(long)]
    require_peers: bool,
    /// Only these steps, in their usual order
    #[arg(long, value_enum, value_name = "STEP")]
    only: Vec<Step>,
    /// All but these steps
    #[arg(long, value_enum, value_name = "STEP", conflicts_with = "only")]
    skip: Vec<Step>,
}

/// The steps in execution order. Steps that fail fast run first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    Layers,
    Lint,
    Test,
    Postgres,
    Peers,
    Conformance,
    Clients,
    Schemathesis,
    Browser,
    Snapshots,
    Oracle,
    Bfcl,
    Docs,
    Release,
    Readme,
}

/// The first command of README.md, which must do something useful without any key.
const README_ARGUMENTS: [&str; 5] = [
    "run",
    "--release",
    "--",
    "ask",
    "What is the account value of customer 42?",
];

pub(crate) fn run(args: &Args) -> Result<()> {
    let chosen = |step: &&Step| {
        !args.skip.contains(step) && (args.only.is_empty() || args.only.contains(step))
    };
    let mut times = Vec::new();
    for step in Step::value_variants().iter().filter(chosen) {
        println!("\n=== {step:?} ===");
        let start = Instant::now();
        let result = perform(*step, args.require_peers);
        let took = start.elapsed();
        println!(
            "=== {step:?}: {} after {} ===",
            if result.is_ok() { "done" } else { "FAILED" },
            seconds(took)
        );
        times.push((*step, took));
        result.with_context(|| format!("step {step:?} failed"))?;
    }
    println!("\n| step | time |\n|---|---:|");
    for (step, took) in &times {
        println!("| {step:?} | {} |", seconds(*took));
    }
    println!(
        "| all | {} |",
        seconds(times.iter().map(|(_, took)| *took).sum())
    );
    Ok(())
}

fn perform(step: Step, require_peers: bool) -> Result<()> {
    match step {
        Step::Layers => layers::run(None),
        Step::Lint => lint::run(&lint::Args::default()),
        Step::Test => test::run(&test::Args::default()),
        // Never skipped silently: use `--skip postgres`.
        Step::Postgres => postgres::run(),
        Step::Peers => run_peers(require_peers),
        Step::Conformance => run_conformance(require_peers),
        Step::Clients => run_clients(require_peers),
        Step::Schemathesis => schemathesis::run(),
        Step::Browser => run_browser(require_peers),
        Step::Snapshots => snapshots::check_files(),
        Step::Oracle => oracle::run(),
        Step::Bfcl => bfcl::run(),
        Step::Docs => docs::run(),
        Step::Release => process::run(&mut process::cargo(["build", "--release"])),
        Step::Readme => readme(),
    }
}

fn run_peers(required: bool) -> Result<()> {
    if required || peers::npm_works() {
        return peers::run(Runner::found());
    }
    println!("SKIPPED: npm cannot be started, so NO test against third-party software ran.");
    Ok(())
}

fn run_conformance(required: bool) -> Result<()> {
    if required || peers::npm_works() {
        return conformance::run(&conformance::Args::default());
    }
    println!("SKIPPED: npm cannot be started, so the MCP conformance suite did NOT run.");
    Ok(())
}

fn run_clients(required: bool) -> Result<()> {
    if required || peers::npm_works() {
        return clients::run(&clients::Args::default());
    }
    println!("SKIPPED: npm cannot be started, so NO official client was pointed at the server.");
    Ok(())
}

fn run_browser(required: bool) -> Result<()> {
    if required || browser::works() {
        return browser::run(&browser::Args::default());
    }
    println!("SKIPPED: npm or Chromium is missing, so the web page was NOT tested.");
    Ok(())
}

/// Runs the first command of README.md unchanged.
fn readme() -> Result<()> {
    let typed = format!(
        "cargo {} \"{}\"",
        README_ARGUMENTS[..4].join(" "),
        README_ARGUMENTS[4]
    );
    let text = fs::read_to_string(process::root().join("README.md"))
        .context("README.md could not be read")?;
    match first_command(&text) {
        Some(first) if first == typed => {}
        first => bail!(
            "README.md begins with `{}`, but this step runs `{typed}`: make them the same",
            first.unwrap_or("no cargo command")
        ),
    }
    let mut command = process::cargo(README_ARGUMENTS);
    // As on a machine where nothing is set up: keys would make it a call over the network.
    for variable in PROVIDER_VARIABLES {
        command.env_remove(variable);
    }
    eprintln!("$ {typed}");
    let answer = process::stdout_of(&mut command)?;
    print!("{answer}");
    if answer.trim().is_empty() {
        bail!("`{typed}` gave no answer");
    }
    Ok(())
}

/// What makes a provider usable; the same names as the vendors' own SDKs read.
const PROVIDER_VARIABLES: [&str; 9] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "OLLAMA_HOST",
    "SWITCHBOARD_MODEL",
];

/// The first line within a code fence that calls cargo.
fn first_command(markdown: &str) -> Option<&str> {
    let mut fenced = false;
    for line in markdown.lines().map(str::trim) {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            if line.starts_with("cargo ") {
                return Some(line);
            }
        }
    }
    None
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_command_is_in_a_fence() {
        let markdown = "# A\n\ncargo is nice\n\n```console\ngit clone x\n$ cargo run -- a\n```\n";
        assert_eq!(first_command(markdown), Some("cargo run -- a"));
        assert_eq!(first_command("cargo run"), None);
    }
}

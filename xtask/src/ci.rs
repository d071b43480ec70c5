//! `cargo xtask ci`: runs all steps of continuous integration.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::checks::{docs, layers, lint, snapshots};
use crate::packages::npm_works;
use crate::process;
use crate::suites::test::{self, Runner};
use crate::suites::{bfcl, browser, clients, conformance, oracle, peers, postgres, schemathesis};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fail if npm is missing, instead of skipping the tests against peers
    #[arg(long)]
    require_peers: bool,
    /// Run only these steps, in their usual order
    #[arg(long, value_enum, value_name = "STEP")]
    only: Vec<Step>,
    /// Skip these steps
    #[arg(long, value_enum, value_name = "STEP", conflicts_with = "only")]
    skip: Vec<Step>,
}

/// The steps in execution order. Fast steps run first.
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

pub(crate) fn run(args: &Args) -> Result<()> {
    let chosen = |step: &&Step| {
        !args.skip.contains(step) && (args.only.is_empty() || args.only.contains(step))
    };
    let mut times = Vec::new();
    for step in Step::value_variants().iter().filter(chosen) {
        println!("\n=== {step:?} ===");
        let start = Instant::now();
        let result = run_step(*step, args.require_peers);
        let took = start.elapsed();
        println!(
            "=== {step:?}: {} after {} ===",
            if result.is_ok() { "done" } else { "FAILED" },
            format_seconds(took)
        );
        times.push((*step, took));
        result.with_context(|| format!("step {step:?} failed"))?;
    }
    println!("\n| step | time |\n|---|---:|");
    for (step, took) in &times {
        println!("| {step:?} | {} |", format_seconds(*took));
    }
    let total = times.iter().map(|(_, took)| *took).sum();
    println!("| all | {} |", format_seconds(total));
    Ok(())
}

fn run_step(step: Step, require_peers: bool) -> Result<()> {
    let has_npm = || require_peers || npm_works();
    match step {
        Step::Layers => layers::run(None),
        Step::Lint => lint::run(&lint::Args::default()),
        Step::Test => test::run(&test::Args::default()),
        // This step fails if no server can be installed. `--skip postgres` skips it.
        Step::Postgres => postgres::run(),
        Step::Peers => run_if(has_npm(), "npm", || peers::run(Runner::find_runner())),
        Step::Conformance => run_if(has_npm(), "npm", conformance::run),
        Step::Clients => run_if(has_npm(), "npm", clients::run),
        Step::Schemathesis => schemathesis::run(),
        Step::Browser => run_if(
            require_peers || browser::can_run(),
            "npm or Chromium",
            || browser::run(&browser::Args::default()),
        ),
        Step::Snapshots => snapshots::check_files(),
        Step::Oracle => oracle::run(),
        Step::Bfcl => bfcl::run(),
        Step::Docs => docs::run(),
        Step::Release => process::run(&mut process::cargo(["build", "--release"])),
        Step::Readme => run_readme_command(),
    }
}

/// Runs a step, or prints that it was skipped because of missing software.
fn run_if(works: bool, missing: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
    if works {
        return step();
    }
    println!("SKIPPED, NOT tested: {missing} is missing.");
    Ok(())
}

/// Runs the first command of README.md unchanged.
fn run_readme_command() -> Result<()> {
    let text = fs::read_to_string(process::root().join("README.md"))
        .context("failed to read README.md")?;
    let typed = first_command(&text).context("README.md has no cargo command")?;
    // The pieces with an odd index are between quotation marks, so each is one argument.
    let words = typed
        .split('"')
        .enumerate()
        .flat_map(|(at, piece)| match at % 2 {
            0 => piece.split_whitespace().collect(),
            _ => vec![piece],
        });
    let mut command = process::cargo(words.skip(1));
    // Without API keys, the command uses the demo model and sends no request to a provider.
    for variable in PROVIDER_VARIABLES {
        command.env_remove(variable);
    }
    eprintln!("$ {typed}");
    let answer = process::stdout_of(&mut command)?;
    print!("{answer}");
    if answer.trim().is_empty() {
        bail!("`{typed}` printed nothing");
    }
    Ok(())
}

/// Environment variables that configure model providers.
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

/// Returns the first line in a code block of a Markdown text that starts with `cargo`.
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

fn format_seconds(took: Duration) -> String {
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

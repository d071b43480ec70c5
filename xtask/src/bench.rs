//! `cargo xtask bench`: measurements that are compared within one run, so that a slow or busy
//! machine changes the numbers but hardly the ratio.

mod ask;
mod decode;
mod load;
mod memory;
mod micro;
mod turn;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::stats::Series;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which benches to run; all without a name
    names: Vec<String>,
    /// Show the names
    #[arg(long)]
    list: bool,
    /// How often each program is measured
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    runs: u32,
}

/// A bench: name, what it measures, and how.
type Bench = (&'static str, &'static str, fn(u32) -> Result<()>);

/// Every bench there is.
const BENCHES: &[Bench] = &[
    (
        "micro",
        "the micro-benchmarks of the crates: mappings, decoders, the loop, the dialects",
        micro::micro,
    ),
    (
        "decode",
        "reading an answer of each wire into domain events, beside `serde_json` reading the same into values",
        decode::decode,
    ),
    (
        "startup",
        "`switchboard --version` against an empty Rust program: what a person waits at every command",
        startup,
    ),
    (
        "ask",
        "an offline question with one tool against bare rmcp, which starts the same server and calls the same tool",
        ask::ask,
    ),
    (
        "memory",
        "what `switchboard serve` has in memory after its start and after a question",
        memory::memory,
    ),
    (
        "turn",
        "a complete turn (model, a tool over stdio, model) against a floor of reqwest, serde_json and rmcp",
        turn::turn,
    ),
    (
        "load",
        "500 streaming sessions at once through `switchboard serve` against the same streams without it, and requests in a \
         second, their times, CPU time and memory against a floor that hands on what the model says",
        load::load,
    ),
];

/// How many times an empty program's start the program may take to say its version.
const MOST_STARTUP: f64 = 3.0;
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.list {
        for (name, about, _) in BENCHES {
            println!("{name}: {about}");
        }
        return Ok(());
    }
    for name in &args.names {
        if !BENCHES.iter().any(|(known, ..)| known == name) {
            bail!("there is no bench `{name}`; `cargo xtask bench --list` names them");
        }
    }
    for (name, about, measure) in BENCHES {
        if args.names.is_empty() || args.names.iter().any(|wanted| wanted == name) {
            println!("\n## {name}\n\n{about}\n");
            measure(args.runs)?;
        }
    }
    Ok(())
}

fn startup(runs: u32) -> Result<()> {
    process::run(&mut process::cargo([
        "build",
        "--release",
        "--package",
        "switchboard-app",
    ]))?;
    let name = format!("switchboard{}", std::env::consts::EXE_SUFFIX);
    let ours = process::target_dir().join("release").join(name);
    let empty = empty_program()?;

    let mut version = process::command(&ours);
    version.arg("--version");
    let mut nothing = process::command(&empty);
    let (ours, empty) = interleaved(&mut version, &mut nothing, runs)?;
    print!(
        "{}",
        table("switchboard --version", &ours, "empty program", &empty)?
    );
    let ratio = series(ratios(&ours, &empty))?.median();
    if ratio > MOST_STARTUP {
        bail!("it takes {ratio:.2} times an empty program's start, and {MOST_STARTUP} is allowed");
    }
    Ok(())
}

/// What any Rust program pays to be started on this machine.
fn empty_program() -> Result<PathBuf> {
    let folder = process::target_dir().join("bench");
    fs::create_dir_all(&folder)?;
    let source = folder.join("empty.rs");
    fs::write(&source, "fn main() {}\n")?;
    let program = folder.join(format!("empty{}", std::env::consts::EXE_SUFFIX));
    let mut rustc = process::command("rustc");
    rustc.args(["--edition", "2024", "-O"]);
    process::run(rustc.arg(&source).arg("-o").arg(&program))?;
    Ok(program)
}

/// Measures both programs in turns, in milliseconds: what else the machine does meets both.
fn interleaved(a: &mut Command, b: &mut Command, runs: u32) -> Result<(Vec<f64>, Vec<f64>)> {
    // Once without counting: files come into the cache of the system.
    milliseconds(a)?;
    milliseconds(b)?;
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for turn in 0..runs {
        // Neither always comes first.
        if turn % 2 == 0 {
            of_a.push(milliseconds(a)?);
            of_b.push(milliseconds(b)?);
        } else {
            of_b.push(milliseconds(b)?);
            of_a.push(milliseconds(a)?);
        }
    }
    Ok((of_a, of_b))
}

fn milliseconds(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status()?;
    let took = start.elapsed().as_secs_f64() * 1000.0;
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(took)
}

/// Both series side by side, and the ratio of each pair that was measured together.
fn table(a_name: &str, a: &[f64], b_name: &str, b: &[f64]) -> Result<String> {
    table_in("ms", a_name, a, b_name, b)
}

/// The same in another unit.
fn table_in(unit: &str, a_name: &str, a: &[f64], b_name: &str, b: &[f64]) -> Result<String> {
    let row = |name: &str, unit: &str, values: Vec<f64>| -> Result<String> {
        let runs = values.len();
        let series = series(values)?;
        Ok(format!(
            "| {name} | {runs} | {:.2}{unit} | {:.2}–{:.2}{unit} | {:.2}{unit} |\n",
            series.median(),
            series.quantile(0.1),
            series.quantile(0.9),
            series.quantile(0.0),
        ))
    };
    let head = "| program | runs | median | p10–p90 | fastest |\n|---|---:|---:|---:|---:|\n";
    let unit = format!(" {unit}");
    Ok([
        head.to_owned(),
        row(a_name, &unit, a.to_vec())?,
        row(b_name, &unit, b.to_vec())?,
        row("ratio of a pair", "×", ratios(a, b))?,
    ]
    .concat())
}

fn series(values: Vec<f64>) -> Result<Series> {
    Series::new(values).context("nothing was measured")
}

fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_both_programs_and_the_ratio_of_the_pairs() {
        let table = table("ours", &[4.0, 6.0, 8.0], "empty", &[2.0, 2.0, 2.0]).unwrap();
        assert!(table.contains("| ours | 3 | 6.00 ms |"), "{table}");
        assert!(table.contains("| ratio of a pair | 3 | 3.00× |"), "{table}");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = BENCHES.iter().map(|(name, ..)| name).collect();
        names.dedup();
        assert_eq!(names.len(), BENCHES.len());
    }
}

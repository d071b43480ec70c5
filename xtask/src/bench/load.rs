//! Requests per second through `switchboard serve` (`crates/app/examples/load`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::{ratios, series};
use crate::process;

/// Runs per round. A round has 512 requests for each kind and side.
const RUNS_PER_ROUND: u32 = 10;

/// Measurements of one kind of request.
#[derive(Debug, Default, PartialEq)]
struct Kind {
    direct_rates: Vec<f64>,
    served_rates: Vec<f64>,
    /// Response times of the server in microseconds.
    p50: Vec<f64>,
    p99: Vec<f64>,
    /// CPU time per request in microseconds, and peak memory in bytes.
    usage: [f64; 2],
}

pub(super) fn load(runs: u32) -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("The benchmark reads /proc and runs on Linux only.");
        return Ok(());
    }
    let build = |targets: &[&str]| {
        let mut build =
            process::cargo(["build", "--profile", "dist", "--package", "switchboard-app"]);
        process::run(build.args(targets))
    };
    build(&["--bin", "switchboard"])?;
    build(&["--example", "load", "--example", "turn"])?;
    let release = process::target_dir().join("dist");
    let mut measure = process::command(release.join("examples/load"));
    measure
        .arg(release.join("switchboard"))
        .arg(release.join("examples/turn"))
        .arg(runs.div_ceil(RUNS_PER_ROUND).to_string());
    print!("{}", report(&process::stdout_of(&mut measure)?)?);
    Ok(())
}

fn read(measured: &str) -> Result<BTreeMap<String, Kind>> {
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    for line in measured.lines() {
        let invalid = || format!("`{line}` is not a measurement");
        let (name, numbers) = line.split_once(' ').with_context(invalid)?;
        let (numbers, is_usage) = match numbers.strip_prefix("used ") {
            Some(numbers) => (numbers, true),
            None => (numbers, false),
        };
        let numbers: Vec<f64> = numbers
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(invalid)?;
        let kind = kinds.entry(name.to_owned()).or_default();
        match numbers[..] {
            [cpu, peak] if is_usage => kind.usage = [cpu, peak],
            [direct, _, _, served, p50, p99] if !is_usage => {
                kind.direct_rates.push(direct);
                kind.served_rates.push(served);
                kind.p50.push(p50);
                kind.p99.push(p99);
            }
            _ => bail!(invalid()),
        }
    }
    Ok(kinds)
}

fn report(measured: &str) -> Result<String> {
    let mut table =
        "| request | per second | direct | ratio | p50 | p99 | CPU per request | peak memory |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
    for (name, kind) in read(measured)? {
        let median = |values: &[f64]| Ok::<_, anyhow::Error>(series(values.to_vec())?.median());
        let [cpu, peak] = kind.usage;
        let _ = writeln!(
            table,
            "| {name} | {:.0} | {:.0} | {:.2}× | {:.1} ms | {:.1} ms | {cpu:.0} µs | {:.1} MB |",
            median(&kind.served_rates)?,
            median(&kind.direct_rates)?,
            median(&ratios(&kind.served_rates, &kind.direct_rates))?,
            median(&kind.p50)? / 1e3,
            median(&kind.p99)? / 1e3,
            peak / 1e6,
        );
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_a_row_for_each_kind() {
        let measured =
            "chat 1000 1 2 500 1500 2500\nchat 2000 1 2 1000 2500 3500\nchat used 120 5000000\n";
        let report = report(measured).unwrap();
        let row = "| chat | 750 | 1500 | 0.50× | 2.0 ms | 3.0 ms | 120 µs | 5.0 MB |";
        assert_eq!(report.lines().last(), Some(row));
    }

    #[test]
    fn invalid_lines_are_named() {
        for line in ["chat", "chat 1 2", "chat used 1", "chat used x y"] {
            assert!(format!("{:#}", read(line).unwrap_err()).contains(line));
        }
    }
}

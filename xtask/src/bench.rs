//! `cargo xtask bench`: runs benchmarks that compare our code with a baseline.
//!
//! Each benchmark measures both sides alternately, so that other load on the machine affects both.
//! It prints one line for each batch of measurements: a name and the numbers that
//! [`Bench::columns`] describes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::dist::{OptimizedBuild, PROGRAMS};
use crate::process;

/// Number of `--runs` that become one round of the benchmark `load`, because a round is slow.
const RUNS_PER_ROUND: u32 = 10;
/// Arguments with which `cargo bench` runs the benchmark `decode`.
pub(crate) const DECODE: &str = "--package switchboard-testkit --bench beside_serde --";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Benchmarks to run; all by default
    names: Vec<String>,
    /// List the benchmarks
    #[arg(long)]
    list: bool,
    /// Number of measurements
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    runs: u32,
}

struct Bench {
    name: &'static str,
    about: &'static str,
    /// Builds the program of the benchmark. Returns the command that runs it with the number of
    /// measurements in the second argument.
    prepare: fn(&OptimizedBuild, u32) -> Result<Command>,
    /// Titles of the numbers in an output line. A line with more or fewer numbers is an error.
    columns: &'static [&'static str],
    /// Indexes of the two columns whose ratio is reported: the numerator and the denominator.
    ratio: (usize, usize),
    /// Returns whether a median ratio is within the limit. The first argument is the name of the
    /// measurements, such as `stream-64`.
    is_allowed: fn(&str, f64) -> bool,
}

const BENCHES: [Bench; 3] = [
    Bench {
        name: "decode",
        about: "parsing of a response of each wire, compared with `serde_json` values",
        prepare: |build, runs| {
            let mut measure = build.optimized_cargo("bench", DECODE);
            measure.arg(runs.to_string());
            Ok(measure)
        },
        columns: &["bytes", "serde_json (ns)", "adapter (ns)"],
        ratio: (1, 2),
        is_allowed: |_, speed| speed >= 0.5,
    },
    Bench {
        name: "turn",
        about: "a turn with a tool call over stdio, compared with reqwest, serde_json and rmcp",
        prepare: |build, runs| {
            build.build_programs(PROGRAMS[1])?;
            let mut measure = process::command(build.program("examples/turn"));
            measure.arg(runs.to_string());
            Ok(measure)
        },
        columns: &["CPU of the baseline (µs)", "CPU (µs)"],
        ratio: (1, 0),
        is_allowed: |kind, cost| cost <= if kind.starts_with("stream") { 1.3 } else { 1.5 },
    },
    Bench {
        name: "load",
        about: "requests per second through `switchboard serve`, compared with direct requests to \
                the model",
        prepare: |build, runs| {
            for programs in PROGRAMS {
                build.build_programs(programs)?;
            }
            let mut measure = process::command(build.program("examples/load"));
            measure.args(["switchboard", "examples/turn"].map(|name| build.program(name)));
            measure.arg(runs.div_ceil(RUNS_PER_ROUND).to_string());
            Ok(measure)
        },
        columns: &[
            "direct (1/s)",
            "direct p50 (µs)",
            "direct p99 (µs)",
            "served (1/s)",
            "served p50 (µs)",
            "served p99 (µs)",
            "CPU per request (µs)",
            "peak memory (bytes)",
        ],
        ratio: (3, 0),
        is_allowed: |_, _| true,
    },
];

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.list {
        for bench in BENCHES {
            println!("{}: {}", bench.name, bench.about);
        }
        return Ok(());
    }
    for name in &args.names {
        if !BENCHES.iter().any(|known| known.name == name) {
            bail!("unknown benchmark `{name}`; `cargo xtask bench --list` lists them");
        }
    }
    let build = OptimizedBuild::prepare()?;
    let is_wanted =
        |bench: &Bench| args.names.is_empty() || args.names.iter().any(|it| it == bench.name);
    for bench in BENCHES.into_iter().filter(is_wanted) {
        println!("\n## {}\n\n{}\n", bench.name, bench.about);
        if bench.name == "load" && !cfg!(target_os = "linux") {
            println!("The benchmark reads /proc and runs on Linux only.");
            continue;
        }
        let measured = process::stdout_of(&mut (bench.prepare)(&build, args.runs)?)?;
        let (report, over_limit) = format_report(&bench, &measured)?;
        print!("{report}");
        if !over_limit.is_empty() {
            bail!("over the limit: {}", over_limit.join(", "));
        }
    }
    Ok(())
}

/// Returns a Markdown table with the median of each column, and the ratios that exceed their limit.
fn format_report(bench: &Bench, measured: &str) -> Result<(String, Vec<String>)> {
    // Measured numbers by measurement name: one list for each column.
    let mut series: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for line in measured.lines() {
        let fields: Vec<&str> = line.rsplitn(bench.columns.len() + 1, [' ', '\t']).collect();
        let (numbers, name) = fields.split_at(bench.columns.len().min(fields.len()));
        let numbers: Result<Vec<f64>, _> = numbers.iter().rev().map(|it| it.parse()).collect();
        let ([name], Ok(numbers)) = (name, numbers) else {
            bail!("`{line}` is not a measurement of `{}`", bench.name);
        };
        let columns = series.entry(*name).or_default();
        columns.resize(numbers.len(), Vec::new());
        for (column, number) in columns.iter_mut().zip(numbers) {
            column.push(number);
        }
    }
    ensure!(
        !series.is_empty(),
        "`{}` produced no measurements",
        bench.name
    );
    let titles = bench.columns.join(" | ");
    let mut table = format!("| measured | batches | {titles} | ratio | p10–p90 |\n|---|");
    table += &"---:|".repeat(bench.columns.len() + 3);
    let mut over_limit = Vec::new();
    for (name, columns) in series {
        let (above, below) = (&columns[bench.ratio.0], &columns[bench.ratio.1]);
        let ratios: Vec<f64> = above.iter().zip(below).map(|(a, b)| a / b).collect();
        let ratio = quantile(&ratios, 5);
        if !(bench.is_allowed)(name, ratio) {
            over_limit.push(format!("{name} has the ratio {ratio:.2}"));
        }
        let medians = columns.iter().map(|it| format!("{:.0}", quantile(it, 5)));
        let medians = medians.collect::<Vec<_>>().join(" | ");
        let (low, high) = (quantile(&ratios, 1), quantile(&ratios, 9));
        let name = name.replace('\t', ", ");
        let _ = write!(
            table,
            "\n| {name} | {} | {medians} | {ratio:.2}× | {low:.2}–{high:.2}× |",
            ratios.len()
        );
    }
    Ok((table + "\n", over_limit))
}

/// Returns a quantile by the nearest-rank method. `tenths` is the rank: 5 means the median, and 9
/// the 90th percentile.
fn quantile(values: &[f64], tenths: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[(values.len() * tenths).div_ceil(10).max(1) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_medians_and_the_ratios_beyond_their_limit() {
        let [decode, turn, _] = BENCHES;
        let measured =
            "a\ttext\t1000\t2000\t1000\nb\tcalls\t500\t900\t2000\na\ttext\t1000\t4000\t1000\n";
        let (table, over_limit) = format_report(&decode, measured).unwrap();
        let row = "| a, text | 2 | 1000 | 2000 | 1000 | 2.00× | 2.00–4.00× |";
        assert!(table.lines().any(|line| line == row), "{table}");
        assert_eq!(over_limit, ["b\tcalls has the ratio 0.45"]);
        let (_, over_limit) = format_report(&turn, "stream-1 100 140\nwhole-1 100 140\n").unwrap();
        assert_eq!(over_limit, ["stream-1 has the ratio 1.40"]);
    }

    #[test]
    fn invalid_and_missing_measurements_are_errors() {
        let [decode, ..] = BENCHES;
        for wrong in ["", "a\tb\t1", "a\tb\t1\t2\tx", "1\t2\t3"] {
            let error = format_report(&decode, &format!("{wrong}\n")).unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
        assert!(format_report(&decode, "").is_err());
    }
}

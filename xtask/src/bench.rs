//! `cargo xtask bench`: benchmarks that compare two programs within one run, so that the load of
//! the machine affects both.

mod decode;
mod load;
mod stats;
mod turn;

use anyhow::{Context as _, Result, bail};

use stats::Series;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Benchmarks to run; all without a name
    names: Vec<String>,
    /// List the benchmarks
    #[arg(long)]
    list: bool,
    /// Number of measurements
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    runs: u32,
}

/// A benchmark: name, description and function.
type Bench = (&'static str, &'static str, fn(u32) -> Result<()>);

const BENCHES: [Bench; 3] = [
    (
        "decode",
        "parsing of a response of each wire, compared with `serde_json` values",
        decode::decode,
    ),
    (
        "turn",
        "a turn with a tool call over stdio, compared with reqwest, serde_json and rmcp",
        turn::turn,
    ),
    (
        "load",
        "requests per second through `switchboard serve`, compared with direct requests to the \
         model",
        load::load,
    ),
];

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.list {
        for (name, about, _) in BENCHES {
            println!("{name}: {about}");
        }
        return Ok(());
    }
    for name in &args.names {
        if !BENCHES.iter().any(|(known, ..)| known == name) {
            bail!("unknown benchmark `{name}`; `cargo xtask bench --list` lists them");
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

/// Formats two series and the ratio of each pair as a Markdown table.
fn table(unit: &str, a_name: &str, a: &[f64], b_name: &str, b: &[f64]) -> Result<String> {
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
    Series::new(values).context("no measurement")
}

fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_both_programs_and_the_ratio_of_the_pairs() {
        let table = table("ms", "ours", &[4.0, 6.0, 8.0], "empty", &[2.0, 2.0, 2.0]).unwrap();
        assert!(table.contains("| ours | 3 | 6.00 ms |"), "{table}");
        assert!(table.contains("| ratio of a pair | 3 | 3.00× |"), "{table}");
    }
}

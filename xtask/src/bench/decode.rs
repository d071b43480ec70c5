//! How fast each adapter reads its wire beside `serde_json` (`crates/testkit/benches/beside_serde.rs`).

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::{ratios, series};
use crate::process;

/// How fast an adapter must at least be, in parts of how fast `serde_json` reads what the frames hold into values.
const LEAST: f64 = 0.7;

/// The measurements of one answer.
#[derive(Debug, PartialEq)]
struct Answer {
    /// Its wire, and what it is made of.
    name: String,
    bytes: f64,
    /// Nanoseconds for all of it, a number for each batch.
    values: Vec<f64>,
    adapter: Vec<f64>,
}

pub(super) fn decode(runs: u32) -> Result<()> {
    let bench = [
        "--package",
        "switchboard-testkit",
        "--bench",
        "beside_serde",
    ];
    let mut measure = process::cargo(["bench"]);
    measure.args(bench).args(["--", &runs.to_string()]);
    let (report, slowest) = report(&read(&process::stdout_of(&mut measure)?)?)?;
    print!("{report}");
    if slowest < LEAST {
        bail!("an adapter is {slowest:.2} times as fast as `serde_json`, and {LEAST} is the least");
    }
    Ok(())
}

fn read(measured: &str) -> Result<Vec<Answer>> {
    let mut answers: Vec<Answer> = Vec::new();
    for line in measured.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [wire, about, bytes, values, adapter] = fields.as_slice() else {
            bail!("`{line}` is no measurement");
        };
        let number = |text: &str| {
            let number: f64 = text.parse().with_context(|| format!("in `{line}`"))?;
            Ok::<_, anyhow::Error>(number)
        };
        let name = format!("{wire}, {about}");
        let at = answers.iter().position(|answer| answer.name == name);
        let at = at.unwrap_or(answers.len());
        if at == answers.len() {
            answers.push(Answer {
                name,
                bytes: number(bytes)?,
                values: Vec::new(),
                adapter: Vec::new(),
            });
        }
        answers[at].values.push(number(values)?);
        answers[at].adapter.push(number(adapter)?);
    }
    Ok(answers)
}

/// The table, and how fast the slowest adapter is beside `serde_json`.
fn report(answers: &[Answer]) -> Result<(String, f64)> {
    let mut report =
        "| answer | serde_json | adapter | times as fast | p10–p90 |\n|---|---:|---:|---:|---:|\n"
            .to_owned();
    let mut slowest = f64::INFINITY;
    for answer in answers {
        let speed = |times: &[f64]| {
            Ok::<_, anyhow::Error>(answer.bytes * 1e3 / series(times.to_vec())?.median())
        };
        let ratio = series(ratios(&answer.values, &answer.adapter))?;
        let _ = writeln!(
            report,
            "| {} | {:.0} MB/s | {:.0} MB/s | {:.2}× | {:.2}–{:.2}× |",
            answer.name,
            speed(&answer.values)?,
            speed(&answer.adapter)?,
            ratio.median(),
            ratio.quantile(0.1),
            ratio.quantile(0.9),
        );
        slowest = slowest.min(ratio.median());
    }
    if answers.is_empty() {
        bail!("nothing was measured");
    }
    Ok((report, slowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_answer_is_what_counts() {
        let measured =
            "a\ttext\t1000\t2000\t1000\nb\tcalls\t500\t1000\t2000\na\ttext\t1000\t4000\t1000\n";
        let (report, slowest) = report(&read(measured).unwrap()).unwrap();
        assert!(
            report.contains("| a, text | 333 MB/s | 1000 MB/s | 3.00× |"),
            "{report}"
        );
        assert!((slowest - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_measurement_is_named() {
        for wrong in ["a\tb\t1\t2", "a\tb\t1\t2\tx"] {
            let error = format!("{:#}", read(wrong).unwrap_err());
            assert!(error.contains(wrong), "{error}");
        }
        assert!(report(&[]).is_err());
    }
}

//! Speed of each adapter compared with `serde_json` (`crates/testkit/benches/beside_serde.rs`).

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::{ratios, series};
use crate::process;

/// Minimum speed of an adapter as a share of the speed of `serde_json`.
const MIN_SPEED: f64 = 0.5;

/// The measurements of one response.
#[derive(Debug, PartialEq)]
struct Response {
    /// Wire and content.
    name: String,
    bytes: f64,
    /// Nanoseconds for the whole response, one number for each batch.
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
    if slowest < MIN_SPEED {
        bail!(
            "an adapter has {slowest:.2} of the speed of `serde_json`; the minimum is {MIN_SPEED}"
        );
    }
    Ok(())
}

fn read(measured: &str) -> Result<Vec<Response>> {
    let mut answers: Vec<Response> = Vec::new();
    for line in measured.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [wire, about, bytes, values, adapter] = fields.as_slice() else {
            bail!("`{line}` is not a measurement");
        };
        let number = |text: &str| {
            let number: f64 = text.parse().with_context(|| format!("in `{line}`"))?;
            Ok::<_, anyhow::Error>(number)
        };
        let name = format!("{wire}, {about}");
        let at = answers.iter().position(|answer| answer.name == name);
        let at = at.unwrap_or(answers.len());
        if at == answers.len() {
            answers.push(Response {
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

/// Returns the table and the relative speed of the slowest adapter.
fn report(answers: &[Response]) -> Result<(String, f64)> {
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
        bail!("no measurement");
    }
    Ok((report, slowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_adapter_decides() {
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
    fn invalid_lines_are_named() {
        for wrong in ["a\tb\t1\t2", "a\tb\t1\t2\tx"] {
            let error = format!("{:#}", read(wrong).unwrap_err());
            assert!(error.contains(wrong), "{error}");
        }
        assert!(report(&[]).is_err());
    }
}

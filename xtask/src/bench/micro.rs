//! The micro-benchmarks of the crates (criterion, `crates/*/benches`) in one table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process;

/// Where they are, and the features that they need.
const BENCHES: [(&str, &str, &[&str]); 4] = [
    ("switchboard-testkit", "wires", &[]),
    ("switchboard-orchestration", "machine", &[]),
    ("switchboard-evals", "recordings", &[]),
    (
        "switchboard-server",
        "projections",
        &["--features", "benches"],
    ),
];

pub(super) fn micro(_runs: u32) -> Result<()> {
    let folder = process::target_dir().join("bench/criterion");
    // What an earlier version measured under another name would be in the table.
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for (package, bench, features) in BENCHES {
        let mut measure = process::cargo(["bench", "--package", package, "--bench", bench]);
        measure.args(features).args(["--", "--quiet", "--noplot"]);
        process::run(measure.env("CRITERION_HOME", &folder))?;
    }
    let mut measured = BTreeMap::new();
    collect(&folder, &mut measured)?;
    if measured.is_empty() {
        bail!("nothing was measured");
    }
    print!("{}", table(&measured));
    Ok(())
}

/// What criterion found out about one benchmark.
#[derive(Debug, PartialEq)]
struct Measured {
    /// Nanoseconds: the median of the samples, and how far they are mostly from it.
    median: f64,
    deviation: f64,
    /// Bytes or elements of one iteration.
    amount: Option<(Unit, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Element,
}

/// Takes every result below a folder: criterion writes the last one of each benchmark into `new`.
fn collect(folder: &Path, measured: &mut BTreeMap<String, Measured>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        if path.file_name().is_some_and(|name| name == "new") {
            let json = |file: &str| -> Result<Value> {
                let file = path.join(file);
                let text = fs::read_to_string(&file);
                let text = text.with_context(|| file.display().to_string())?;
                serde_json::from_str(&text).with_context(|| file.display().to_string())
            };
            let (name, result) = read(&json("benchmark.json")?, &json("estimates.json")?)
                .with_context(|| format!("{} holds no result", path.display()))?;
            measured.insert(name, result);
        } else {
            collect(&path, measured)?;
        }
    }
    Ok(())
}

fn read(benchmark: &Value, estimates: &Value) -> Option<(String, Measured)> {
    let name = benchmark.get("full_id")?.as_str()?.to_owned();
    let estimate = |name: &str| estimates.get(name)?.get("point_estimate")?.as_f64();
    let amount = |unit, name: &str| {
        let amount = benchmark.get("throughput")?.get(name)?.as_f64()?;
        Some((unit, amount))
    };
    let measured = Measured {
        median: estimate("median")?,
        deviation: estimate("median_abs_dev")?,
        amount: amount(Unit::Byte, "BytesDecimal").or_else(|| amount(Unit::Element, "Elements")),
    };
    Some((name, measured))
}

fn table(measured: &BTreeMap<String, Measured>) -> String {
    let mut table = "| benchmark | median | | noise |\n|---|---:|---:|---:|\n".to_owned();
    for (name, result) in measured {
        let each = match result.amount {
            Some((Unit::Byte, bytes)) => format!("{:.0} MB/s", bytes * 1e3 / result.median),
            Some((Unit::Element, elements)) => format!("{} each", time(result.median / elements)),
            None => String::new(),
        };
        let _ = writeln!(
            table,
            "| {name} | {} | {each} | ±{:.1} % |",
            time(result.median),
            result.deviation / result.median * 100.0,
        );
    }
    table
}

/// Nanoseconds in the unit that suits them.
fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured(throughput: &Value) -> BTreeMap<String, Measured> {
        let benchmark = json!({"full_id": "a/b", "throughput": throughput});
        let estimates = json!({"median": {"point_estimate": 2000.0}, "median_abs_dev": {"point_estimate": 50.0}});
        BTreeMap::from([read(&benchmark, &estimates).unwrap()])
    }

    #[test]
    fn a_row_has_what_is_done_in_a_second_or_how_long_one_takes() {
        for (throughput, row) in [
            (
                json!({"BytesDecimal": 1000}),
                "| a/b | 2.0 µs | 500 MB/s | ±2.5 % |",
            ),
            (
                json!({"Elements": 4}),
                "| a/b | 2.0 µs | 500 ns each | ±2.5 % |",
            ),
            (Value::Null, "| a/b | 2.0 µs |  | ±2.5 % |"),
        ] {
            let table = table(&measured(&throughput));
            assert_eq!(table.lines().last(), Some(row));
        }
    }

    #[test]
    fn what_is_no_result_is_none() {
        assert_eq!(read(&json!({"full_id": "a"}), &json!({"median": {}})), None);
        assert_eq!(time(1.5e6), "1.50 ms");
    }
}

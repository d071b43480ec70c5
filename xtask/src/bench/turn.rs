//! The cost of a complete turn, compared with a hand-written baseline (`crates/app/examples/turn`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::{ratios, series, table};
use crate::process;

/// The kinds of turn: name, description, and maximum CPU time as a multiple of the baseline.
const TURNS: [(&str, &str, f64); 4] = [
    ("stream-1", "streamed, one at a time", 1.3),
    ("stream-64", "streamed, 64 at a time", 1.3),
    ("whole-1", "in one document, one at a time", 1.5),
    ("whole-64", "in one document, 64 at a time", 1.5),
];

/// Microseconds per turn, one number for each batch.
#[derive(Debug, Default, PartialEq)]
struct Measured {
    floor_cpu: Vec<f64>,
    our_cpu: Vec<f64>,
}

pub(super) fn turn(runs: u32) -> Result<()> {
    let example = ["--package", "switchboard-app", "--example", "turn"];
    process::run(process::cargo(["build", "--profile", "dist"]).args(example))?;
    let name = format!("turn{}", std::env::consts::EXE_SUFFIX);
    let program = process::target_dir().join("dist/examples").join(name);
    let mut measure = process::command(&program);
    let measured = process::stdout_of(measure.arg(runs.to_string()))?;
    let (report, over_limit) = report(&read(&measured)?)?;
    print!("{report}");
    if !over_limit.is_empty() {
        bail!("over the limit: {}", over_limit.join(", "));
    }
    Ok(())
}

/// Returns the tables and the kinds of turn that exceed their limit.
fn report(measured: &BTreeMap<String, Measured>) -> Result<(String, Vec<String>)> {
    let mut report = String::new();
    let mut over_limit = Vec::new();
    for (name, about, limit) in TURNS {
        let turn = measured.get(name);
        let turn = turn.with_context(|| format!("`{name}` was not measured"))?;
        let (ours, floor) = (&turn.our_cpu, &turn.floor_cpu);
        let cpu = table("µs", "switchboard", ours, "floor", floor)?;
        let _ = writeln!(report, "### A turn, {about}\n\nCPU time:\n\n{cpu}");
        let ratio = series(ratios(ours, floor))?.median();
        if ratio > limit {
            over_limit.push(format!(
                "{name} costs {ratio:.2} of the floor, limit {limit}"
            ));
        }
    }
    Ok((report, over_limit))
}

/// Parses the output of the example.
fn read(lines: &str) -> Result<BTreeMap<String, Measured>> {
    let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
    for line in lines.lines() {
        let invalid = || format!("`{line}` is not a name with two numbers");
        let (name, numbers) = line.split_once(' ').with_context(invalid)?;
        let numbers: Vec<f64> = numbers
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(invalid)?;
        let [floor_cpu, our_cpu] = numbers[..] else {
            bail!(invalid());
        };
        let turn = measured.entry(name.to_owned()).or_default();
        turn.floor_cpu.push(floor_cpu);
        turn.our_cpu.push(our_cpu);
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_over_their_limit_are_listed() {
        let lines = TURNS.map(|(name, ..)| format!("{name} 100 140\n"));
        let (_, over_limit) = report(&read(&lines.concat()).unwrap()).unwrap();
        let names: Vec<&str> = over_limit
            .iter()
            .filter_map(|it| it.split(' ').next())
            .collect();
        assert_eq!(names, ["stream-1", "stream-64"]);
    }

    #[test]
    fn invalid_and_missing_measurements_are_named() {
        for line in ["stream-1", "stream-1 1", "stream-1 1 2 3", "stream-1 1 two"] {
            assert!(read(line).unwrap_err().to_string().contains(line));
        }
        let error = report(&read("stream-1 1 2").unwrap()).unwrap_err();
        assert!(error.to_string().contains("stream-64"), "{error}");
    }
}

//! What a complete turn costs beside a floor that is written by hand (`crates/app/examples/turn.rs`).

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::{ratios, series, table_in};
use crate::process;

/// What of the floor's CPU time a turn may cost.
const MOST: f64 = 1.3;
/// How the measurements of a turn are named, and what they are; the others are steps.
const TURNS: [(&str, &str); 4] = [
    ("stream-1", "streamed, one at a time"),
    ("stream-64", "streamed, 64 at a time"),
    ("whole-1", "in one document, one at a time"),
    ("whole-64", "in one document, 64 at a time"),
];
/// Messages before a step.
const HISTORIES: [u32; 3] = [10, 100, 1000];

/// Microseconds per turn or step, a number for each batch.
#[derive(Debug, Default, PartialEq)]
struct Measured {
    floor_cpu: Vec<f64>,
    ours_cpu: Vec<f64>,
    floor_passed: Vec<f64>,
    ours_passed: Vec<f64>,
}

pub(super) fn turn(runs: u32) -> Result<()> {
    let example = ["--package", "switchboard-app", "--example", "turn"];
    process::run(process::cargo(["build", "--release"]).args(example))?;
    let name = format!("turn{}", std::env::consts::EXE_SUFFIX);
    let program = process::target_dir().join("release/examples").join(name);
    let mut measure = process::command(&program);
    let measured = process::stdout_of(measure.arg(runs.to_string()))?;
    let (report, dearest) = report(&read(&measured)?)?;
    print!("{report}");
    if dearest > MOST {
        bail!("a turn costs {dearest:.2} times the CPU time of the floor, and {MOST} is allowed");
    }
    Ok(())
}

/// The tables, and what the dearest kind of turn costs of the floor's CPU time.
fn report(measured: &BTreeMap<String, Measured>) -> Result<(String, f64)> {
    let of = |name: &str| {
        let found = measured.get(name);
        found.with_context(|| format!("`{name}` was not measured"))
    };
    let mut report = Vec::new();
    let mut dearest: f64 = 0.0;
    for (name, about) in TURNS {
        let turn = of(name)?;
        let cpu = table_in(
            "µs",
            "switchboard",
            &turn.ours_cpu,
            "floor",
            &turn.floor_cpu,
        )?;
        let (ours, floor) = (&turn.ours_passed, &turn.floor_passed);
        let passed = table_in("µs", "switchboard", ours, "floor", floor)?;
        report.push(format!(
            "### A turn, {about}\n\nCPU time:\n\n{cpu}\nTime passed, the servers on the same CPU:\n\n{passed}\n"
        ));
        dearest = dearest.max(series(ratios(&turn.ours_cpu, &turn.floor_cpu))?.median());
    }
    report.push(
        "### A step after so many messages, CPU time\n\n\
        | messages | switchboard | floor | ratio | of a message more | floor |\n\
        |---:|---:|---:|---:|---:|---:|\n"
            .to_owned(),
    );
    let mut before: Option<(f64, f64, f64)> = None;
    for messages in HISTORIES {
        let step = of(&format!("history-{messages}"))?;
        let ours = series(step.ours_cpu.clone())?.median();
        let floor = series(step.floor_cpu.clone())?.median();
        let ratio = series(ratios(&step.ours_cpu, &step.floor_cpu))?.median();
        let messages = f64::from(messages);
        let more = before.map_or_else(
            || "| |".to_owned(),
            |(fewer, ours_then, floor_then)| {
                let each = |now: f64, then: f64| (now - then) / (messages - fewer);
                format!(
                    "{:.2} µs | {:.2} µs |",
                    each(ours, ours_then),
                    each(floor, floor_then)
                )
            },
        );
        report.push(format!(
            "| {messages} | {ours:.1} µs | {floor:.1} µs | {ratio:.2}× | {more}\n"
        ));
        before = Some((messages, ours, floor));
    }
    Ok((report.concat(), dearest))
}

/// What the program measured, by name.
fn read(lines: &str) -> Result<BTreeMap<String, Measured>> {
    let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
    for line in lines.lines() {
        let wrong = || format!("`{line}` is no name with four numbers");
        let (name, numbers) = line.split_once(' ').with_context(wrong)?;
        let numbers: Vec<f64> = numbers
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(wrong)?;
        let [floor_cpu, ours_cpu, floor_passed, ours_passed] = numbers[..] else {
            bail!(wrong());
        };
        let of_name = measured.entry(name.to_owned()).or_default();
        of_name.floor_cpu.push(floor_cpu);
        of_name.ours_cpu.push(ours_cpu);
        of_name.floor_passed.push(floor_passed);
        of_name.ours_passed.push(ours_passed);
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(ours: f64) -> String {
        let turns =
            TURNS.map(|(name, _)| format!("{name} 100 {ours} 300 330\n{name} 100 120 300 330\n"));
        let steps = HISTORIES.map(|n| format!("history-{n} {} {} 1 1\n", n + 50, 2 * n + 60));
        turns.concat() + &steps.concat()
    }

    #[test]
    fn the_dearest_turn_counts_and_steps_are_told_by_message() {
        let (report, dearest) = report(&read(&lines(130.0)).unwrap()).unwrap();
        assert!((dearest - 1.25).abs() < 1e-9, "{dearest}");
        assert!(
            report.contains("| 10 | 80.0 µs | 60.0 µs | 1.33× | | |"),
            "{report}"
        );
        assert!(
            report.contains("| 1000 | 2060.0 µs | 1050.0 µs | 1.96× | 2.00 µs | 1.00 µs |"),
            "{report}"
        );
    }

    #[test]
    fn what_is_no_measurement_and_what_is_missing_is_said() {
        for wrong in [
            "stream-1",
            "stream-1 1 2 3",
            "stream-1 1 2 3 4 5",
            "stream-1 1 2 3 four",
        ] {
            assert!(read(wrong).unwrap_err().to_string().contains(wrong));
        }
        let error = report(&read("stream-1 1 2 3 4").unwrap()).unwrap_err();
        assert!(error.to_string().contains("stream-64"), "{error}");
    }
}

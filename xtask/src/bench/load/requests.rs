//! Requests in a second through `switchboard serve` beside a floor (`crates/app/examples/load/requests.rs`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use crate::bench::{ratios, series};

/// How the kinds of requests are named by the program, and what they are.
const KINDS: [(&str, &str); 8] = [
    ("chat-whole", "Chat Completions, whole"),
    ("chat-stream", "Chat Completions, streamed"),
    ("chat-whole-tool", "Chat Completions with a tool, whole"),
    ("chat-stream-tool", "Chat Completions with a tool, streamed"),
    ("own-whole", "a run of its own, whole"),
    ("own-stream", "a run of its own, streamed"),
    ("own-whole-tool", "a run of its own with a tool, whole"),
    ("own-stream-tool", "a run of its own with a tool, streamed"),
];
/// Requests that are under way at once.
const AT_ONCE: [u32; 3] = [1, 8, 64];

/// What one side did in the rounds of a row, and what it used in all of them.
#[derive(Debug, Default, PartialEq)]
struct Side {
    /// Requests in a second.
    rates: Vec<f64>,
    /// Microseconds.
    p50: Vec<f64>,
    p99: Vec<f64>,
    /// Microseconds of the CPU for each request, and bytes: at first, at most, at the end.
    used: [f64; 4],
}

#[derive(Debug, Default, PartialEq)]
struct Row {
    floor: Side,
    ours: Side,
}

/// The rows, by kind and number at once.
type Rows = BTreeMap<(String, u32), Row>;

/// Two tables: how fast, and at what cost.
pub(super) fn report(measured: &str) -> Result<String> {
    let rows = read(measured)?;
    let mut speed =
        "| request | at once | a second | floor | ratio | p10–p90 | p50 | floor | p99 | floor |\n\
        |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
    let mut cost = "| request | at once | CPU time | floor | ratio | MB at first, at most, at the end | floor |\n\
        |---|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for (kind, about) in KINDS {
        for at_once in AT_ONCE {
            let row = rows.get(&(kind.to_owned(), at_once));
            let Row { floor, ours } =
                row.with_context(|| format!("`{kind} {at_once}` was not measured"))?;
            let ratio = series(ratios(&ours.rates, &floor.rates))?;
            let median = |values: &[f64]| Ok::<_, anyhow::Error>(series(values.to_vec())?.median());
            writeln!(
                speed,
                "| {about} | {at_once} | {:.0} | {:.0} | {:.2}× | {:.2}–{:.2}× | {:.2} ms | {:.2} ms | {:.2} ms | {:.2} ms |",
                median(&ours.rates)?,
                median(&floor.rates)?,
                ratio.median(),
                ratio.quantile(0.1),
                ratio.quantile(0.9),
                median(&ours.p50)? / 1e3,
                median(&floor.p50)? / 1e3,
                median(&ours.p99)? / 1e3,
                median(&floor.p99)? / 1e3,
            )?;
            let memory = |[_, first, most, last]: [f64; 4]| {
                format!("{:.1}, {:.1}, {:.1}", first / 1e6, most / 1e6, last / 1e6)
            };
            let (our_cpu, floor_cpu) = (ours.used[0], floor.used[0]);
            writeln!(
                cost,
                "| {about} | {at_once} | {our_cpu:.0} µs | {floor_cpu:.0} µs | {:.2}× | {} | {} |",
                our_cpu / floor_cpu,
                memory(ours.used),
                memory(floor.used),
            )?;
        }
    }
    Ok(format!("{speed}\n{cost}"))
}

fn read(lines: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for line in lines.lines() {
        read_line(line, &mut rows).with_context(|| format!("`{line}` is no measurement"))?;
    }
    Ok(rows)
}

fn read_line(line: &str, rows: &mut Rows) -> Option<()> {
    let mut words = line.split(' ');
    let row = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    let what = words.next()?;
    let numbers: Vec<f64> = words.map(|it| it.parse().ok()).collect::<Option<_>>()?;
    match (what, &numbers[..]) {
        ("round", &[rate, p50, p99, our_rate, our_p50, our_p99]) => {
            let Row { floor, ours } = rows.entry(row).or_default();
            for (side, (rate, p50, p99)) in [
                (floor, (rate, p50, p99)),
                (ours, (our_rate, our_p50, our_p99)),
            ] {
                side.rates.push(rate);
                side.p50.push(p50);
                side.p99.push(p99);
            }
        }
        ("used", numbers) => {
            let (floor, ours) = numbers.split_at_checked(4)?;
            let row = rows.entry(row).or_default();
            row.floor.used = floor.try_into().ok()?;
            row.ours.used = ours.try_into().ok()?;
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> String {
        let row = |kind: &str, at_once: u32| {
            format!(
                "{kind} {at_once} round 2000 400 900 1000 800 1800\n\
                 {kind} {at_once} round 2000 400 900 500 1600 3600\n\
                 {kind} {at_once} used 100 9000000 9500000 9100000 250 30000000 35000000 31000000\n"
            )
        };
        let rows = KINDS.map(|(kind, _)| AT_ONCE.map(|at_once| row(kind, at_once)).concat());
        rows.concat()
    }

    #[test]
    fn both_sides_of_a_row_stand_beside_each_other() {
        let report = report(&measured()).unwrap();
        for row in [
            "| Chat Completions, whole | 8 | 750 | 2000 | 0.38× | 0.28–0.47× | 1.20 ms | 0.40 ms | 2.70 ms | 0.90 ms |",
            "| a run of its own with a tool, streamed | 64 | 250 µs | 100 µs | 2.50× | 30.0, 35.0, 31.0 | 9.0, 9.5, 9.1 |",
        ] {
            assert!(report.contains(row), "{report}");
        }
    }

    #[test]
    fn what_is_no_measurement_and_what_is_missing_is_said() {
        for wrong in [
            "chat-whole 1",
            "chat-whole 1 round 1 2 3",
            "chat-whole 1 used 1 2 3 4 5 6 7",
            "chat-whole one round 1 2 3 4 5 6",
        ] {
            let error = report(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
        let lines = measured().replace("own-stream 8 ", "own-stream 9 ");
        let error = report(&lines).unwrap_err().to_string();
        assert_eq!(error, "`own-stream 8` was not measured");
    }
}

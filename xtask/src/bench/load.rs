//! Many streaming sessions at once through `switchboard serve`, and many requests (`crates/app/examples/load`).

mod requests;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use crate::process;

/// Streaming sessions at once.
const SESSIONS: &str = "500";

/// One round of requests for so many of the runs that are asked for: a round is 256 or 512 requests, in each of 24 rows.
const RUNS_A_ROUND: u32 = 10;

pub(super) fn load(runs: u32) -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("What a process uses is read from /proc, on Linux only: nothing was measured.");
        return Ok(());
    }
    let app = ["--package", "switchboard-app"];
    let build =
        |what: &[&str]| process::run(process::cargo(["build", "--release"]).args(app).args(what));
    build(&["--bin", "switchboard"])?;
    build(&["--example", "load", "--example", "turn"])?;
    let release = process::target_dir().join("release");
    let program = release.join("switchboard");
    let measure = |what: &str| {
        let mut measure = process::command(release.join("examples/load"));
        measure.arg(what).arg(&program);
        measure
    };
    let measured = process::stdout_of(measure("sessions").arg(SESSIONS))?;
    println!("{}", report(&measured)?);
    let rounds = runs.div_ceil(RUNS_A_ROUND).to_string();
    let turn = release.join("examples/turn");
    let measured = process::stdout_of(measure("requests").arg(turn).arg(&rounds))?;
    print!(
        "Rounds of requests, the floor's in turns with ours: {rounds}. Server and floor are on one CPU, clients and model on \
         another (where there are two).\n\n{}",
        requests::report(&measured)?
    );
    Ok(())
}

fn report(measured: &str) -> Result<String> {
    let values: BTreeMap<&str, f64> = measured
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name, value.parse().ok()?))
        })
        .collect();
    let of = |name: &str| {
        let value = values.get(name).copied();
        value.with_context(|| format!("`{name}` was not measured"))
    };
    let ms = |name: &str| Ok::<_, anyhow::Error>(of(name)? / 1e3);
    Ok(format!(
        "{SESSIONS} sessions at once, each in a run of its own whose events are stored before they are seen:\n\n\
         | a word is seen after it was written | p50 | p90 | p99 |\n|---|---:|---:|---:|\n\
         | directly | {:.2} ms | {:.2} ms | {:.2} ms |\n\
         | through the server | {:.2} ms | {:.2} ms | {:.2} ms |\n\n\
         Added: {:.2} ms (p50), {:.2} ms (p99). Memory: {:.1} MB before, {:.0} kB for each session. \
         CPU time of the server: {:.0} µs for each word. It took {:.1} s.\n",
        ms("direct-p50")?,
        ms("direct-p90")?,
        ms("direct-p99")?,
        ms("through-p50")?,
        ms("through-p90")?,
        ms("through-p99")?,
        ms("added-p50")?,
        ms("added-p99")?,
        of("memory-before")? / 1e6,
        of("memory-session")? / 1e3,
        of("cpu-word")?,
        of("passed")? / 1e6,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let error = report("direct-p50 1\n").unwrap_err().to_string();
        assert_eq!(error, "`direct-p90` was not measured");
    }

    #[test]
    fn the_report_is_in_the_units_that_it_names() {
        let names = [
            "direct-p50",
            "direct-p90",
            "direct-p99",
            "through-p50",
            "through-p90",
            "through-p99",
            "added-p50",
            "added-p99",
            "memory-before",
            "memory-session",
            "cpu-word",
            "passed",
        ];
        let measured = names.map(|name| format!("{name} 2500\n")).concat();
        let report = report(&measured).unwrap();
        assert!(
            report.contains("| directly | 2.50 ms | 2.50 ms |"),
            "{report}"
        );
        assert!(report.contains("2 kB for each session"), "{report}");
    }
}

//! The importer of the Berkeley Function Calling Leaderboard, with the data and the checker of the
//! benchmark's package.
//!
//! `cargo xtask bfcl` installs the package and runs the tests that are ignored here. The other
//! tests use our own entries.
#![allow(
    clippy::print_stdout,
    reason = "what was compared is for whoever runs it"
)]
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod answers;
mod official;
mod own;
mod scripted;

use std::collections::HashMap;
use std::io::{Error, Result};

use switchboard_evals::{
    bfcl,
    report::{Report, RunResult, compute_share},
    suite::{Scenario, Suite},
};

use answers::{Entry, as_calls};
use official::{Package, Verdict};
use scripted::Call;

/// Categories whose answers are all scored by the same rules. Each has at least 50 entries.
const CATEGORIES: [&str; 8] = [
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "irrelevance",
    "live_simple",
    "live_multiple",
    "live_irrelevance",
];
/// Categories with the same rules and fewer entries.
const SMALL: [&str; 2] = ["live_parallel", "live_parallel_multiple"];

/// Ids of entries for which the benchmark's checker accepts no answer. The entry requires a
/// parameter that its answers do not accept, or its answers require a parameter that does not
/// exist.
const IMPOSSIBLE: [&str; 4] = [
    "live_simple_106-63-0",
    "live_simple_112-68-0",
    "live_multiple_862-181-3",
    "live_multiple_964-207-0",
];

/// Maximum number of changed answers to one entry.
const CHANGED: usize = 6;

fn imported(package: &Package, category: &str) -> Result<Suite> {
    let (questions, answers) = package.texts(category)?;
    bfcl::parse_bfcl_suite(&questions, answers.as_deref()).map_err(Error::other)
}

/// Runs each answer to the entries of a category as a separate scenario, and returns the results.
async fn judged(suite: &Suite, answers: &[(&Entry, Vec<Call>)]) -> Vec<RunResult> {
    let by_name: HashMap<&str, &Scenario> = suite
        .scenarios
        .iter()
        .map(|it| (it.name.as_str(), it))
        .collect();
    let mut results = Vec::with_capacity(answers.len());
    // Each scenario contains its tools, so only 500 scenarios are in memory at a time.
    for some in answers.chunks(500) {
        let mut scripts = HashMap::new();
        let mut scenarios = Vec::with_capacity(some.len());
        for (at, (entry, calls)) in some.iter().enumerate() {
            let mut scenario = by_name[entry.id.as_str()].clone();
            scenario.name = format!("{at} {}", entry.id);
            scripts.insert(scenario.name.clone(), calls.clone());
            scenarios.push(scenario);
        }
        let suite = Suite {
            scenarios,
            ..suite.clone()
        };
        results.extend(scripted::run(&suite, scripts).await);
    }
    results
}

#[tokio::test]
#[ignore = "needs the package bfcl-eval: cargo xtask bfcl"]
async fn right_answers_pass_and_wrong_ones_fail() -> Result<()> {
    let package = Package::found()?;
    println!("| category | entries | right answers that pass | wrong answers | of these pass |");
    println!("|---|---:|---:|---:|---:|");
    for category in CATEGORIES.into_iter().chain(SMALL) {
        let suite = imported(&package, category)?;
        let entries = package.entries(category)?;
        assert_eq!(suite.scenarios.len(), entries.len());
        assert!(entries.len() >= 50 || SMALL.contains(&category));
        let right: Vec<_> = entries
            .iter()
            .filter(|entry| !IMPOSSIBLE.contains(&entry.id.as_str()))
            .map(|entry| (entry, as_calls(&entry.right())))
            .collect();
        let results = judged(&suite, &right).await;
        for result in results.iter().filter(|result| !result.passed) {
            println!("{}: {:?} {:?}", result.scenario, result.error, result.turns);
        }
        let passed = results.iter().filter(|result| result.passed).count();
        assert_eq!(passed, right.len(), "{category}");
        // The summary of the report has the same counts.
        let report = report(&suite, results);
        let summary = &report.summarize_models()[0];
        assert_eq!(compute_share(summary.passed, summary.runs), Some(1.0));
        let counts = summary.counts;
        assert_eq!((counts.right, counts.hallucinated), (counts.judged, 0));
        assert_eq!(counts.unnecessary, 0);

        let wrong: Vec<_> = entries
            .iter()
            .flat_map(|entry| entry.wrong().into_iter().map(move |it| (entry, it)))
            .collect();
        let answers: Vec<_> = wrong
            .iter()
            .map(|(entry, (_, calls))| (*entry, calls.clone()))
            .collect();
        let results = judged(&suite, &answers).await;
        let mut passed = 0;
        for ((entry, (what, _)), result) in wrong.iter().zip(&results) {
            if result.passed {
                passed += 1;
                println!("{}: passes with {what}", entry.id);
            }
        }
        println!(
            "| {category} | {} | {} of {} | {} | {passed} |",
            entries.len(),
            right.len(),
            right.len(),
            wrong.len()
        );
        assert_eq!(passed, 0, "{category}");
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the package bfcl-eval: cargo xtask bfcl"]
async fn the_verdicts_are_those_of_the_benchmarks_own_checker() -> Result<()> {
    let package = Package::found()?;
    println!(
        "| category | answers | right for both | wrong for both | it crashes | other verdicts |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    let mut different = 0;
    for category in CATEGORIES.into_iter().chain(SMALL) {
        let suite = imported(&package, category)?;
        let entries = package.entries(category)?;
        let mut answers = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            answers.push((entry, as_calls(&entry.right())));
            answers.extend(entry.wrong().into_iter().map(|(_, calls)| (entry, calls)));
            // The selected answers are spread over all kinds of changes. The next entry uses other
            // kinds.
            let changed = entry.changed();
            let step = changed.len().div_ceil(CHANGED).max(1);
            let some = changed.into_iter().skip(at % step).step_by(step);
            answers.extend(some.map(|calls| (entry, calls)));
        }
        let asked: Vec<_> = answers
            .iter()
            .map(|(entry, calls)| (*entry, calls.as_slice()))
            .collect();
        let verdicts = package.verdicts(&asked)?;
        let results = judged(&suite, &answers).await;
        let (mut right, mut wrong, mut crashes, mut other) = (0, 0, 0, 0);
        for (((entry, calls), verdict), result) in answers.iter().zip(verdicts).zip(&results) {
            match (verdict, result.passed) {
                (Verdict::Right, true) => right += 1,
                (Verdict::Wrong, false) => wrong += 1,
                (Verdict::Crash, false) => crashes += 1,
                (verdict, passed) => {
                    other += 1;
                    if other <= 5 {
                        let faults = result.turns.iter().flat_map(|turn| &turn.faults);
                        let faults: Vec<_> = faults.collect();
                        println!(
                            "{}: {verdict:?}, here {passed}: {calls:?} {:?} {faults:?}",
                            entry.id, result.error
                        );
                    }
                }
            }
        }
        println!(
            "| {category} | {} | {right} | {wrong} | {crashes} | {other} |",
            answers.len()
        );
        different += other;
    }
    assert_eq!(different, 0);
    Ok(())
}

fn report(suite: &Suite, runs: Vec<RunResult>) -> Report {
    let ran = switchboard_evals::report::SuiteRuns { runs, not_run: 0 };
    Report::new(suite, "test", "2026-11-22T00:00:00Z", ran)
}

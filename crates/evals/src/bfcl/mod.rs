//! Importer of the Berkeley Function Calling Leaderboard (BFCL).
//!
//! The data is in the `PyPI` package `bfcl-eval`: files of questions such as
//! `BFCL_v4_simple_python.json`, and files of the same names with the right calls in
//! `possible_answer/`. [`parse_bfcl_suite`] converts a pair to a suite that declares the functions
//! as tools. The rules are those of version 2026.3.23: `eval_checker/ast_eval/ast_checker.py`,
//! `eval_checker/eval_runner.py` and `model_handler/utils.py`.
//!
//! | category | a run passes if the first response has |
//! |---|---|
//! | `simple_python`, `multiple`, `live_simple`, `live_multiple` | exactly the one right call |
//! | `parallel`, `parallel_multiple`, both with `live_` | exactly the right calls, in any order |
//! | `irrelevance`, `live_irrelevance` | no call, or a call whose input is not a JSON object |
//!
//! A call is right if it names the function, has all required and no unknown parameters, and each
//! argument [matches](crate::suite::BfclParameter). The other categories are rejected: they need
//! programs of the benchmark, or check only that there is a call.
//!
//! Models receive the same functions as from the benchmark with function calling. Types are mapped
//! to JSON Schema (`dict` to `object`, `float` to `number`, `tuple` to `array`, `any` to `string`),
//! and descriptions have the benchmark's remarks on Python syntax and float values. Provider
//! adapters replace dots in names where necessary; calls are scored by the original names.
//!
//! # Differences between this importer (here) and the benchmark (there)
//!
//! - The benchmark parses calls from the text of models without function calling. Here the adapters
//!   find such calls.
//! - Tool input that is `null` or an empty text has no arguments here, and is malformed there.
//! - The temperature is 0.001 there, and the configured one here.
//! - A failed request never passes here. There it passes as a response without calls.
//! - Whole numbers beyond 64 bits are floats here.
//! - Where the benchmark's checker crashes on the benchmark's own data, no call is right here.

mod benchmark_entry;
mod schema;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::suite::{Suite, Thresholds};
use benchmark_entry::{BenchmarkAnswer, BenchmarkQuestion};

/// An error in the benchmark data. The message names the entry and its problem.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BfclError(String);

/// Converts the texts of a question file and of its answer file to a suite. Each text is JSON Lines
/// or a JSON array. `answers` can be `None` for the categories `irrelevance` and
/// `live_irrelevance`, which expect no calls. Returns an error if an entry is invalid, has an
/// unsupported category or lacks its answer.
///
/// ```
/// let questions = r#"{"id": "simple_python_0",
///     "question": [[{"role": "user", "content": "Factorial of 5?"}]],
///     "function": [{"name": "math.factorial", "description": "n!",
///     "parameters": {"type": "dict", "properties": {"number": {"type": "integer"}},
///     "required": ["number"]}}]}"#.replace('\n', "");
/// let answers = r#"{"id": "simple_python_0",
///     "ground_truth": [{"math.factorial": {"number": [5]}}]}"#.replace('\n', "");
///
/// let suite = switchboard_evals::bfcl::parse_bfcl_suite(&questions, Some(&answers))?;
/// assert_eq!(suite.scenarios[0].tools[0].name, "math.factorial");
/// # Ok::<(), switchboard_evals::bfcl::BfclError>(())
/// ```
pub fn parse_bfcl_suite(questions: &str, answers: Option<&str>) -> Result<Suite, BfclError> {
    let questions: Vec<BenchmarkQuestion> =
        benchmark_entry::parse_benchmark_entries(questions, "question")?;
    let answers: Vec<BenchmarkAnswer> = match answers {
        Some(text) => benchmark_entry::parse_benchmark_entries(text, "answer")?,
        None => Vec::new(),
    };
    let answers: HashMap<&str, &BenchmarkAnswer> =
        answers.iter().map(|it| (it.id.as_str(), it)).collect();
    let mut scenarios = Vec::with_capacity(questions.len());
    let mut kinds: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    for question in &questions {
        if !ids.insert(question.id.as_str()) {
            return Err(question.entry_error("another entry has this id"));
        }
        let scenario = question.to_scenario(answers.get(question.id.as_str()).copied())?;
        if !kinds.contains(&scenario.kind) {
            kinds.push(scenario.kind.clone());
        }
        scenarios.push(scenario);
    }
    Ok(Suite {
        title: format!(
            "Berkeley Function Calling Leaderboard: {}",
            kinds.join(", ")
        ),
        models: Vec::new(),
        recipe: None,
        servers: None,
        mcp_servers: None,
        files: BTreeMap::new(),
        repetitions: 1,
        thresholds: Thresholds::default(),
        no_tools: false,
        scenarios,
    })
}

#[cfg(test)]
#[path = "bfcl_tests.rs"]
mod tests;

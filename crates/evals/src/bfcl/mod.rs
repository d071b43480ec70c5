//! Suites from the data of the Berkeley Function Calling Leaderboard (BFCL).
//!
//! The `PyPI` package `bfcl-eval` carries the data: files of questions such as `BFCL_v4_simple_python.json`, and in
//! `possible_answer/` files of the same names with the right calls. [`read`] makes a suite of such a pair, with the
//! functions as tools that the evaluation declares and answers itself. Facts here are those of version 2026.3.23:
//! `eval_checker/ast_eval/ast_checker.py`, `eval_checker/eval_runner.py` and `model_handler/utils.py`.
//!
//! | category | a run passes if the first answer has |
//! |---|---|
//! | `simple_python`, `multiple`, `live_simple`, `live_multiple` | exactly the one right call |
//! | `parallel`, `parallel_multiple`, and these of `live` | exactly the right calls, in any order |
//! | `irrelevance`, `live_irrelevance` | no call, or one whose input cannot be read |
//!
//! A call is right if it names the function, leaves out no required parameter, has none that the answers do not know,
//! and each argument [fits](Parameter). All others of the benchmark's categories are refused: they need its own
//! programs (Java and JavaScript texts, several turns, memory, web search), or judge nothing but that there is a call.
//!
//! What a model reads is what the benchmark sends through an API with function calling: the types are mapped to
//! those of JSON Schema (`dict` to `object`, `float` to `number`, `tuple` to `array`, `any` to `string`), and the
//! descriptions get its remarks on Python and on numbers. Dots in names are replaced by each provider's adapter where
//! the wire takes none; calls are judged by the original names.
//!
//! # Where it is not the same
//!
//! - The benchmark parses calls out of an answer's text itself for models without function calling; here they come
//!   through an adapter as they always do, also those that an adapter finds in the text.
//! - A call whose input is `null` or an empty text is read as one without arguments; there it cannot be read.
//! - The benchmark sets the temperature to 0.001; here it is what the configuration, the recipe or the suite says.
//! - A run that failed (no network, a key that is not accepted) never passes; there, a failed request passes as an
//!   answer without a call in `irrelevance`.
//! - Whole numbers beyond 64 bits are read as fractions.
//! - Where its checker would crash on its own data, nothing is right.

mod entry;
mod schema;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use crate::suite::{Parameter, Type};

use crate::suite::{Suite, Thresholds};
use entry::{Answer, Question};

/// What is wrong with entries.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BfclError {
    /// No entry.
    #[error("the {file} file has no entry")]
    Empty {
        /// `question` or `answer`.
        file: &'static str,
    },
    /// It is no JSON, or an entry is of another form.
    #[error("entry {number} of the {file} file: {fault}")]
    Form {
        /// `question` or `answer`.
        file: &'static str,
        /// From 1.
        number: usize,
        /// What is wrong.
        fault: String,
    },
    /// The category, which the id tells, is none of those that are imported.
    #[error(
        "`{id}` is of the category `{category}`, which is not imported; there are: {}",
        entry::KNOWN
    )]
    Category {
        /// The entry.
        id: String,
        /// Its category.
        category: String,
    },
    /// The right calls are needed and not there.
    #[error(
        "there is no answer to `{id}`: entries of `{category}` need the file of the same name in `possible_answer`"
    )]
    NoAnswer {
        /// The entry.
        id: String,
        /// Its category.
        category: String,
    },
    /// What cannot be meant.
    #[error("`{id}`: {reason}")]
    Meaning {
        /// The entry.
        id: String,
        /// What is wrong.
        reason: String,
    },
}

/// Makes a suite of the text of a question file and of the answer file that belongs to it; `irrelevance` has none.
/// Both are JSON Lines or a JSON array.
///
/// ```
/// let questions = r#"{"id": "simple_python_0", "question": [[{"role": "user", "content": "Factorial of 5?"}]],
///     "function": [{"name": "math.factorial", "description": "n!", "parameters": {"type": "dict",
///     "properties": {"number": {"type": "integer"}}, "required": ["number"]}}]}"#.replace('\n', "");
/// let answers = r#"{"id": "simple_python_0", "ground_truth": [{"math.factorial": {"number": [5]}}]}"#;
///
/// let suite = switchboard_evals::bfcl::read(&questions, Some(answers))?;
/// assert_eq!(suite.scenarios[0].tools[0].name, "math.factorial");
/// # Ok::<(), switchboard_evals::bfcl::BfclError>(())
/// ```
pub fn read(questions: &str, answers: Option<&str>) -> Result<Suite, BfclError> {
    let questions: Vec<Question> = entry::entries(questions, "question")?;
    let answers: Vec<Answer> = match answers {
        Some(text) => entry::entries(text, "answer")?,
        None => Vec::new(),
    };
    let answers: HashMap<&str, &Answer> = answers.iter().map(|it| (it.id.as_str(), it)).collect();
    let mut scenarios = Vec::with_capacity(questions.len());
    let mut kinds: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    for question in &questions {
        if !ids.insert(question.id.as_str()) {
            return Err(question.wrong("another entry has this id"));
        }
        let scenario = question.scenario(answers.get(question.id.as_str()).copied())?;
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
        scenarios,
    })
}

#[cfg(test)]
#[path = "bfcl_tests.rs"]
mod tests;

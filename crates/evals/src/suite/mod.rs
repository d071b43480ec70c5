//! What is to be measured: scenarios with what a good run of them does.
//!
//! A suite is a JSON or YAML document. Its fields and those of all its parts are checked: one that is not known
//! is an error that names its place.
//!
//! ```yaml
//! title: Customer service
//! models: [offline/planner]          # those of the command line come instead
//! recipe: customer_service           # for every scenario that names no other
//! repetitions: 2
//! thresholds: {passed: 0.9, accuracy: 0.9, hallucinated: 0}
//! scenarios:
//!   - name: The customer exists
//!     kind: entity exists
//!     turns:
//!       - say: What is the account value of customer 42?
//!         calls:
//!           - tool: calculate_account_value
//!             input: {customer_id: 42}
//!         forbidden: [create_support_ticket]
//!         answer: {contains: ["530.19"]}
//! ```

mod answer_check;
mod assignment;
mod bfcl_parameter;
mod declared_tools;
mod matcher;
mod message;
mod python_value;
mod redacted_match;
mod scoring_rules;
mod tool_pattern;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_domain::ModelId;

pub use answer_check::AnswerCheck;
pub(crate) use assignment::pairs;
pub use bfcl_parameter::{Parameter, Type};
pub use declared_tools::DECLARED;
pub use matcher::{InvalidMatcher, Matcher};
pub use message::{Said, Speaker};
pub(crate) use redacted_match::{Fit, may_have_fitted};
pub use scoring_rules::Scoring;
pub(crate) use tool_pattern::{Forbidden, is_own_name};

/// Scenarios that are run and judged together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// What it is about, for people.
    #[serde(default)]
    pub title: String,
    /// The models to ask, unless others are named when it is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelId>,
    /// The recipe of every scenario that names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The only servers whose tools are there; all that are configured if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Servers that are run for this suite instead of the configured ones: what stands under `mcp_servers` of a
    /// configuration. This crate does not look into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Map<String, Value>>,
    /// Text files that are there for these servers, by their paths in a folder of the evaluation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// How often each scenario is run with each model. 1.
    #[serde(default = "once")]
    pub repetitions: u32,
    /// What the result must reach.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
}

/// What the result must reach, as shares from 0 to 1; what is left out is not asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Of the runs, those that did all that was expected: at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<f64>,
    /// Of the calls, those that were right: at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Of the calls, hallucinated ones: at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hallucinated: Option<f64>,
    /// Of the calls, unnecessary ones: at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnecessary: Option<f64>,
}

/// One conversation and what is expected of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, of which there is one.
    pub name: String,
    /// What kind of situation it is, such as `entity missing`; reports count by it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its own recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// Its own servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Whether each of its conversations has servers and files of its own, which are started for it: for scenarios
    /// that change something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh_servers: bool,
    /// Tools that are declared and answered by the evaluation itself: the model's calls of them are judged, and
    /// nothing runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<DeclaredTool>,
    /// Fields of the run: `max_steps`, `tool_choice`, `temperature` and what else a request may have.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// What was said before the first turn, such as instructions of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Said>,
    /// What is said to the model, one after the other in one conversation.
    pub turns: Vec<Turn>,
}

/// A tool without a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredTool {
    /// Its name, of which there is one: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its input.
    #[serde(default = "any_object")]
    pub input_schema: Value,
    /// What every call of it gives.
    #[serde(default = "done")]
    pub result: Value,
}

/// Something that is said, and what is expected before the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What is said.
    pub say: String,
    /// The calls that are right; an empty list expects none. Left out, no call is right or wrong, but for those that
    /// are forbidden and those that nobody could make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<ExpectedCall>>,
    /// Whether the calls may come in any order. By default they come in the order given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_order: bool,
    /// Tools that must not be called, as `tool` or `server/tool`. In both `*` stands for any characters or none and
    /// `?` for one; capitals count. One that no tool of the run has is a fault: it would forbid nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
    /// What the answer must be like.
    #[serde(default, skip_serializing_if = "AnswerCheck::is_empty")]
    pub answer: AnswerCheck,
    /// By whose rules the calls are judged.
    #[serde(default, skip_serializing_if = "Scoring::is_default")]
    pub scoring: Scoring,
}

/// A call that is right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// The tool's own name.
    pub tool: String,
    /// The server, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What each argument must be like.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input: Map<String, Value>,
    /// Whether an argument that is not named here is wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exactly: bool,
    /// Whether it is as right to leave the call out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Calls that are as right in its place. Only this call itself can be optional and have others in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<ExpectedCall>,
}

fn once() -> u32 {
    1
}

fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

fn done() -> Value {
    Value::String("done".to_owned())
}

/// What is wrong with a suite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// A field is missing, not known or of another type.
    #[error("{0}")]
    Shape(String),
    /// Something that reads well and cannot be meant.
    #[error("{place}: {reason}")]
    Meaning {
        /// The place, such as `scenarios[2].turns[0]`.
        place: String,
        /// What is wrong and the way out.
        reason: String,
    },
}

/// More runs than this are a mistake in a number.
const MOST_REPETITIONS: u32 = 1_000;

impl Suite {
    /// Reads a suite.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_evals::suite::Suite;
    ///
    /// let suite = Suite::read(json!({"scenarios": [{"name": "Hello", "turns": [{"say": "Hello!", "calls": []}]}]}))?;
    /// assert_eq!(suite.scenarios[0].turns[0].calls.as_deref(), Some(&[][..]));
    /// # Ok::<(), switchboard_evals::suite::SuiteError>(())
    /// ```
    pub fn read(value: Value) -> Result<Self, SuiteError> {
        let suite: Self =
            serde_json::from_value(value).map_err(|fault| SuiteError::Shape(fault.to_string()))?;
        suite.check()?;
        Ok(suite)
    }

    /// Whether it can be meant. [`read`](Self::read) does it too; for a suite that was read in another way, or changed.
    pub fn check(&self) -> Result<(), SuiteError> {
        let wrong = |place: String, reason: &str| {
            Err(SuiteError::Meaning {
                place,
                reason: reason.to_owned(),
            })
        };
        if self.scenarios.is_empty() {
            return wrong(
                "scenarios".to_owned(),
                "there is none; each needs a name and turns",
            );
        }
        if self.repetitions == 0 || self.repetitions > MOST_REPETITIONS {
            return wrong("repetitions".to_owned(), "must be from 1 to 1000");
        }
        let Thresholds {
            passed,
            accuracy,
            hallucinated,
            unnecessary,
        } = self.thresholds;
        for (name, share) in [
            ("passed", passed),
            ("accuracy", accuracy),
            ("hallucinated", hallucinated),
            ("unnecessary", unnecessary),
        ] {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return wrong(format!("thresholds.{name}"), "is a share, from 0 to 1");
            }
        }
        for name in self.files.keys() {
            let mut parts = Path::new(name).components();
            let is_inside = parts.all(|part| matches!(part, Component::Normal(_)));
            if name.is_empty() || !is_inside || name.contains('\\') {
                return wrong(
                    format!("files.{name}"),
                    "is a path below the folder of the suite's files, with `/` between its parts",
                );
            }
        }
        let mut names = BTreeSet::new();
        for (at, scenario) in self.scenarios.iter().enumerate() {
            let place = format!("scenarios[{at}]");
            if scenario.name.trim().is_empty() {
                return wrong(format!("{place}.name"), "is empty");
            }
            if !names.insert(scenario.name.as_str()) {
                return wrong(format!("{place}.name"), "another scenario has this name");
            }
            if scenario.fresh_servers && !scenario.tools.is_empty() {
                return wrong(
                    format!("{place}.fresh_servers"),
                    "tools that the scenario declares take the place of all servers: leave one of both out",
                );
            }
            if scenario.turns.is_empty() {
                return wrong(
                    format!("{place}.turns"),
                    "there is none: what is said to the model?",
                );
            }
            for (number, turn) in scenario.turns.iter().enumerate() {
                turn.check(&format!("{place}.turns[{number}]"))?;
            }
            declared_tools::check(scenario, &place)?;
        }
        Ok(())
    }
}

impl Turn {
    fn check(&self, place: &str) -> Result<(), SuiteError> {
        if self.say.trim().is_empty() {
            let (place, reason) = (format!("{place}.say"), "is empty".to_owned());
            return Err(SuiteError::Meaning { place, reason });
        }
        for (at, call) in self.calls.iter().flatten().enumerate() {
            call.check(&format!("{place}.calls[{at}]"))?;
        }
        for (at, pattern) in self.forbidden.iter().enumerate() {
            if let Some(fault) = Forbidden::fault(pattern) {
                let (place, reason) = (format!("{place}.forbidden[{at}]"), fault.to_owned());
                return Err(SuiteError::Meaning { place, reason });
            }
        }
        self.answer
            .check()
            .map_err(|(field, reason)| SuiteError::Meaning {
                place: format!("{place}.answer.{field}"),
                reason,
            })
    }
}

impl ExpectedCall {
    /// The tool as people know it, with its server if that matters.
    pub(crate) fn name(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}/{}", self.tool),
            None => self.tool.clone(),
        }
    }

    fn check(&self, place: &str) -> Result<(), SuiteError> {
        if self.tool.trim().is_empty() {
            let (place, reason) = (format!("{place}.tool"), "is empty".to_owned());
            return Err(SuiteError::Meaning { place, reason });
        }
        for (name, wanted) in &self.input {
            Matcher::read(wanted).map_err(|fault| SuiteError::Meaning {
                place: format!("{place}.input.{name}"),
                reason: fault.to_string(),
            })?;
        }
        for (at, other) in self.or.iter().enumerate() {
            let place = format!("{place}.or[{at}]");
            if other.optional || !other.or.is_empty() {
                let reason =
                    "neither `optional` nor `or` can stand here: they are said of the call itself"
                        .to_owned();
                return Err(SuiteError::Meaning { place, reason });
            }
            other.check(&place)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;

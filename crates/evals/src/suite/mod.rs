//! Suites: scenarios with expected calls and answers.
//!
//! A suite is a JSON or YAML document. An unknown field is an error with its path.
//!
//! ```yaml
//! title: Customer service
//! models: [offline/planner]          # the command line overrides them
//! recipe: customer_service           # for scenarios without one
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
mod bfcl_parameter;
mod bipartite;
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
pub use bfcl_parameter::{BfclParameter, BfclType};
pub(crate) use bipartite::maximum_matching;
pub use declared_tools::DECLARED_SERVER;
pub use matcher::Matcher;
pub use message::{EarlierMessage, MessageRole};
pub(crate) use redacted_match::MatchResult;
pub use scoring_rules::ScoringRules;
pub(crate) use tool_pattern::{ToolPattern, is_builtin_tool};

/// Scenarios that are run and scored together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The title in reports.
    #[serde(default)]
    pub title: String,
    /// The evaluated models, unless the caller names others.
    #[serde(default)]
    pub models: Vec<ModelId>,
    /// The recipe of scenarios without one.
    pub recipe: Option<String>,
    /// The servers whose tools are offered. The default is all servers.
    pub servers: Option<Vec<String>>,
    /// Servers that replace the configured ones, in the format of `mcp_servers` of a configuration.
    /// This crate does not read them.
    pub mcp_servers: Option<Map<String, Value>>,
    /// Text files for these servers, by their paths in a temporary folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Number of runs of each scenario with each model. The default is 1.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// The thresholds of the results.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
}

/// Thresholds as shares from 0 to 1, all optional.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Minimum share of passed runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<f64>,
    /// Minimum share of right calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Maximum share of hallucinated calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hallucinated: Option<f64>,
    /// Maximum share of unnecessary calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnecessary: Option<f64>,
}

/// One conversation with its expectations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The unique name.
    pub name: String,
    /// The kind of situation, such as `entity missing`. Reports group results by it.
    #[serde(default)]
    pub kind: String,
    /// Overrides the recipe of the suite.
    pub recipe: Option<String>,
    /// Overrides the servers of the suite.
    pub servers: Option<Vec<String>>,
    /// Whether separate servers and files are created for each conversation, for scenarios that
    /// change data.
    #[serde(default)]
    pub fresh_servers: bool,
    /// Tools without a server. Calls return the declared results.
    #[serde(default)]
    pub tools: Vec<DeclaredTool>,
    /// Parameters of the run, such as `max_steps`, `tool_choice` and `temperature`.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Messages before the first turn, such as system instructions.
    #[serde(default)]
    pub before: Vec<EarlierMessage>,
    /// The user messages in order.
    pub turns: Vec<Turn>,
}

/// A tool without a server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredTool {
    /// The unique name: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The description for the model.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of the input.
    #[serde(default = "any_object")]
    pub input_schema: Value,
    /// The result of every call.
    #[serde(default = "done")]
    pub result: Value,
}

/// A user message with the expected calls and answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The user message.
    pub say: String,
    /// The expected calls. With an empty list, no call is right. Without a list, only forbidden and
    /// impossible calls are wrong.
    pub calls: Option<Vec<ExpectedCall>>,
    /// Whether the order of the calls is ignored.
    #[serde(default)]
    pub any_order: bool,
    /// Forbidden tools as `tool` or `server/tool`, case-sensitive. `*` matches any text and `?` one
    /// character. A pattern that matches no tool of the run is a fault.
    #[serde(default)]
    pub forbidden: Vec<String>,
    /// The checks of the answer.
    #[serde(default)]
    pub answer: AnswerCheck,
    /// The rules of scoring.
    #[serde(default)]
    pub scoring: ScoringRules,
}

/// An expected call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// The tool's own name.
    pub tool: String,
    /// The server. The default is any server.
    pub server: Option<String>,
    /// The expected arguments, see [`Matcher`].
    #[serde(default)]
    pub input: Map<String, Value>,
    /// Whether additional arguments are wrong.
    #[serde(default)]
    pub exactly: bool,
    /// Whether the call may be missing.
    #[serde(default)]
    pub optional: bool,
    /// Alternative calls. They cannot be optional and have no alternatives themselves.
    #[serde(default)]
    pub or: Vec<ExpectedCall>,
}

fn one() -> u32 {
    1
}

fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

fn done() -> Value {
    Value::String("done".to_owned())
}

/// An error in a suite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// A field is missing, unknown or has the wrong type.
    #[error("{0}")]
    Shape(String),
    /// A value has no meaning.
    #[error("{place}: {reason}")]
    Meaning {
        /// The path, such as `scenarios[2].turns[0]`.
        place: String,
        /// The problem and its remedy.
        reason: String,
    },
}

/// Maximum number of repetitions.
const MAX_REPETITIONS: u32 = 1_000;

impl SuiteError {
    fn meaning(place: String, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Meaning { place, reason }
    }
}

impl Suite {
    /// Reads and checks a suite.
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
            serde_json::from_value(value).map_err(|error| SuiteError::Shape(error.to_string()))?;
        suite.check()?;
        Ok(suite)
    }

    /// Checks a suite. [`read`](Self::read) does this too.
    pub fn check(&self) -> Result<(), SuiteError> {
        let wrong = |place: String, reason: &str| Err(SuiteError::meaning(place, reason));
        if self.scenarios.is_empty() {
            return wrong(
                "scenarios".to_owned(),
                "the suite has no scenario: add one with a name and turns",
            );
        }
        if self.repetitions == 0 || self.repetitions > MAX_REPETITIONS {
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
                return wrong(format!("thresholds.{name}"), "must be a share from 0 to 1");
            }
        }
        for name in self.files.keys() {
            let mut parts = Path::new(name).components();
            let is_inside = parts.all(|part| matches!(part, Component::Normal(_)));
            if name.is_empty() || !is_inside || name.contains('\\') {
                return wrong(
                    format!("files.{name}"),
                    "must be a relative path without `..`, with `/` as separator",
                );
            }
        }
        let mut names = BTreeSet::new();
        for (at, scenario) in self.scenarios.iter().enumerate() {
            let place = format!("scenarios[{at}]");
            if scenario.name.trim().is_empty() {
                return wrong(format!("{place}.name"), "must not be empty");
            }
            if !names.insert(scenario.name.as_str()) {
                return wrong(format!("{place}.name"), "another scenario has this name");
            }
            if scenario.fresh_servers && !scenario.tools.is_empty() {
                return wrong(
                    format!("{place}.fresh_servers"),
                    "declared `tools` replace all servers: remove one of the two fields",
                );
            }
            if scenario.turns.is_empty() {
                return wrong(
                    format!("{place}.turns"),
                    "the scenario has no turn: add one with `say`",
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
            return Err(SuiteError::meaning(
                format!("{place}.say"),
                "must not be empty",
            ));
        }
        for (at, call) in self.calls.iter().flatten().enumerate() {
            call.check(&format!("{place}.calls[{at}]"))?;
        }
        for (at, pattern) in self.forbidden.iter().enumerate() {
            if let Some(problem) = ToolPattern::problem(pattern) {
                return Err(SuiteError::meaning(
                    format!("{place}.forbidden[{at}]"),
                    problem,
                ));
            }
        }
        let checked = self.answer.check();
        checked.map_err(|(field, reason)| {
            SuiteError::meaning(format!("{place}.answer.{field}"), reason)
        })
    }
}

impl ExpectedCall {
    /// Returns the name for people, with the server if it is given.
    pub(crate) fn name(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}/{}", self.tool),
            None => self.tool.clone(),
        }
    }

    fn check(&self, place: &str) -> Result<(), SuiteError> {
        if self.tool.trim().is_empty() {
            return Err(SuiteError::meaning(
                format!("{place}.tool"),
                "must not be empty",
            ));
        }
        for (name, wanted) in &self.input {
            Matcher::read(wanted)
                .map_err(|reason| SuiteError::meaning(format!("{place}.input.{name}"), reason))?;
        }
        for (at, other) in self.or.iter().enumerate() {
            let place = format!("{place}.or[{at}]");
            if other.optional || !other.or.is_empty() {
                let reason =
                    "an alternative cannot have `optional` or `or`: set them on the call itself";
                return Err(SuiteError::meaning(place, reason));
            }
            other.check(&place)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;

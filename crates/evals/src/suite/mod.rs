//! Suites: scenarios with expected calls and answers.
//!
//! A suite is a JSON or YAML document. An unknown field is an error.
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
mod argument_matcher;
mod bfcl_parameter;
mod bipartite_matching;
mod declared_tools;
mod earlier_message;
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
pub use argument_matcher::Matcher;
pub(crate) use argument_matcher::values_match;
pub use bfcl_parameter::{BfclParameter, BfclType};
pub(crate) use bipartite_matching::find_maximum_matching;
pub use declared_tools::DECLARED_SERVER;
pub use earlier_message::{EarlierMessage, MessageRole};
pub(crate) use redacted_match::MatchResult;
pub use scoring_rules::ScoringRules;
pub(crate) use tool_pattern::{ToolNames, ToolPattern};

/// A suite: scenarios that are run with one or more models and scored together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Title of the suite, which reports show.
    #[serde(default)]
    pub title: String,
    /// Models to evaluate, unless the command line or another caller selects models.
    #[serde(default)]
    pub models: Vec<ModelId>,
    /// Name of the recipe for scenarios that do not name a recipe themselves.
    pub recipe: Option<String>,
    /// Names of the MCP servers whose tools the model may call. The default is all servers.
    pub servers: Option<Vec<String>>,
    /// MCP servers that replace the configured servers, in the format of `mcp_servers` in the
    /// configuration. The caller of this crate starts these servers.
    pub mcp_servers: Option<Map<String, Value>>,
    /// Contents of text files for the suite's MCP servers, by relative path. The caller of this
    /// crate writes the files to a temporary folder before it starts the servers.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Number of runs of each scenario with each model, because answers may vary. The default is 1.
    #[serde(default = "default_repetitions")]
    pub repetitions: u32,
    /// Thresholds that the results of each model must meet.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// Whether the models get no tools. The caller of this crate then offers none. Not a field of
    /// suite files, see [`Suite::remove_tools`].
    #[serde(skip)]
    pub no_tools: bool,
    /// Scenarios to run, at least one.
    pub scenarios: Vec<Scenario>,
}

/// Thresholds for the results of each model, as shares from 0 to 1. All thresholds are optional.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Minimum share of runs that meet all expectations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<f64>,
    /// Minimum share of right calls among the calls that were expected or made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Maximum share of hallucinated calls among all tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hallucinated: Option<f64>,
    /// Maximum share of unnecessary calls among all tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnecessary: Option<f64>,
}

/// A scenario: one conversation with the tool calls and answers that the model should produce.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario, which no other scenario of the suite has.
    pub name: String,
    /// Kind of situation that the scenario tests, such as `entity missing`. Reports group the
    /// results by kind.
    #[serde(default)]
    pub kind: String,
    /// Name of the recipe (prompt, tools and strategy) for this scenario. It replaces the recipe of
    /// the suite.
    pub recipe: Option<String>,
    /// Names of the MCP servers for this scenario. They replace the servers of the suite.
    pub servers: Option<Vec<String>>,
    /// Whether each conversation starts its own MCP servers and gets its own files. This is
    /// necessary if the scenario changes data.
    #[serde(default)]
    pub fresh_servers: bool,
    /// Tools that exist only in this scenario and replace the tools of all servers. Each call
    /// returns the declared result of its tool.
    #[serde(default)]
    pub tools: Vec<DeclaredTool>,
    /// Parameters of the agent's run, such as `max_steps`, `tool_choice` and `temperature`.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Messages that precede the first turn, such as system instructions.
    #[serde(default)]
    pub before: Vec<EarlierMessage>,
    /// Turns of the conversation, each with a user message, in order.
    pub turns: Vec<Turn>,
}

/// A tool that a scenario declares. It exists only in this scenario. No MCP server provides it, and
/// its server name is [`DECLARED_SERVER`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredTool {
    /// Name of the tool, unique in the scenario: 1 to 128 ASCII letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Description of the tool, which the model reads.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the tool's input. The default accepts any object.
    #[serde(default = "default_input_schema")]
    pub input_schema: Value,
    /// Result that every call of the tool returns: a text, or a JSON value that is returned as
    /// text. A JSON object is also the structured content of the result. The default is `done`.
    #[serde(default = "default_tool_result")]
    pub result: Value,
}

/// A turn: a user message with the expected calls and the checks of the answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Text of the user message with which the turn begins.
    pub say: String,
    /// Tool calls that the model should make. If the list is empty, every call is a fault, except
    /// calls of built-in tools. Without a list, only calls of forbidden tools are faults, but
    /// hallucinated calls lower the accuracy. Turns with [`ScoringRules::Bfcl`] are stricter: every
    /// call that is not expected is a fault.
    pub calls: Option<Vec<ExpectedCall>>,
    /// Whether the model may make the expected calls in any order.
    #[serde(default)]
    pub any_order: bool,
    /// Patterns of forbidden tools, as `tool` or `server/tool`, case-sensitive. `*` matches any
    /// text and `?` one character. A pattern that matches no existing tool is a fault of the turn,
    /// or an error in the suite if the scenario declares its tools.
    #[serde(default)]
    pub forbidden: Vec<String>,
    /// Checks of the model's answer in this turn.
    #[serde(default)]
    pub answer: AnswerCheck,
    /// Rules by which the tool calls of this turn are scored.
    #[serde(default)]
    pub scoring: ScoringRules,
}

/// A tool call that the model should make in a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// Name of the tool on its server, without the server name.
    pub tool: String,
    /// Name of the MCP server that provides the tool. By default, any server is accepted.
    pub server: Option<String>,
    /// Matchers for the arguments, by argument name. Their format is described at
    /// [`Matcher`].
    #[serde(default)]
    pub input: Map<String, Value>,
    /// Whether a call is wrong if it has an argument that `input` does not list. By default,
    /// additional arguments are ignored.
    #[serde(default)]
    pub exactly: bool,
    /// Whether the model may omit this call without a fault.
    #[serde(default)]
    pub optional: bool,
    /// Calls that are accepted instead of this call. They cannot be optional or have alternatives.
    #[serde(default)]
    pub or: Vec<ExpectedCall>,
}

fn default_repetitions() -> u32 {
    1
}

fn default_input_schema() -> Value {
    serde_json::json!({"type": "object"})
}

fn default_tool_result() -> Value {
    Value::String("done".to_owned())
}

/// An error in the definition of a suite, such as an unknown field or a number out of range.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// A field of the suite is missing, unknown or has the wrong type. The text is the error
    /// message of `serde_json`.
    #[error("{0}")]
    Shape(String),
    /// The value of a field has the right type but is not valid. The error contains the path of the
    /// field.
    #[error("{place}: {reason}")]
    Meaning {
        /// Path of the invalid field in the suite, such as `scenarios[2].turns[0]`.
        place: String,
        /// Description of the problem that also states how to solve it.
        reason: String,
    },
}

/// Maximum number of repetitions of a scenario. A larger number in a suite is an error.
const MAX_REPETITIONS: u32 = 1_000;

impl SuiteError {
    fn invalid_value(place: String, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Meaning { place, reason }
    }
}

fn suite_error(place: String, reason: impl Into<String>) -> Result<(), SuiteError> {
    Err(SuiteError::invalid_value(place, reason))
}

/// Returns an error for the field at `place` unless its value is valid.
fn require(is_valid: bool, place: String, reason: &str) -> Result<(), SuiteError> {
    if is_valid {
        Ok(())
    } else {
        suite_error(place, reason)
    }
}

impl Suite {
    /// Parses and validates a suite.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_evals::suite::Suite;
    ///
    /// let suite = Suite::parse_suite(json!({
    ///     "scenarios": [{"name": "Hello", "turns": [{"say": "Hello!", "calls": []}]}]
    /// }))?;
    /// assert_eq!(suite.scenarios[0].turns[0].calls.as_deref(), Some(&[][..]));
    /// # Ok::<(), switchboard_evals::suite::SuiteError>(())
    /// ```
    pub fn parse_suite(value: Value) -> Result<Self, SuiteError> {
        let suite: Self =
            serde_json::from_value(value).map_err(|error| SuiteError::Shape(error.to_string()))?;
        suite.validate_suite()?;
        Ok(suite)
    }

    /// Sets `no_tools`, and removes the expectations and thresholds about tool calls. The checks of
    /// answers remain.
    pub fn remove_tools(&mut self) {
        self.no_tools = true;
        self.thresholds = Thresholds {
            passed: self.thresholds.passed,
            ..Thresholds::default()
        };
        for turn in self.scenarios.iter_mut().flat_map(|it| &mut it.turns) {
            turn.calls = None;
            turn.forbidden.clear();
        }
    }

    /// Validates a suite that was built in code or deserialized directly.
    /// [`parse_suite`](Self::parse_suite) also does this.
    pub fn validate_suite(&self) -> Result<(), SuiteError> {
        let reason = "the suite has no scenarios: add one with a name and turns";
        require(!self.scenarios.is_empty(), "scenarios".to_owned(), reason)?;
        let is_valid = (1..=MAX_REPETITIONS).contains(&self.repetitions);
        require(is_valid, "repetitions".to_owned(), "must be from 1 to 1000")?;
        for (name, share) in [
            ("passed", self.thresholds.passed),
            ("accuracy", self.thresholds.accuracy),
            ("hallucinated", self.thresholds.hallucinated),
            ("unnecessary", self.thresholds.unnecessary),
        ] {
            let is_valid = share.is_none_or(|share| (0.0..=1.0).contains(&share));
            let reason = "must be a number from 0 to 1";
            require(is_valid, format!("thresholds.{name}"), reason)?;
        }
        for name in self.files.keys() {
            let mut parts = Path::new(name).components();
            let is_inside = parts.all(|part| matches!(part, Component::Normal(_)));
            let is_valid = !name.is_empty() && is_inside && !name.contains('\\');
            let reason = "must be a relative path without `..`, with `/` as separator";
            require(is_valid, format!("files.{name}"), reason)?;
        }
        let mut names = BTreeSet::new();
        for (at, scenario) in self.scenarios.iter().enumerate() {
            let place = format!("scenarios[{at}]");
            let has_name = !scenario.name.trim().is_empty();
            require(has_name, format!("{place}.name"), "must not be empty")?;
            let is_unique = names.insert(scenario.name.as_str());
            let reason = "another scenario has this name";
            require(is_unique, format!("{place}.name"), reason)?;
            let is_valid = !scenario.fresh_servers || scenario.tools.is_empty();
            let reason = "declared `tools` replace all servers: remove one of the two fields";
            require(is_valid, format!("{place}.fresh_servers"), reason)?;
            let reason = "the scenario has no turns: add one with `say`";
            require(!scenario.turns.is_empty(), format!("{place}.turns"), reason)?;
            for (number, turn) in scenario.turns.iter().enumerate() {
                turn.validate_turn(&format!("{place}.turns[{number}]"))?;
            }
            declared_tools::check_declared_tools(scenario, &place)?;
        }
        Ok(())
    }
}

impl Turn {
    fn validate_turn(&self, place: &str) -> Result<(), SuiteError> {
        let has_text = !self.say.trim().is_empty();
        require(has_text, format!("{place}.say"), "must not be empty")?;
        for (at, call) in self.calls.iter().flatten().enumerate() {
            call.validate_call(&format!("{place}.calls[{at}]"))?;
        }
        for (at, pattern) in self.forbidden.iter().enumerate() {
            if let Some(problem) = ToolPattern::pattern_problem(pattern) {
                return suite_error(format!("{place}.forbidden[{at}]"), problem);
            }
        }
        let checked = self.answer.validate_fields();
        checked.map_err(|(field, reason)| {
            SuiteError::invalid_value(format!("{place}.answer.{field}"), reason)
        })
    }
}

impl ExpectedCall {
    /// Returns the name of the expected tool for messages: `server/tool` if the call must use a
    /// certain server, or else `tool`.
    pub(crate) fn expected_tool_name(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}/{}", self.tool),
            None => self.tool.clone(),
        }
    }

    fn validate_call(&self, place: &str) -> Result<(), SuiteError> {
        let has_tool = !self.tool.trim().is_empty();
        require(has_tool, format!("{place}.tool"), "must not be empty")?;
        for (name, wanted) in &self.input {
            Matcher::parse_matcher(wanted).map_err(|reason| {
                SuiteError::invalid_value(format!("{place}.input.{name}"), reason)
            })?;
        }
        for (at, other) in self.or.iter().enumerate() {
            let place = format!("{place}.or[{at}]");
            let is_valid = !other.optional && other.or.is_empty();
            let reason =
                "an alternative cannot have `optional` or `or`: set them on the call itself";
            require(is_valid, place.clone(), reason)?;
            other.validate_call(&place)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;

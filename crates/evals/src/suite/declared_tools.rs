//! Validates the tools that a scenario declares.

use serde_json::Value;

use super::{
    DeclaredTool, Scenario, ScoringRules, SuiteError, require, suite_error, tool_pattern::ToolNames,
};

/// Server name of the tools that a scenario declares, in patterns, expected calls and reports. No
/// MCP server has these tools.
pub const DECLARED_SERVER: &str = "scenario";

/// Maximum length in characters of a tool name, as the Model Context Protocol specifies.
const MAX_NAME_CHARS: usize = 128;

/// Validates the tools that a scenario declares. If it declares any, also validates that its turns
/// neither require nor forbid other tools.
pub(super) fn check_declared_tools(scenario: &Scenario, place: &str) -> Result<(), SuiteError> {
    let mut names = ToolNames::new();
    for (at, tool) in scenario.tools.iter().enumerate() {
        let place = format!("{place}.tools[{at}]");
        tool.validate_tool(&place)?;
        let is_unique = names.insert((Some(DECLARED_SERVER.to_owned()), tool.name.clone()));
        let reason = "another tool has this name";
        require(is_unique, format!("{place}.name"), reason)?;
    }
    // Turns with `ScoringRules::Bfcl` are not checked, because the benchmark data may expect calls
    // of functions that it does not declare.
    let turns = scenario.turns.iter().enumerate();
    let turns = turns.filter(|_| !names.is_empty());
    for (at, turn) in turns.filter(|(_, turn)| turn.scoring == ScoringRules::Switchboard) {
        if let Some((field, problem)) = turn.find_missing_tools(&names).into_iter().next() {
            let names: Vec<&str> = names.iter().map(|(_, tool)| tool.as_str()).collect();
            let names = names.join("`, `");
            let reason = format!("{problem}: the scenario's tools are `{names}`");
            return suite_error(format!("{place}.turns[{at}].{field}"), reason);
        }
    }
    Ok(())
}

impl DeclaredTool {
    fn validate_tool(&self, place: &str) -> Result<(), SuiteError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let has_valid_length = (1..=MAX_NAME_CHARS).contains(&self.name.len());
        let is_valid = has_valid_length && self.name.chars().all(is_name);
        let reason = "must have 1 to 128 letters, digits, `_`, `-` and `.`";
        require(is_valid, format!("{place}.name"), reason)?;
        let place = format!("{place}.input_schema");
        let Value::Object(schema) = &self.input_schema else {
            let reason = "must be the JSON Schema of an object, such as {type: object}";
            return suite_error(place, reason);
        };
        let is_object = schema.get("type").is_none_or(|it| it == "object");
        require(is_object, format!("{place}.type"), "must be `object`")?;
        match schema.get("properties") {
            Some(Value::Object(properties)) => {
                for (name, it) in properties {
                    let reason = "must be a JSON Schema, such as {type: string}";
                    let is_schema = it.is_object() || it.is_boolean();
                    require(is_schema, format!("{place}.properties.{name}"), reason)?;
                }
            }
            Some(_) => {
                return suite_error(format!("{place}.properties"), "must be a map of schemas");
            }
            None => {}
        }
        match schema.get("required") {
            Some(Value::Array(names)) if names.iter().all(Value::is_string) => Ok(()),
            None => Ok(()),
            Some(_) => suite_error(format!("{place}.required"), "must be a list of names"),
        }
    }
}

//! What can be known of a scenario whose tools it declares itself.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    DeclaredTool, ExpectedCall, Scenario, Scoring, SuiteError, Turn,
    tool_pattern::{Forbidden, is_own_name},
};

/// The server that tools of a scenario are said to be of.
pub const DECLARED: &str = "scenario";

/// Characters of a name, as the Model Context Protocol has them.
const LONGEST: usize = 128;

/// Whether these tools can be declared, and the turns speak of no others.
pub(super) fn check(scenario: &Scenario, place: &str) -> Result<(), SuiteError> {
    let mut names = BTreeSet::new();
    for (at, tool) in scenario.tools.iter().enumerate() {
        let place = format!("{place}.tools[{at}]");
        tool.check(&place)?;
        if !names.insert(tool.name.as_str()) {
            return wrong(format!("{place}.name"), "another tool has this name");
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let turns = scenario.turns.iter().enumerate();
    // The benchmark's questions come with the tools that belong to them.
    for (at, turn) in turns.filter(|(_, turn)| turn.scoring == Scoring::Switchboard) {
        speaks_of(turn, &names, &format!("{place}.turns[{at}]"))?;
    }
    Ok(())
}

fn speaks_of(turn: &Turn, names: &BTreeSet<&str>, place: &str) -> Result<(), SuiteError> {
    let there = || {
        let names: Vec<&str> = names.iter().copied().collect();
        format!("the scenario's tools are `{}`", names.join("`, `"))
    };
    for (at, call) in turn.calls.iter().flatten().enumerate() {
        for call in std::iter::once(call).chain(&call.or) {
            if !is_one_of(call, names) {
                let meant = call.name();
                let reason = format!("there is no `{meant}`: {}", there());
                return wrong(format!("{place}.calls[{at}].tool"), reason);
            }
        }
    }
    for (at, text) in turn.forbidden.iter().enumerate() {
        let pattern = Forbidden::of(text);
        let mut all = names.iter();
        if !all.any(|tool| pattern.names(Some(DECLARED), tool)) && !is_own_name(&pattern) {
            let reason = format!("`{text}` forbids nothing: {}", there());
            return wrong(format!("{place}.forbidden[{at}]"), reason);
        }
    }
    Ok(())
}

fn is_one_of(call: &ExpectedCall, names: &BTreeSet<&str>) -> bool {
    match call.server.as_deref() {
        None => names.contains(&*call.tool) || is_own_name(&Forbidden::of(&call.tool)),
        Some(server) => server == DECLARED && names.contains(&*call.tool),
    }
}

impl DeclaredTool {
    fn check(&self, place: &str) -> Result<(), SuiteError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if self.name.is_empty() || self.name.len() > LONGEST || !self.name.chars().all(is_name) {
            return wrong(
                format!("{place}.name"),
                "is up to 128 letters, digits, `_`, `-` and `.`",
            );
        }
        let place = format!("{place}.input_schema");
        let Value::Object(schema) = &self.input_schema else {
            return wrong(
                place,
                "is a JSON Schema of an object, such as {type: object}",
            );
        };
        if schema.get("type").is_some_and(|it| it != "object") {
            return wrong(format!("{place}.type"), "is `object`: input has names");
        }
        match schema.get("properties") {
            Some(Value::Object(properties)) => {
                let mut schemas = properties.iter();
                let odd = schemas.find(|(_, it)| !(it.is_object() || it.is_boolean()));
                if let Some((name, _)) = odd {
                    return wrong(
                        format!("{place}.properties.{name}"),
                        "is a JSON Schema, such as {type: string}",
                    );
                }
            }
            Some(_) => return wrong(format!("{place}.properties"), "is a map of schemas"),
            None => {}
        }
        match schema.get("required") {
            Some(Value::Array(names)) if names.iter().all(Value::is_string) => Ok(()),
            None => Ok(()),
            Some(_) => wrong(format!("{place}.required"), "is a list of names"),
        }
    }
}

fn wrong(place: String, reason: impl Into<String>) -> Result<(), SuiteError> {
    let reason = reason.into();
    Err(SuiteError::Meaning { place, reason })
}

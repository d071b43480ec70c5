//! The file of a suite, for errors that are found after parsing.

use std::fmt;

use anyhow::anyhow;
use serde_json::{Map, Value};

use super::place::Places;

/// The file of a suite and the lines of its parts.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    file: String,
    /// `None` for a suite that is made of other files.
    places: Option<Places>,
    /// The names of all scenarios in file order, including excluded ones.
    scenarios: Vec<String>,
}

impl Origin {
    /// Creates the origin of a text with the scenarios `scenarios`.
    pub(super) fn of(file: &str, text: Option<&str>, scenarios: Vec<String>) -> Self {
        Self {
            file: file.to_owned(),
            places: text.and_then(Places::of),
            scenarios,
        }
    }

    /// Returns the path of a field of a scenario.
    pub(crate) fn in_scenario(&self, name: &str, field: &str) -> String {
        match self.scenarios.iter().position(|it| it == name) {
            Some(at) => format!("scenarios[{at}].{field}"),
            None => format!("scenarios.{field}"),
        }
    }

    /// Creates an error with file, line and path.
    pub(crate) fn error(&self, place: &str, reason: impl fmt::Display) -> anyhow::Error {
        let reason = reason.to_string();
        // Some messages already contain the path.
        let place_said = if reason.starts_with(&format!("`{place}")) {
            String::new()
        } else {
            format!("{place}: ")
        };
        let line = self.places.as_ref().and_then(|it| it.line(place));
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        anyhow!("{}: {line}{place_said}{reason}", self.file)
    }
}

/// Returns the path for an error about servers: the path in the message, else the text with the
/// variable in the message, else the server.
pub(super) fn place_of(message: &str, server: &str, entry: &Map<String, Value>) -> String {
    let quoted = message.split('`').skip(1).step_by(2);
    let own = format!("mcp_servers.{server}");
    for word in quoted {
        if word == own || word.starts_with(&format!("{own}.")) {
            return word.to_owned();
        }
        let mut place = own.clone();
        if entry
            .iter()
            .any(|(name, value)| find_variable(value, word, &format!("{own}.{name}"), &mut place))
        {
            return place;
        }
    }
    own
}

/// Finds the text that contains this variable.
fn find_variable(value: &Value, variable: &str, at: &str, place: &mut String) -> bool {
    match value {
        Value::String(text) => {
            let is_it = text.contains(&format!("${{{variable}"));
            if is_it {
                at.clone_into(place);
            }
            is_it
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .any(|(i, item)| find_variable(item, variable, &format!("{at}[{i}]"), place)),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| find_variable(value, variable, &format!("{at}.{name}"), place)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "\
mcp_servers:
  crm:
    url: https://crm.example/mcp
    headers:
      X-Key: \"${CRM_KEY}\"
  files: {command: files, args: [a, \"${ROOT}\"]}
recipe: nothing
scenarios:
  - {name: One, turns: [{say: x}]}
  - name: Two
    servers: [nowhere]
    turns: [{say: x}]
";

    #[test]
    fn file_line_and_place_are_told() {
        let names = ["One", "Two"].map(str::to_owned).to_vec();
        let origin = Origin::of("a.yaml", Some(TEXT), names);
        for (place, reason, expected) in [
            (
                "recipe",
                "there is none",
                "a.yaml: line 7: recipe: there is none",
            ),
            (
                origin.in_scenario("Two", "servers").as_str(),
                "there is none",
                "a.yaml: line 11: scenarios[1].servers: there is none",
            ),
            (
                "mcp_servers.crm.headers",
                "`mcp_servers.crm.headers` must be a map",
                "a.yaml: line 5: `mcp_servers.crm.headers` must be a map",
            ),
        ] {
            assert_eq!(origin.error(place, reason).to_string(), expected);
        }
        let nowhere = Origin::of("entries", None, Vec::new());
        assert_eq!(
            nowhere.error("recipe", "there is none").to_string(),
            "entries: recipe: there is none"
        );
    }

    #[test]
    fn the_place_that_a_message_is_about_is_found() {
        let entry = json!({"args": ["a", "${ROOT}"], "env": {"KEY": "${KEY:?}"}});
        let entry = entry.as_object().unwrap();
        for (message, place) in [
            ("the variable `ROOT` is not set", "mcp_servers.x.args[1]"),
            ("the variable `KEY` is not set", "mcp_servers.x.env.KEY"),
            (
                "`mcp_servers.x.comand` is no known key",
                "mcp_servers.x.comand",
            ),
            ("a ${ has no closing }", "mcp_servers.x"),
        ] {
            assert_eq!(place_of(message, "x", entry), place, "{message}");
        }
    }
}

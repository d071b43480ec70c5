//! The file of a suite, for errors that are found after parsing.

use std::fmt;

use anyhow::anyhow;

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

#[cfg(test)]
mod tests {
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
}

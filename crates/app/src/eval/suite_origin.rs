//! File name and line numbers of a suite, for errors that are found after parsing.

use std::fmt;

use anyhow::anyhow;

use super::yaml_line_numbers::YamlLineNumbers;

/// The file of a suite and the line numbers of its fields, for error messages.
#[derive(Debug, Default)]
pub(crate) struct SuiteOrigin {
    file: String,
    /// Line numbers of the suite's fields. `None` if the suite was built from several files.
    places: Option<YamlLineNumbers>,
    /// Names of all scenarios in the file, in order, including those that options exclude.
    scenarios: Vec<String>,
}

impl SuiteOrigin {
    /// Creates the origin of a suite from its file name, its text and the names of its scenarios.
    /// Without `text`, error messages contain no line numbers.
    pub(super) fn from_text(file: &str, text: Option<&str>, scenarios: Vec<String>) -> Self {
        Self {
            file: file.to_owned(),
            places: text.and_then(YamlLineNumbers::parse_yaml),
            scenarios,
        }
    }

    /// Returns the path of the field `field` of the scenario `name`, such as `scenarios[2].recipe`.
    /// For an unknown scenario, the path has no index.
    pub(crate) fn scenario_path(&self, name: &str, field: &str) -> String {
        match self.scenarios.iter().position(|it| it == name) {
            Some(at) => format!("scenarios[{at}].{field}"),
            None => format!("scenarios.{field}"),
        }
    }

    /// Creates an error message with the file, the line and the path `place` of a suite's field.
    pub(crate) fn field_error(&self, place: &str, reason: impl fmt::Display) -> anyhow::Error {
        let reason = reason.to_string();
        // If `reason` already begins with the path of the field, the path is not added again.
        let place_said = if reason.starts_with(&format!("`{place}")) {
            String::new()
        } else {
            format!("{place}: ")
        };
        let line = self.places.as_ref().and_then(|it| it.find_line(place));
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        anyhow!("{}: {line}{place_said}{reason}", self.file)
    }
}

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

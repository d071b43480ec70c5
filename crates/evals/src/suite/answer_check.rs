//! Checks of the text that a model answers.

use regex::Regex;
use serde::Deserialize;

/// Checks of the model's answer. Every check is optional. All checks except the regular expression
/// ignore case.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerCheck {
    /// Texts that the answer must contain.
    pub contains: Vec<String>,
    /// Texts of which the answer must contain at least one.
    pub contains_any: Vec<String>,
    /// Texts that the answer must not contain.
    pub lacks: Vec<String>,
    /// A regular expression that must match a part of the answer.
    pub matches: Option<String>,
    /// The type of a required artifact, such as `table`.
    pub artifact: Option<String>,
}

impl AnswerCheck {
    /// Validates the checks. Returns the name of an invalid field and its problem.
    pub(super) fn validate_fields(&self) -> Result<(), (&'static str, String)> {
        for (field, texts) in [
            ("contains", &self.contains),
            ("contains_any", &self.contains_any),
            ("lacks", &self.lacks),
        ] {
            if texts.iter().any(String::is_empty) {
                return Err((field, "a text must not be empty".to_owned()));
            }
        }
        match self.matches.as_deref().map(Regex::new) {
            Some(Err(error)) => Err(("matches", error.to_string())),
            _ => Ok(()),
        }
    }

    /// Returns the failed checks of an answer, one sentence each.
    pub fn find_faults(&self, answer: &str, artifacts: &[String]) -> Vec<String> {
        let lower = answer.to_lowercase();
        let has = |text: &String| lower.contains(&text.to_lowercase());
        let mut faults = Vec::new();
        for text in self.contains.iter().filter(|text| !has(text)) {
            faults.push(format!("the answer does not contain `{text}`"));
        }
        if !self.contains_any.is_empty() && !self.contains_any.iter().any(has) {
            faults.push(format!(
                "the answer contains none of `{}`",
                self.contains_any.join("`, `")
            ));
        }
        for text in self.lacks.iter().filter(|text| has(text)) {
            faults.push(format!("the answer contains `{text}`"));
        }
        if let Some(pattern) = &self.matches
            && !Regex::new(pattern).is_ok_and(|it| it.is_match(answer))
        {
            faults.push(format!("the answer does not match `{pattern}`"));
        }
        if let Some(artifact) = &self.artifact
            && !artifacts.iter().any(|it| it == artifact)
        {
            faults.push(format!("the answer has no artifact of type `{artifact}`"));
        }
        faults
    }
}

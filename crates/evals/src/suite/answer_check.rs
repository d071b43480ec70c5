//! Checks the text of a model's answer.

use regex::Regex;
use serde::Deserialize;

/// Optional checks of the model's answer in a turn. The checks `contains`, `contains_any` and
/// `lacks` ignore case.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerCheck {
    /// Texts that must all occur in the answer.
    pub contains: Vec<String>,
    /// Texts of which at least one must occur in the answer.
    pub contains_any: Vec<String>,
    /// Texts that must not occur in the answer.
    pub lacks: Vec<String>,
    /// Regular expression that must match a part of the answer. It is case-sensitive by default.
    pub matches: Option<String>,
    /// Type of an artifact that the answer must include, such as `table`. The type is
    /// case-sensitive.
    pub artifact: Option<String>,
}

impl AnswerCheck {
    /// Validates the checks. The error contains the name of the first invalid field and a
    /// description of its problem.
    pub(super) fn validate_fields(&self) -> Result<(), (&'static str, String)> {
        for (field, texts) in [
            ("contains", &self.contains),
            ("contains_any", &self.contains_any),
            ("lacks", &self.lacks),
        ] {
            if texts.iter().any(String::is_empty) {
                return Err((field, "must not contain empty strings".to_owned()));
            }
        }
        match self.matches.as_deref().map(Regex::new) {
            Some(Err(error)) => Err(("matches", error.to_string())),
            _ => Ok(()),
        }
    }

    /// Returns one sentence for each check that the answer does not pass.
    pub fn failed_checks(&self, answer: &str, artifacts: &[String]) -> Vec<String> {
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

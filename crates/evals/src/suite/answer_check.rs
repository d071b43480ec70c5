//! What an answer must be like.

use regex::Regex;
use serde::{Deserialize, Serialize};

/// What an answer must be like; what is left out is not asked for. Upper and lower case are alike but for the
/// regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerCheck {
    /// All of these are in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// At least one of these is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains_any: Vec<String>,
    /// None of these is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// This regular expression finds something in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// It has an artifact of this type, such as `table`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}

impl AnswerCheck {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The field that is wrong and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        for (field, texts) in [
            ("contains", &self.contains),
            ("contains_any", &self.contains_any),
            ("lacks", &self.lacks),
        ] {
            if texts.iter().any(String::is_empty) {
                return Err((field, "an empty text is in every answer".to_owned()));
            }
        }
        match self.matches.as_deref().map(Regex::new) {
            Some(Err(fault)) => Err(("matches", fault.to_string())),
            _ => Ok(()),
        }
    }

    /// What is wrong with an answer, one sentence for each thing; nothing if it is as it must be.
    pub fn faults(&self, answer: &str, artifacts: &[String]) -> Vec<String> {
        let lower = answer.to_lowercase();
        let has = |text: &String| lower.contains(&text.to_lowercase());
        let mut faults = Vec::new();
        for text in self.contains.iter().filter(|text| !has(text)) {
            faults.push(format!("`{text}` is not in the answer"));
        }
        if !self.contains_any.is_empty() && !self.contains_any.iter().any(has) {
            faults.push(format!(
                "none of `{}` is in the answer",
                self.contains_any.join("`, `")
            ));
        }
        for text in self.lacks.iter().filter(|text| has(text)) {
            faults.push(format!("`{text}` is in the answer"));
        }
        if let Some(pattern) = &self.matches
            && !Regex::new(pattern).is_ok_and(|it| it.is_match(answer))
        {
            faults.push(format!("`{pattern}` finds nothing in the answer"));
        }
        if let Some(wanted) = &self.artifact
            && !artifacts.iter().any(|it| it == wanted)
        {
            faults.push(format!("the answer has no artifact of type `{wanted}`"));
        }
        faults
    }
}

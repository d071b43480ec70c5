//! Matching of redacted arguments.

use serde_json::Value;

use super::matcher::Matcher;
use crate::recording::{is_redacted, may_equal};

/// The result of matching an argument that may be redacted. The minimum of several results is that
/// of all together, and the maximum that of any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchResult {
    /// The argument does not match.
    No,
    /// The result may depend on the secret.
    Unknown,
    /// The argument matches.
    Yes,
}

impl Matcher {
    /// Matches an argument of a recording, which may be redacted. Plain values are compared except
    /// for redacted text. The result of another matcher of a redacted value is unknown.
    pub(crate) fn match_redacted(&self, argument: Option<&Value>) -> MatchResult {
        let Some(found) = argument.filter(|it| is_redacted(it)) else {
            return if self.matches(argument) {
                MatchResult::Yes
            } else {
                MatchResult::No
            };
        };
        match (self, found) {
            (Self::Any, _) => MatchResult::Yes,
            (Self::Absent, _) => MatchResult::No,
            (Self::Fields(expected), Value::Object(fields)) => {
                let results = expected.iter();
                let results = results.map(|(name, one)| one.match_redacted(fields.get(name)));
                results.min().unwrap_or(MatchResult::Yes)
            }
            (Self::List(expected), Value::Array(items)) if expected.len() == items.len() => {
                let pairs = expected.iter().zip(items);
                let results = pairs.map(|(one, item)| one.match_redacted(Some(item)));
                results.min().unwrap_or(MatchResult::Yes)
            }
            (Self::Value(expected) | Self::Exactly(expected), found)
                if !may_equal(found, expected) =>
            {
                MatchResult::No
            }
            _ => MatchResult::Unknown,
        }
    }
}

//! Matches arguments whose secrets were redacted.

use serde_json::Value;

use super::matcher::Matcher;
use crate::recording::{is_redacted, may_match_redacted};

/// The result of matching an argument that may be redacted. To combine results, take the minimum if
/// all must match and the maximum if one must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchResult {
    /// The argument does not match.
    No,
    /// The match is unknown, because it may depend on the redacted secret.
    Unknown,
    /// The argument matches.
    Yes,
}

impl Matcher {
    /// Matches an argument of a recorded call, which may be redacted. Plain values are compared
    /// except for their redacted text. All other matchers return `Unknown` for a redacted value.
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
                if !may_match_redacted(found, expected) =>
            {
                MatchResult::No
            }
            _ => MatchResult::Unknown,
        }
    }
}

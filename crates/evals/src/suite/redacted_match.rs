//! Compares arguments with matchers if the arguments contain redacted secrets.

use serde_json::Value;

use super::argument_matcher::Matcher;
use crate::recording::{is_redacted, may_match_redacted};

/// Result of comparing an argument, which may be redacted, with a matcher. The variants are ordered
/// from bad to good. The minimum combines comparisons that must all match, and the maximum combines
/// alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchResult {
    /// The argument cannot match, whichever value the redacted secret has.
    No,
    /// The argument may match, depending on the redacted secret.
    Unknown,
    /// The argument matches, whichever value the redacted secret has.
    Yes,
}

impl Matcher {
    /// Compares an argument with this matcher. With `may_be_redacted`, the text `[redacted]` in the
    /// argument replaces a secret and may match any text. Otherwise it is compared like other text.
    ///
    /// For an argument with redacted text, `Any` returns `Yes`, and `Absent` returns `No`. Plain
    /// values and `Exactly` return `No` if other parts differ, or else `Unknown`. Objects and lists
    /// of the same length are compared item by item. All other matchers return `Unknown`.
    pub(crate) fn match_argument(
        &self,
        argument: Option<&Value>,
        may_be_redacted: bool,
    ) -> MatchResult {
        let Some(found) = argument.filter(|it| may_be_redacted && is_redacted(it)) else {
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
                let results = results.map(|(name, one)| one.match_argument(fields.get(name), true));
                results.min().unwrap_or(MatchResult::Yes)
            }
            (Self::List(expected), Value::Array(items)) if expected.len() == items.len() => {
                let pairs = expected.iter().zip(items);
                let results = pairs.map(|(one, item)| one.match_argument(Some(item), true));
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

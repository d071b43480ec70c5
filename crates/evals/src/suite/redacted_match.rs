//! Matching of redacted arguments.

use serde_json::Value;
use switchboard_domain::redact::REDACTED;

use super::{
    bipartite::maximum_matching,
    matcher::{Matcher, equal},
};
use crate::recording::{is_redacted, text_may_equal};

/// The result of matching an argument that may be redacted. The minimum of several results is that
/// of all together, and the maximum that of any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchResult {
    /// The argument does not match, whatever the secret was.
    No,
    /// The result depends on the secret.
    Unknown,
    /// The argument matches, whatever the secret was.
    Yes,
}

impl MatchResult {
    fn known(matches: bool) -> Self {
        if matches { Self::Yes } else { Self::No }
    }

    fn possible(may_match: bool) -> Self {
        if may_match { Self::Unknown } else { Self::No }
    }

    fn all(of: impl Iterator<Item = Self>) -> Self {
        of.min().unwrap_or(Self::Yes)
    }
}

impl Matcher {
    /// Matches an argument of a recording, which may be redacted.
    pub(crate) fn match_redacted(&self, argument: Option<&Value>) -> MatchResult {
        let Some(found) = argument.filter(|it| is_redacted(it)) else {
            return MatchResult::known(self.matches(argument));
        };
        match (self, found) {
            (Self::Any, _) => MatchResult::Yes,
            (Self::Absent, _) => MatchResult::No,
            (Self::Optional(expected), _) => expected.match_redacted(argument),
            (Self::OneOf(several), _) => {
                let of = several.iter().map(|it| it.match_redacted(argument));
                of.max().unwrap_or(MatchResult::No)
            }
            (Self::List(expected), Value::Array(items)) if expected.len() == items.len() => {
                let pairs = expected.iter().zip(items);
                MatchResult::all(pairs.map(|(one, item)| one.match_redacted(Some(item))))
            }
            (Self::Unordered(expected), Value::Array(items)) if expected.len() == items.len() => {
                let is_paired = |least: MatchResult| {
                    let matches = |one: usize, item: usize| {
                        expected[one].match_redacted(Some(&items[item])) >= least
                    };
                    let pairs = maximum_matching(expected.len(), items.len(), matches);
                    pairs.iter().all(Option::is_some)
                };
                let mut best = [MatchResult::Yes, MatchResult::Unknown].into_iter();
                best.find(|it| is_paired(*it)).unwrap_or(MatchResult::No)
            }
            (Self::Fields(expected), Value::Object(fields)) => MatchResult::all(
                expected
                    .iter()
                    .map(|(name, one)| one.match_redacted(fields.get(name))),
            ),
            (Self::List(_) | Self::Unordered(_) | Self::Fields(_), found) => {
                MatchResult::possible(is_completely_redacted(found))
            }
            (Self::Contains(expected), Value::Array(items)) => {
                let mut known = items.iter().filter(|it| !is_redacted(it));
                if known.any(|item| equal(Some(item), expected)) {
                    return MatchResult::Yes;
                }
                MatchResult::possible(items.iter().any(|item| may_be(item, expected)))
            }
            (Self::Contains(Value::String(expected)), Value::String(text)) => {
                let (text, expected) = (text.to_lowercase(), expected.to_lowercase());
                if text.split(REDACTED).any(|piece| piece.contains(&expected)) {
                    return MatchResult::Yes;
                }
                MatchResult::Unknown
            }
            (Self::Contains(_), found) => MatchResult::possible(is_completely_redacted(found)),
            // A match in the rest does not prove a match of the complete text.
            (Self::Matches(_), found) => MatchResult::possible(found.is_string()),
            (Self::IgnoringCase(expected), found) => {
                let text = found.as_str().map(|it| it.trim().to_lowercase());
                MatchResult::possible(text.is_some_and(|it| text_may_equal(&it, expected)))
            }
            (Self::Between(..), found) => MatchResult::possible(may_be_number(found)),
            (Self::Exactly(expected) | Self::Value(expected), found) => {
                MatchResult::possible(may_be(found, expected))
            }
            (Self::Bfcl(parameter), found) => MatchResult::possible(parameter.may_match(found)),
        }
    }
}

/// Returns whether nothing else is left of a value.
fn is_completely_redacted(found: &Value) -> bool {
    found.as_str() == Some(REDACTED)
}

/// Returns whether the original value may be a number.
fn may_be_number(found: &Value) -> bool {
    let is_numeric = |it: char| it.is_ascii_digit() || matches!(it, '.' | '+' | '-' | 'e' | 'E');
    found.as_str().is_some_and(|text| {
        text.contains(REDACTED) && text.replace(REDACTED, "").chars().all(is_numeric)
    })
}

/// Returns whether the original value may [`equal`] this one.
pub(super) fn may_be(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        // Null and booleans are not redacted.
        (Value::String(_), Value::Null | Value::Bool(_)) => false,
        (found, _) if is_completely_redacted(found) => true,
        (Value::String(_), Value::Number(_)) => may_be_number(found),
        (Value::String(text), Value::String(expected)) => {
            text_may_equal(text.trim(), expected.trim()) || may_be_data(text, expected)
        }
        (Value::Array(items), Value::Array(expected)) => {
            let mut pairs = items.iter().zip(expected);
            items.len() == expected.len() && pairs.all(|(item, expected)| may_be(item, expected))
        }
        (Value::Object(fields), Value::Object(expected)) => {
            let may_match =
                |(name, expected)| fields.get(name).is_some_and(|it| may_be(it, expected));
            fields.len() == expected.len() && expected.iter().all(may_match)
        }
        (found, expected) => equal(Some(found), expected),
    }
}

/// Returns whether two JSON texts may be equal. Redaction changes the formatting of JSON.
fn may_be_data(text: &str, expected: &str) -> bool {
    let read = |text: &str| {
        let value: Option<Value> = serde_json::from_str(text).ok();
        value.filter(|it| it.is_array() || it.is_object())
    };
    let both = read(text).zip(read(expected));
    both.is_some_and(|(found, expected)| may_be(&found, &expected))
}

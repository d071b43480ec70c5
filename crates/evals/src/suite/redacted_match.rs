//! What can be said of an argument out of which a secret was struck.

use serde_json::Value;
use switchboard_domain::redact::REDACTED;
use switchboard_orchestration::tools::arguments::Requirement;

use super::{
    assignment::pairs,
    matcher::{Matcher, same},
};
use crate::recording::{is_redacted, text_may_equal};

/// Whether an argument is like what is expected, where that need not be known. In an order in which the least of
/// several holds for all of them, and the greatest for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It is not: also what is left of it shows that.
    No,
    /// That depends on what was struck out.
    Unknown,
    /// It is, whatever was struck out.
    Yes,
}

impl Fit {
    fn known(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }

    fn possible(may_fit: bool) -> Self {
        if may_fit { Self::Unknown } else { Self::No }
    }

    fn all(of: impl Iterator<Item = Self>) -> Self {
        of.min().unwrap_or(Self::Yes)
    }
}

impl Matcher {
    /// Whether an argument of a recording fits, or fitted before something was struck out of it.
    pub(crate) fn fit(&self, argument: Option<&Value>) -> Fit {
        let Some(found) = argument.filter(|it| is_redacted(it)) else {
            return Fit::known(self.fits(argument));
        };
        match (self, found) {
            // Whatever it was, it is there.
            (Self::Any, _) => Fit::Yes,
            (Self::Absent, _) => Fit::No,
            (Self::Optional(wanted), _) => wanted.fit(argument),
            (Self::OneOf(several), _) => {
                let of = several.iter().map(|it| it.fit(argument));
                of.max().unwrap_or(Fit::No)
            }
            (Self::List(wanted), Value::Array(items)) if wanted.len() == items.len() => {
                let pairs = wanted.iter().zip(items);
                Fit::all(pairs.map(|(one, item)| one.fit(Some(item))))
            }
            (Self::Unordered(wanted), Value::Array(items)) if wanted.len() == items.len() => {
                let is_paired = |least: Fit| {
                    let fits =
                        |one: usize, item: usize| wanted[one].fit(Some(&items[item])) >= least;
                    let pairs = pairs(wanted.len(), items.len(), fits);
                    pairs.iter().all(Option::is_some)
                };
                let mut best = [Fit::Yes, Fit::Unknown].into_iter();
                best.find(|it| is_paired(*it)).unwrap_or(Fit::No)
            }
            (Self::Fields(wanted), Value::Object(fields)) => {
                Fit::all(wanted.iter().map(|(name, one)| one.fit(fields.get(name))))
            }
            (Self::List(_) | Self::Unordered(_) | Self::Fields(_), found) => {
                Fit::possible(is_whole(found))
            }
            (Self::Contains(wanted), Value::Array(items)) => {
                let mut known = items.iter().filter(|it| !is_redacted(it));
                if known.any(|item| same(Some(item), wanted)) {
                    return Fit::Yes;
                }
                Fit::possible(items.iter().any(|item| may_be(item, wanted)))
            }
            (Self::Contains(Value::String(wanted)), Value::String(text)) => {
                let (text, wanted) = (text.to_lowercase(), wanted.to_lowercase());
                if text.split(REDACTED).any(|piece| piece.contains(&wanted)) {
                    return Fit::Yes;
                }
                Fit::Unknown
            }
            (Self::Contains(_), found) => Fit::possible(is_whole(found)),
            // What a pattern finds around it says nothing of the whole.
            (Self::Matches(_), found) => Fit::possible(found.is_string()),
            (Self::IgnoringCase(wanted), found) => {
                let text = found.as_str().map(|it| it.trim().to_lowercase());
                Fit::possible(text.is_some_and(|it| text_may_equal(&it, wanted)))
            }
            (Self::Between(..), found) => Fit::possible(may_be_number(found)),
            (Self::Exactly(wanted) | Self::Value(wanted), found) => {
                Fit::possible(may_be(found, wanted))
            }
            (Self::Bfcl(parameter), found) => Fit::possible(parameter.may_fit(found)),
        }
    }
}

/// Whether nothing is left of it: then it may have been anything.
fn is_whole(found: &Value) -> bool {
    found.as_str() == Some(REDACTED)
}

/// Whether it may have been a number: nothing else is left around what was struck out.
fn may_be_number(found: &Value) -> bool {
    let is_of_one = |it: char| it.is_ascii_digit() || matches!(it, '.' | '+' | '-' | 'e' | 'E');
    found.as_str().is_some_and(|text| {
        text.contains(REDACTED) && text.replace(REDACTED, "").chars().all(is_of_one)
    })
}

/// Whether it may have been this value, which was compared as [`same`] does.
pub(crate) fn may_be(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        // Neither of them is a secret.
        (Value::String(_), Value::Null | Value::Bool(_)) => false,
        (found, _) if is_whole(found) => true,
        (Value::String(_), Value::Number(_)) => may_be_number(found),
        (Value::String(text), Value::String(wanted)) => {
            text_may_equal(text.trim(), wanted.trim()) || may_be_data(text, wanted)
        }
        (Value::Array(items), Value::Array(wanted)) => {
            let mut pairs = items.iter().zip(wanted);
            items.len() == wanted.len() && pairs.all(|(item, wanted)| may_be(item, wanted))
        }
        (Value::Object(fields), Value::Object(wanted)) => {
            let is_there = |(name, wanted)| fields.get(name).is_some_and(|it| may_be(it, wanted));
            fields.len() == wanted.len() && wanted.iter().all(is_there)
        }
        (found, wanted) => same(Some(found), wanted),
    }
}

/// The same of two texts that are JSON: what is struck out of one changes how it is written.
fn may_be_data(text: &str, wanted: &str) -> bool {
    let read = |text: &str| {
        let value: Option<Value> = serde_json::from_str(text).ok();
        value.filter(|it| it.is_array() || it.is_object())
    };
    let both = read(text).zip(read(wanted));
    both.is_some_and(|(found, wanted)| may_be(&found, &wanted))
}

/// Whether a value that does not fit its schema may have fitted before something was struck out of it.
pub(crate) fn may_have_fitted(value: &Value, requirement: Requirement<'_>) -> bool {
    if !is_redacted(value) {
        return false;
    }
    match requirement {
        Requirement::OneOf(options) => options.iter().any(|option| may_be(value, option)),
        Requirement::Type => may_be_number(value),
        Requirement::Format => value.is_string(),
        Requirement::MaxLength(most) => value.as_str().is_some_and(|text| {
            let left = text.replace(REDACTED, "").chars().count();
            u64::try_from(left).is_ok_and(|left| left <= most)
        }),
        Requirement::Contents => true,
        _ => false,
    }
}

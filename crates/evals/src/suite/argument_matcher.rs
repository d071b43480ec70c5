//! Matchers that compare the arguments of tool calls.

use regex::Regex;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{bfcl_parameter::BfclParameter, bipartite_matching::find_maximum_matching};

/// A matcher of one argument.
///
/// A plain value matches an equal argument: texts without surrounding white space, numbers by value
/// (`42` equals `42.0`), lists item by item, and objects by the listed fields. An object with a `$`
/// field is one of these matchers:
///
/// | matcher | accepts an argument that |
/// |---|---|
/// | `{$any: true}` | is present and not null |
/// | `{$absent: true}` | is absent or null |
/// | `{$one_of: [a, b]}` | matches one of these |
/// | `{$matches: "^A.*"}` | is a text that matches the regular expression |
/// | `{$contains: "x"}` | is a text that contains `x` in any case, or a list with the item `x` |
/// | `{$ignoring_case: "x"}` | equals this text, ignoring case |
/// | `{$between: [1, 5]}` | is a number in this inclusive range |
/// | `{$optional: x}` | is absent or null, or matches this |
/// | `{$exactly: x}` | equals this value, without additional fields |
/// | `{$unordered: [a, b]}` | is a list of the same length in any order |
/// | `{$bfcl: {type: integer, allowed: [5]}}` | is right by the rules of [`BfclParameter`] |
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Matches every argument that is present and not null (`$any`).
    Any,
    /// Matches an argument that is missing or null (`$absent`).
    Absent,
    /// Matches an argument that one of these matchers accepts (`$one_of`).
    OneOf(Vec<Matcher>),
    /// Matches a string that contains a match of the regular expression (`$matches`).
    Matches(Regex),
    /// Matches a string that contains this text, ignoring case, or a list with an item that equals
    /// this value (`$contains`).
    Contains(Value),
    /// Matches a string that equals this text, ignoring case (`$ignoring_case`).
    IgnoringCase(String),
    /// Matches a number from the first to the second value, both included (`$between`).
    Between(f64, f64),
    /// Matches a missing or null argument, or one that this matcher accepts (`$optional`).
    Optional(Box<Matcher>),
    /// Matches an equal value. An object must have no additional fields (`$exactly`).
    Exactly(Value),
    /// Matches a list that has one item for each of these matchers, in any order (`$unordered`).
    Unordered(Vec<Matcher>),
    /// Matches an argument that is right by the rules of the Berkeley Function Calling Leaderboard,
    /// see [`BfclParameter`] (`$bfcl`).
    Bfcl(BfclParameter),
    /// Matches a text, number, boolean or null that equals this value. White space around texts is
    /// ignored. A missing argument equals null.
    Value(Value),
    /// Matches a list with one item for each of these matchers, in the same order.
    List(Vec<Matcher>),
    /// Matches an object whose fields these matchers accept. Other fields are ignored.
    Fields(Vec<(String, Matcher)>),
}

impl Matcher {
    /// Parses a matcher from its JSON in a suite. The error message describes the problem.
    pub fn parse_matcher(value: &Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => match fields.keys().find(|name| name.starts_with('$')) {
                Some(name) if fields.len() > 1 => {
                    Err(format!("`{name}` must be the only field of its object"))
                }
                Some(name) => Self::parse_matcher_operator(name, &fields[name]),
                None => fields
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), Self::parse_matcher(value)?)))
                    .collect::<Result<_, _>>()
                    .map(Self::Fields),
            },
            Value::Array(items) => Self::parse_matcher_list(items).map(Self::List),
            other => Ok(Self::Value(other.clone())),
        }
    }

    fn parse_matcher_list(items: &[Value]) -> Result<Vec<Self>, String> {
        items.iter().map(Self::parse_matcher).collect()
    }

    fn parse_matcher_operator(name: &str, value: &Value) -> Result<Self, String> {
        let wrong_type = |expected: &str| format!("`{name}` needs {expected}");
        let text = || value.as_str().ok_or_else(|| wrong_type("a string"));
        let items = || value.as_array().ok_or_else(|| wrong_type("a list"));
        let is_true = (*value == Value::Bool(true)).then_some(());
        let yes = || is_true.ok_or_else(|| wrong_type("`true`"));
        Ok(match name {
            "$any" => yes().map(|()| Self::Any)?,
            "$absent" => yes().map(|()| Self::Absent)?,
            "$one_of" => match items()?.as_slice() {
                [] => return Err(wrong_type("a non-empty list")),
                several => Self::OneOf(Self::parse_matcher_list(several)?),
            },
            "$matches" => {
                Self::Matches(Regex::new(text()?).map_err(|error| format!("`$matches`: {error}"))?)
            }
            "$contains" => Self::Contains(value.clone()),
            "$ignoring_case" => Self::IgnoringCase(text()?.trim().to_lowercase()),
            "$between" => match items()?.as_slice() {
                [low, high] => {
                    let number = |it: &Value| it.as_f64().ok_or_else(|| wrong_type("two numbers"));
                    let (low, high) = (number(low)?, number(high)?);
                    if low > high {
                        return Err(wrong_type("two numbers, the smaller one first"));
                    }
                    Self::Between(low, high)
                }
                _ => return Err(wrong_type("two numbers")),
            },
            "$optional" => Self::Optional(Box::new(Self::parse_matcher(value)?)),
            "$exactly" => Self::Exactly(value.clone()),
            "$unordered" => Self::Unordered(Self::parse_matcher_list(items()?)?),
            "$bfcl" => Self::Bfcl(BfclParameter::deserialize(value).map_err(|_| {
                wrong_type("an object with `allowed`, and the `type` of a declared parameter")
            })?),
            other => {
                return Err(format!(
                    "unknown matcher `{other}`; available: $any, $absent, $one_of, $matches, \
                     $contains, $ignoring_case, $between, $optional, $exactly, $unordered and $bfcl"
                ));
            }
        })
    }

    /// Returns whether the matcher accepts an argument. `None` is a missing argument.
    pub fn matches(&self, argument: Option<&Value>) -> bool {
        let present = argument.filter(|it| !it.is_null());
        match self {
            Self::Any => present.is_some(),
            Self::Absent => present.is_none(),
            Self::Optional(inner) => present.is_none() || inner.matches(argument),
            Self::OneOf(several) => several.iter().any(|one| one.matches(argument)),
            Self::Matches(regex) => present
                .and_then(Value::as_str)
                .is_some_and(|it| regex.is_match(it)),
            Self::Contains(expected) => present.is_some_and(|it| contains_value(it, expected)),
            Self::IgnoringCase(expected) => present
                .and_then(Value::as_str)
                .is_some_and(|it| it.trim().to_lowercase() == *expected),
            Self::Between(low, high) => present
                .and_then(Value::as_f64)
                .is_some_and(|it| (*low..=*high).contains(&it)),
            Self::Exactly(expected) => {
                argument.unwrap_or(&Value::Null) == expected || values_match(argument, expected)
            }
            Self::Unordered(expected) => present.and_then(Value::as_array).is_some_and(|items| {
                items.len() == expected.len() && matches_in_any_order(expected, items)
            }),
            Self::Bfcl(parameter) => parameter.matches(argument),
            Self::Value(expected) => values_match(argument, expected),
            Self::List(expected) => present.and_then(Value::as_array).is_some_and(|items| {
                let mut pairs = expected.iter().zip(items);
                items.len() == expected.len() && pairs.all(|(one, item)| one.matches(Some(item)))
            }),
            Self::Fields(expected) => present.and_then(Value::as_object).is_some_and(|fields| {
                let mut expected = expected.iter();
                expected.all(|(name, one)| one.matches(fields.get(name)))
            }),
        }
    }
}

/// Returns whether the matchers can be assigned to different items so that each matcher accepts its
/// item.
fn matches_in_any_order(expected: &[Matcher], items: &[Value]) -> bool {
    let matches = |one: usize, item: usize| expected[one].matches(Some(&items[item]));
    let found = find_maximum_matching(expected.len(), items.len(), matches);
    found.iter().all(Option::is_some)
}

fn contains_value(argument: &Value, expected: &Value) -> bool {
    match (argument, expected) {
        (Value::String(text), Value::String(expected)) => {
            text.to_lowercase().contains(&expected.to_lowercase())
        }
        (Value::Array(items), expected) => {
            items.iter().any(|item| values_match(Some(item), expected))
        }
        _ => false,
    }
}

/// Returns whether an argument equals the value `expected`. Ignores white space around texts and
/// compares numbers by value. Objects must have the same fields. A missing argument (`None`) equals
/// null.
pub(crate) fn values_match(argument: Option<&Value>, expected: &Value) -> bool {
    match (argument.unwrap_or(&Value::Null), expected) {
        // Whole numbers are compared as integers, because large ones lose precision as
        // floating-point numbers.
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        (Value::String(a), Value::String(b)) => a.trim() == b.trim(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| values_match(Some(a), b))
        }
        (Value::Object(a), Value::Object(b)) => fields_match(a, b),
        (a, b) => a == b,
    }
}

fn fields_match(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len()
        && b.iter()
            .all(|(name, expected)| a.contains_key(name) && values_match(a.get(name), expected))
}

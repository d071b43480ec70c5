//! What an argument must be like.

use regex::Regex;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{assignment::pairs, bfcl_parameter::Parameter};

/// What one argument of a call must be like.
///
/// A plain value means itself: texts are compared without white space around them, numbers by their value
/// (`42` is `42.0`), lists item by item, and of an object every field that is named. A field whose name
/// begins with `$` means something else, and then it is the only one:
///
/// | value | an argument that |
/// |---|---|
/// | `{$any: true}` | is there |
/// | `{$absent: true}` | is not there, or null |
/// | `{$one_of: [a, b]}` | is like one of these |
/// | `{$matches: "^A.*"}` | is a text that the regular expression finds |
/// | `{$contains: "x"}` | is a text with this in it, upper and lower case alike, or a list with such an item |
/// | `{$ignoring_case: "x"}` | is this text, upper and lower case alike |
/// | `{$between: [1, 5]}` | is a number from the first, which is not larger, to the second |
/// | `{$optional: x}` | is not there, or like this |
/// | `{$exactly: x}` | is this value, with no field more |
/// | `{$unordered: [a, b]}` | is a list of as many items in any order |
/// | `{$bfcl: {type: integer, allowed: [5]}}` | is right by the rules of the [Berkeley Function Calling Leaderboard](Parameter) |
#[derive(Debug, Clone)]
pub enum Matcher {
    /// `$any`.
    Any,
    /// `$absent`.
    Absent,
    /// `$one_of`.
    OneOf(Vec<Matcher>),
    /// `$matches`.
    Matches(Regex),
    /// `$contains`.
    Contains(Value),
    /// `$ignoring_case`.
    IgnoringCase(String),
    /// `$between`.
    Between(f64, f64),
    /// `$optional`.
    Optional(Box<Matcher>),
    /// `$exactly`.
    Exactly(Value),
    /// `$unordered`.
    Unordered(Vec<Matcher>),
    /// `$bfcl`.
    Bfcl(Parameter),
    /// A plain value.
    Value(Value),
    /// A list, item by item.
    List(Vec<Matcher>),
    /// An object, by the fields that are named.
    Fields(Vec<(String, Matcher)>),
}

/// What is wrong with a matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMatcher {
    /// The name is not known.
    #[error(
        "`{0}` is no matcher; there are $any, $absent, $one_of, $matches, $contains, $ignoring_case, $between, $optional, $exactly, $unordered and $bfcl"
    )]
    Unknown(String),
    /// A field beside a matcher.
    #[error("`{0}` must be the only field of its object")]
    NotAlone(String),
    /// What stands behind the name is of another type.
    #[error("`{name}` takes {wanted}")]
    Takes {
        /// The matcher.
        name: String,
        /// What it takes, in words.
        wanted: &'static str,
    },
    /// A regular expression that cannot be read.
    #[error("`$matches`: {0}")]
    Regex(String),
}

impl Matcher {
    /// Reads one.
    pub fn read(value: &Value) -> Result<Self, InvalidMatcher> {
        match value {
            Value::Object(fields) => match fields.keys().find(|name| name.starts_with('$')) {
                Some(name) if fields.len() > 1 => Err(InvalidMatcher::NotAlone(name.clone())),
                Some(name) => Self::named(name, &fields[name]),
                None => fields
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), Self::read(value)?)))
                    .collect::<Result<_, _>>()
                    .map(Self::Fields),
            },
            Value::Array(items) => Self::list(items).map(Self::List),
            other => Ok(Self::Value(other.clone())),
        }
    }

    fn list(items: &[Value]) -> Result<Vec<Self>, InvalidMatcher> {
        items.iter().map(Self::read).collect()
    }

    fn named(name: &str, value: &Value) -> Result<Self, InvalidMatcher> {
        let takes = |wanted| InvalidMatcher::Takes {
            name: name.to_owned(),
            wanted,
        };
        let text = || {
            value
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| takes("a text"))
        };
        let items = || value.as_array().ok_or_else(|| takes("a list"));
        let yes = || {
            (*value == Value::Bool(true))
                .then_some(())
                .ok_or_else(|| takes("`true`"))
        };
        Ok(match name {
            "$any" => yes().map(|()| Self::Any)?,
            "$absent" => yes().map(|()| Self::Absent)?,
            "$one_of" => match items()?.as_slice() {
                [] => return Err(takes("a list with something in it")),
                several => Self::OneOf(Self::list(several)?),
            },
            "$matches" => Self::Matches(
                Regex::new(&text()?).map_err(|fault| InvalidMatcher::Regex(fault.to_string()))?,
            ),
            "$contains" => Self::Contains(value.clone()),
            "$ignoring_case" => Self::IgnoringCase(text()?.trim().to_lowercase()),
            "$between" => match items()?.as_slice() {
                [low, high] => {
                    let number = |it: &Value| it.as_f64().ok_or_else(|| takes("two numbers"));
                    let (low, high) = (number(low)?, number(high)?);
                    if low > high {
                        return Err(takes("two numbers, the lower one first"));
                    }
                    Self::Between(low, high)
                }
                _ => return Err(takes("two numbers")),
            },
            "$optional" => Self::Optional(Box::new(Self::read(value)?)),
            "$exactly" => Self::Exactly(value.clone()),
            "$unordered" => Self::Unordered(Self::list(items()?)?),
            "$bfcl" => Self::Bfcl(Parameter::deserialize(value).map_err(|_| {
                takes("an object with `allowed` and, of a parameter that is declared, its `type`")
            })?),
            other => return Err(InvalidMatcher::Unknown(other.to_owned())),
        })
    }

    /// Whether an argument is like this; `None` is one that is not there.
    pub fn fits(&self, argument: Option<&Value>) -> bool {
        let there = argument.filter(|it| !it.is_null());
        match self {
            Self::Any => there.is_some(),
            Self::Absent => there.is_none(),
            Self::Optional(inner) => there.is_none() || inner.fits(argument),
            Self::OneOf(several) => several.iter().any(|one| one.fits(argument)),
            Self::Matches(regex) => there
                .and_then(Value::as_str)
                .is_some_and(|it| regex.is_match(it)),
            Self::Contains(wanted) => there.is_some_and(|it| contains(it, wanted)),
            Self::IgnoringCase(wanted) => there
                .and_then(Value::as_str)
                .is_some_and(|it| it.trim().to_lowercase() == *wanted),
            Self::Between(low, high) => there
                .and_then(Value::as_f64)
                .is_some_and(|it| (*low..=*high).contains(&it)),
            Self::Exactly(wanted) => {
                argument.unwrap_or(&Value::Null) == wanted || same(argument, wanted)
            }
            Self::Unordered(wanted) => match there {
                Some(Value::Array(items)) => items.len() == wanted.len() && assigned(wanted, items),
                _ => false,
            },
            Self::Bfcl(parameter) => parameter.fits(argument),
            Self::Value(wanted) => same(argument, wanted),
            Self::List(wanted) => match there {
                Some(Value::Array(items)) => {
                    items.len() == wanted.len()
                        && wanted
                            .iter()
                            .zip(items)
                            .all(|(one, item)| one.fits(Some(item)))
                }
                _ => false,
            },
            Self::Fields(wanted) => match there {
                Some(Value::Object(fields)) => {
                    wanted.iter().all(|(name, one)| one.fits(fields.get(name)))
                }
                _ => false,
            },
        }
    }
}

/// Whether every matcher has an item of its own.
fn assigned(wanted: &[Matcher], items: &[Value]) -> bool {
    let fits = |one: usize, item: usize| wanted[one].fits(Some(&items[item]));
    pairs(wanted.len(), items.len(), fits)
        .iter()
        .all(Option::is_some)
}

fn contains(argument: &Value, wanted: &Value) -> bool {
    match (argument, wanted) {
        (Value::String(text), Value::String(wanted)) => {
            text.to_lowercase().contains(&wanted.to_lowercase())
        }
        (Value::Array(items), wanted) => items.iter().any(|item| same(Some(item), wanted)),
        _ => false,
    }
}

/// Whether two values mean the same.
pub(super) fn same(argument: Option<&Value>, wanted: &Value) -> bool {
    match (argument.unwrap_or(&Value::Null), wanted) {
        // Two whole numbers are the same only if they are: as fractions, large ones would lose their last digits.
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        (Value::String(a), Value::String(b)) => a.trim() == b.trim(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), b))
        }
        (Value::Object(a), Value::Object(b)) => same_fields(a, b),
        (a, b) => a == b,
    }
}

fn same_fields(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len()
        && b.iter()
            .all(|(name, wanted)| a.contains_key(name) && same(a.get(name), wanted))
}

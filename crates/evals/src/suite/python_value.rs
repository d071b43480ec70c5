//! Values as Python sees them.

use serde_json::Value;

/// The class of a value that was read from JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    None,
    Bool,
    Int,
    Float,
    Text,
    List,
    Dict,
}

impl Class {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Float,
            Value::Number(_) => Self::Int,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Dict,
        }
    }
}

/// Python's `==`: numbers by their value, and truth values are the numbers 1 and 0.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        (Value::Number(_) | Value::Bool(_), Value::Number(_) | Value::Bool(_)) => {
            match (whole(a), whole(b)) {
                (Some(a), Some(b)) => a == b,
                (None, None) => a.as_f64() == b.as_f64(),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The whole number that a number or truth value is: a fraction that is none is one too, so that no digit is lost
/// where large numbers are compared.
fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(it) => Some(i128::from(*it)),
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .or_else(|| number.as_f64().and_then(whole_of)),
        _ => None,
    }
}

/// Whole fractions up to 2^64; beyond it there is no whole number in JSON that is read as one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is whole and far below 2^127"
)]
fn whole_of(number: f64) -> Option<i128> {
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    (number.fract() == 0.0 && number.abs() <= BEYOND).then_some(number as i128)
}

/// Python's `in` of a list.
pub(super) fn is_among(value: &Value, list: &[Value]) -> bool {
    list.iter().any(|one| equal(one, value))
}

/// Whether it says "may be left out".
pub(super) fn is_empty_text(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// A value as it is compared: a text in its standard form, all others as they are.
pub(super) fn standard(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(standard_text(text)),
        other => other.clone(),
    }
}

/// A text without spaces and `,./-_*^`, in lower case, with one kind of quotation mark.
pub(super) fn standard_text(text: &str) -> String {
    let kept: String = text
        .chars()
        .filter(|it| !matches!(it, ' ' | ',' | '.' | '/' | '-' | '_' | '*' | '^'))
        .collect();
    kept.to_lowercase().replace('\'', "\"")
}

//! Compares JSON values by the rules of Python, because the benchmark's checker is in Python.

use serde_json::Value;

/// Type that a JSON value has in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PythonType {
    None,
    Bool,
    Int,
    Float,
    Text,
    List,
    Dict,
}

impl PythonType {
    pub(super) fn from_json_value(value: &Value) -> Self {
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

/// Compares two values like `==` in Python: by value for numbers, and with booleans as 1 and 0.
pub(super) fn python_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| python_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| python_equal(a, b)))
        }
        (Value::Number(_) | Value::Bool(_), Value::Number(_) | Value::Bool(_)) => {
            match (to_whole_number(a), to_whole_number(b)) {
                (Some(a), Some(b)) => a == b,
                (None, None) => a.as_f64() == b.as_f64(),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Returns a whole number or boolean as an integer, so that comparison loses no precision. Returns
/// `None` for other values and for numbers that are not whole.
fn to_whole_number(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(it) => Some(i128::from(*it)),
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .or_else(|| number.as_f64().and_then(float_to_whole_number)),
        _ => None,
    }
}

/// Returns a float as an integer if it is a whole number from -2^64 to 2^64, or else `None`. JSON
/// numbers above 64 bits are parsed as floats, so a whole number can be a float.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the number is whole and below 2^127"
)]
fn float_to_whole_number(number: f64) -> Option<i128> {
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    (number.fract() == 0.0 && number.abs() <= BEYOND).then_some(number as i128)
}

/// Returns whether a list contains a value, like the operator `in` of Python.
pub(super) fn is_in_list(value: &Value, list: &[Value]) -> bool {
    list.iter().any(|one| python_equal(one, value))
}

/// Returns whether an accepted value is the empty string, by which the benchmark data allows a
/// missing argument.
pub(super) fn is_empty_text(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// Returns a string as normalized by [`normalize_text`], and other values unchanged.
pub(super) fn normalize_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(normalize_text(text)),
        other => other.clone(),
    }
}

/// Normalizes a string as the benchmark does: in lower case, without spaces and `,./-_*^`, and with
/// double instead of single quotation marks.
pub(super) fn normalize_text(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|it| !matches!(it, ' ' | ',' | '.' | '/' | '-' | '_' | '*' | '^'))
        .collect();
    text.to_lowercase().replace('\'', "\"")
}

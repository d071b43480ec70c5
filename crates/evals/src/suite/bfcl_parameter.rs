//! Compares an argument by the rules of the Berkeley Function Calling Leaderboard (BFCL).
//!
//! The rules are those of the benchmark's `ast_checker.py`, which compares Python values. Its
//! peculiarities are kept for the same verdicts. Where that program would crash, nothing matches.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::python_value::{
    PythonType, is_empty_text, is_in_list, normalize_text, normalize_value, python_equal,
};

/// Type and accepted values of one argument, from the data of the Berkeley Function Calling
/// Leaderboard (BFCL). In a suite, this is the value of a `$bfcl` matcher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BfclParameter {
    /// Type of the parameter in the benchmark data. If `None`, no value is accepted, so the
    /// argument must be missing.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<BfclType>,
    /// Type of the items if the parameter is an array or a tuple.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<BfclType>,
    /// Values that are accepted for the argument. An empty string among them allows a missing
    /// argument, unless the argument is `required`.
    pub allowed: Vec<Value>,
    /// Whether the function requires the argument. A required argument must not be missing, even if
    /// `allowed` contains an empty string.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// Type of a parameter in the benchmark data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BfclType {
    /// The argument must be a string.
    String,
    /// The argument must be a whole number.
    Integer,
    /// The argument must be a number. A whole number is accepted too.
    Float,
    /// The argument must be `true` or `false`.
    Boolean,
    /// The argument must be a list of values.
    Array,
    /// The argument must be a Python tuple, which is a list in JSON.
    Tuple,
    /// The argument must be an object, which is a dictionary in Python.
    Dict,
    /// The argument must be a string, because the benchmark treats the type `any` as text.
    Any,
}

impl BfclType {
    /// Returns the Python type that the benchmark's checker requires for a parameter of this type.
    fn required_python_type(self) -> PythonType {
        match self {
            Self::String | Self::Any => PythonType::Text,
            Self::Integer => PythonType::Int,
            Self::Float => PythonType::Float,
            Self::Boolean => PythonType::Bool,
            Self::Array | Self::Tuple => PythonType::List,
            Self::Dict => PythonType::Dict,
        }
    }
}

/// Result of comparing the type of an argument with two types: the declared type of the parameter,
/// and the type of the accepted values. In the benchmark data, these two types may differ.
enum TypeMatch {
    Declared,
    /// The parameter and its accepted values have different types, and the argument has one of
    /// these types. It must then equal an accepted value.
    Answered,
}

impl BfclParameter {
    /// Returns whether the argument is right. `None` is a missing argument. A JSON null is
    /// not missing.
    pub fn matches(&self, argument: Option<&Value>) -> bool {
        match (argument, self.declared) {
            (None, _) => !self.required && self.allowed.iter().any(is_empty_text),
            (Some(_), None) => false,
            (Some(value), Some(declared)) => self.is_accepted_value(value, declared),
        }
    }

    fn is_accepted_value(&self, value: &Value, declared: BfclType) -> bool {
        // A whole number is accepted for a float parameter, but a float is not accepted for an
        // integer parameter.
        let float = match (declared, PythonType::from_json_value(value)) {
            (BfclType::Float, PythonType::Int) => value.as_f64().map(Value::from),
            _ => None,
        };
        let value = float.as_ref().unwrap_or(value);
        let class = declared.required_python_type();
        let items = self.items.map(BfclType::required_python_type);
        let items = items.filter(|_| class == PythonType::List);
        match match_value_type(value, &self.allowed, class, items) {
            None => false,
            Some(TypeMatch::Answered) => is_in_list(value, &self.allowed),
            Some(TypeMatch::Declared) => match value {
                Value::Object(fields) => is_accepted_dict(fields, &self.allowed),
                Value::Array(list) if items == Some(PythonType::Dict) => {
                    is_accepted_dict_list(list, &self.allowed)
                }
                Value::Array(list) => is_accepted_list(list, &self.allowed),
                Value::String(text) => is_accepted_text(text, &self.allowed),
                _ => is_in_list(value, &self.allowed),
            },
        }
    }
}

/// Compares the type of `value` with `expected`, the declared type of the parameter, and with the
/// type of the accepted values in `allowed`. Returns `None` if the value has neither type. `items`
/// is the type that the items of a list must have.
fn match_value_type(
    value: &Value,
    allowed: &[Value],
    expected: PythonType,
    items: Option<PythonType>,
) -> Option<TypeMatch> {
    // An empty string among the accepted values only allows a missing argument.
    let answered = allowed.iter().find(|answer| !is_empty_text(answer));
    let answered = answered.map(PythonType::from_json_value);
    let declared = match answered {
        Some(answered) if answered != expected => TypeMatch::Answered,
        _ => TypeMatch::Declared,
    };
    if PythonType::from_json_value(value) == expected {
        let (Some(items), Value::Array(list)) = (items, value) else {
            return Some(declared);
        };
        // Accepts the items if, for at least one accepted list, each item has the type `items` or
        // the type of the values in that list. If an accepted value is not a list, accepts items of
        // any type.
        let suits = |answer: &Value| match answer {
            Value::Array(answer) => list
                .iter()
                .all(|item| match_value_type(item, answer, items, None).is_some()),
            _ => true,
        };
        return allowed.iter().any(suits).then_some(declared);
    }
    (answered == Some(PythonType::from_json_value(value))).then_some(TypeMatch::Answered)
}

fn is_accepted_text(text: &str, allowed: &[Value]) -> bool {
    let text = normalize_text(text);
    let mut texts = allowed.iter().filter_map(Value::as_str);
    texts.any(|answer| normalize_text(answer) == text)
}

fn is_accepted_list(list: &[Value], allowed: &[Value]) -> bool {
    let list: Vec<Value> = list.iter().map(normalize_value).collect();
    let answers: Option<Vec<_>> = allowed.iter().map(python_sequence_items).collect();
    let is_equal = |(answer, item): (&Value, &Value)| python_equal(&normalize_value(answer), item);
    let is_right =
        |answer: &Vec<Value>| answer.len() == list.len() && answer.iter().zip(&list).all(is_equal);
    answers.is_some_and(|answers| answers.iter().any(is_right))
}

/// Returns the items over which Python iterates: the items of a list, or the characters of a
/// string. An empty object has no items. Returns `None` for all other values.
fn python_sequence_items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items.clone()),
        Value::String(text) => Some(text.chars().map(|it| Value::from(it.to_string())).collect()),
        Value::Object(fields) if fields.is_empty() => Some(Vec::new()),
        _ => None,
    }
}

fn is_accepted_dict(fields: &Map<String, Value>, allowed: &[Value]) -> bool {
    for answer in allowed.iter().filter(|answer| !is_empty_text(answer)) {
        let Value::Object(answer) = answer else {
            return false;
        };
        let all_accepted = fields.iter().all(|(name, value)| {
            let allowed = answer.get(name);
            allowed.is_some_and(|allowed| is_accepted_field(value, allowed))
        });
        let mut missing = answer
            .iter()
            .filter(|(name, _)| !fields.contains_key(*name));
        if all_accepted && missing.all(|(_, allowed)| is_optional_field(allowed)) {
            return true;
        }
    }
    false
}

fn is_accepted_field(value: &Value, allowed: &Value) -> bool {
    let value = normalize_value(value);
    let allowed = python_sequence_items(allowed).unwrap_or_default();
    let mut allowed = allowed.iter();
    allowed.any(|answer| python_equal(&normalize_value(answer), &value))
}

fn is_optional_field(allowed: &Value) -> bool {
    match allowed {
        Value::Array(items) => items.iter().any(is_empty_text),
        // The benchmark's checker tests `"" in text`, which is true for every string in Python, so
        // the field counts as optional.
        Value::String(_) => true,
        Value::Object(fields) => fields.contains_key(""),
        _ => false,
    }
}

fn is_accepted_dict_list(list: &[Value], allowed: &[Value]) -> bool {
    for answer in allowed {
        let answers = match answer {
            Value::Array(answers) => answers.as_slice(),
            // The benchmark accepts an empty list where its data has an empty string.
            Value::String(text) if text.is_empty() => &[],
            _ => return false,
        };
        let is_right = list.len() == answers.len()
            && list.iter().zip(answers).all(|(item, answer)| {
                item.as_object()
                    .is_some_and(|fields| is_accepted_dict(fields, std::slice::from_ref(answer)))
            });
        if is_right {
            return true;
        }
    }
    false
}

#[cfg(test)]
#[path = "bfcl_parameter_tests.rs"]
mod tests;

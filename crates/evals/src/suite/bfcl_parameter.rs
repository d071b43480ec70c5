//! What one argument may be, by the rules of that benchmark's checker (`ast_checker.py`, Python).
//!
//! The rules are those of a Python program that compares Python values, with its accidents: they are kept, so that
//! the verdicts are the same. Where that program would crash, nothing fits.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    python_value::{Class, equal, is_among, is_empty_text, standard, standard_text},
    redacted_match::may_be,
};
use crate::recording::is_redacted;

/// What one argument may be: what stands behind `$bfcl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its declared type. Left out if the function does not declare it: then it may not be there.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Type>,
    /// The type of its items, if it is an array or a tuple.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Type>,
    /// The values that are right. An empty text among them says that it may be left out.
    pub allowed: Vec<Value>,
    /// Whether the function says that it is required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// A type, in the words of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Type {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number; a whole one is taken for one with a fraction.
    Float,
    /// `true` or `false`.
    Boolean,
    /// A list.
    Array,
    /// A list here.
    Tuple,
    /// An object.
    Dict,
    /// A text.
    Any,
}

impl Type {
    /// The class that the checker wants for it.
    fn class(self) -> Class {
        match self {
            Self::String | Self::Any => Class::Text,
            Self::Integer => Class::Int,
            Self::Float => Class::Float,
            Self::Boolean => Class::Bool,
            Self::Array | Self::Tuple => Class::List,
            Self::Dict => Class::Dict,
        }
    }
}

/// The value is of the right type; whether of the declared one or of one that only the answers have.
enum Typed {
    AsDeclared,
    /// The answers are of another type than declared: values are compared as they are.
    AsAnswered,
}

impl Parameter {
    /// Whether an argument is right; `None` is one that is not there. Null is a value like any other.
    pub fn fits(&self, argument: Option<&Value>) -> bool {
        match (argument, self.declared) {
            (None, _) => !self.required && self.allowed.iter().any(is_empty_text),
            (Some(_), None) => false,
            (Some(value), Some(declared)) => self.is_right(value, declared),
        }
    }

    /// Whether an argument out of which something was struck may have been right.
    pub(crate) fn may_fit(&self, found: &Value) -> bool {
        // What is not declared may not be there, and nothing that is empty is struck out.
        let answers = self.allowed.iter().filter(|it| !is_empty_text(it));
        self.declared.is_some()
            && answers
                .into_iter()
                .any(|answer| may_be_answer(found, answer))
    }

    fn is_right(&self, value: &Value, declared: Type) -> bool {
        // A whole number is taken where a fraction is wanted, but not the other way.
        let float = match (declared, Class::of(value)) {
            (Type::Float, Class::Int) => value.as_f64().map(Value::from),
            _ => None,
        };
        let value = float.as_ref().unwrap_or(value);
        let class = declared.class();
        let items = self.items.map(Type::class);
        let items = items.filter(|_| class == Class::List);
        match typed(value, &self.allowed, class, items) {
            None => false,
            Some(Typed::AsAnswered) => is_among(value, &self.allowed),
            Some(Typed::AsDeclared) => match value {
                Value::Object(fields) => is_dict(fields, &self.allowed),
                Value::Array(list) if items == Some(Class::Dict) => is_dicts(list, &self.allowed),
                Value::Array(list) => is_list(list, &self.allowed),
                Value::String(text) => is_text(text, &self.allowed),
                _ => is_among(value, &self.allowed),
            },
        }
    }
}

/// Whether a value is of the class that is wanted, or at least of that of the answers.
fn typed(value: &Value, allowed: &[Value], class: Class, items: Option<Class>) -> Option<Typed> {
    let answered = answered(allowed);
    let is_other = answered.is_some_and(|it| it != class);
    let as_wanted = || {
        Some(if is_other {
            Typed::AsAnswered
        } else {
            Typed::AsDeclared
        })
    };
    if Class::of(value) == class {
        let (Some(items), Value::Array(list)) = (items, value) else {
            return as_wanted();
        };
        // It is enough if all items are of the right class beside one of the answers; an answer that is no list
        // asks for nothing.
        let suits = |answer: &Value| match answer {
            Value::Array(answer) => list
                .iter()
                .all(|item| typed(item, answer, items, None).is_some()),
            _ => true,
        };
        return allowed.iter().any(suits).then(as_wanted).flatten();
    }
    (answered == Some(Class::of(value))).then_some(Typed::AsAnswered)
}

/// The class of the first answer that is not "may be left out".
fn answered(allowed: &[Value]) -> Option<Class> {
    allowed
        .iter()
        .find(|answer| !is_empty_text(answer))
        .map(Class::of)
}

fn is_text(text: &str, allowed: &[Value]) -> bool {
    let text = standard_text(text);
    let mut texts = allowed.iter().filter_map(Value::as_str);
    texts.any(|answer| standard_text(answer) == text)
}

fn is_list(list: &[Value], allowed: &[Value]) -> bool {
    let list: Vec<Value> = list.iter().map(standard).collect();
    let Some(answers) = allowed.iter().map(sequence).collect::<Option<Vec<_>>>() else {
        return false;
    };
    answers.iter().any(|answer| {
        answer.len() == list.len()
            && answer
                .iter()
                .zip(&list)
                .all(|(answer, item)| equal(&standard(answer), item))
    })
}

/// What Python finds at the places of a value: a text has characters.
fn sequence(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items.clone()),
        Value::String(text) => Some(text.chars().map(|it| Value::from(it.to_string())).collect()),
        Value::Object(fields) if fields.is_empty() => Some(Vec::new()),
        _ => None,
    }
}

/// Whether it may have been this answer; of a dict each field has several.
fn may_be_answer(found: &Value, answer: &Value) -> bool {
    match (found, answer) {
        (Value::Array(items), Value::Array(answers)) => {
            let mut pairs = items.iter().zip(answers);
            items.len() == answers.len() && pairs.all(|(item, answer)| may_be_answer(item, answer))
        }
        (Value::Object(fields), Value::Object(answers)) => {
            let is_field = |(name, value): (&String, &Value)| {
                let allowed = answers.get(name).and_then(sequence).unwrap_or_default();
                allowed.iter().any(|answer| may_be_answer(value, answer))
            };
            let mut others = answers
                .iter()
                .filter(|(name, _)| !fields.contains_key(*name));
            fields.iter().all(is_field) && others.all(|(_, allowed)| may_be_left_out(allowed))
        }
        (found, answer) if is_redacted(found) => may_be(&standard(found), &standard(answer)),
        (found, answer) => equal(&standard(answer), &standard(found)),
    }
}

fn is_dict(fields: &Map<String, Value>, allowed: &[Value]) -> bool {
    for answer in allowed.iter().filter(|answer| !is_empty_text(answer)) {
        let Value::Object(answer) = answer else {
            return false;
        };
        let is_right = fields
            .iter()
            .all(|(name, value)| answer.get(name).is_some_and(|it| is_field(value, it)))
            && answer
                .iter()
                .all(|(name, allowed)| fields.contains_key(name) || may_be_left_out(allowed));
        if is_right {
            return true;
        }
    }
    false
}

fn is_field(value: &Value, allowed: &Value) -> bool {
    let value = standard(value);
    let allowed = sequence(allowed).unwrap_or_default();
    allowed
        .iter()
        .any(|answer| equal(&standard(answer), &value))
}

fn may_be_left_out(allowed: &Value) -> bool {
    match allowed {
        Value::Array(items) => items.iter().any(is_empty_text),
        // An empty text is in every text.
        Value::String(_) => true,
        Value::Object(fields) => fields.contains_key(""),
        _ => false,
    }
}

fn is_dicts(list: &[Value], allowed: &[Value]) -> bool {
    for answer in allowed {
        let answers = match answer {
            Value::Array(answers) => answers.as_slice(),
            // It is as long as an empty list, and then nothing is left to compare.
            Value::String(text) if text.is_empty() => &[],
            _ => return false,
        };
        let is_right = list.len() == answers.len()
            && list.iter().zip(answers).all(|(item, answer)| {
                item.as_object()
                    .is_some_and(|fields| is_dict(fields, std::slice::from_ref(answer)))
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

//! The single values of a result, and which of them a question asks for.

use std::cmp::{Ordering, Reverse};

use serde_json::{Map, Value};

use super::value::{is_money, is_unit};
use crate::{
    catalog::Tool,
    extract::Reading,
    history::Call,
    text::{identifier_words, stem},
    thesaurus::same,
};

/// A value that is told as one thing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// The keys that lead to the object it stands in.
    pub(super) above: Vec<String>,
    /// Its key.
    pub(super) key: String,
    /// The value: no object, unless it is an amount of money.
    pub(super) value: Value,
}

impl Field {
    /// Its name in words, with the words of what it is part of.
    pub(super) fn words(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        let wrapper = |key: &&String| {
            !matches!(
                key.as_str(),
                "result" | "data" | "output" | "response" | "item" | "value"
            )
        };
        for key in self.above.iter().filter(wrapper).chain([&self.key]) {
            for word in identifier_words(key) {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        words.join(" ")
    }
}

/// The fields of an object, nested objects entered, lists of objects left out.
pub(super) fn fields(value: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    if let Value::Object(map) = value {
        collect(map, &mut Vec::new(), &mut fields);
    }
    fields
}

fn collect(map: &Map<String, Value>, above: &mut Vec<String>, fields: &mut Vec<Field>) {
    for (key, value) in map {
        match value {
            Value::Object(inner) if !is_money(inner) => {
                if above.len() < 3 && fields.len() < 100 {
                    above.push(key.clone());
                    collect(inner, above, fields);
                    above.pop();
                }
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            }
            Value::Null => {}
            value => fields.push(Field {
                above: above.clone(),
                key: key.clone(),
                value: value.clone(),
            }),
        }
    }
}

/// Whether a field only gives back what the call said.
pub(super) fn echoes(field: &Field, call: &Call) -> bool {
    call.input
        .values()
        .any(|value| match (value, &field.value) {
            (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
            (one, other) => one == other,
        })
        && call.input.keys().any(|name| {
            let (one, other) = (identifier_words(name), identifier_words(&field.key));
            one == other || one.ends_with(&other) || other.ends_with(&one)
        })
}

/// The one field that a question asks for, if there is one.
///
/// A word of the question in the field's key counts twice, a synonym once. Where that is the same,
/// words of the tool's name and title decide, then the key with the fewest other words. Two points
/// in all are the least, and two fields with the same count are not told apart.
pub(super) fn focus<'f>(
    question: &Reading<'_>,
    tool: &Tool,
    call: &Call,
    fields: &'f [Field],
) -> Option<&'f Field> {
    let asked = asked(question, tool, call);
    let mut best: Option<(Points, &Field)> = None;
    let mut tied = false;
    for field in fields {
        let empty = field.value.as_array().is_some_and(Vec::is_empty);
        if empty || is_unit(&field.key) || echoes(field, call) {
            continue;
        }
        let words: Vec<String> = identifier_words(&field.key)
            .iter()
            .map(|word| stem(word))
            .collect();
        let is_id = matches!(
            words.last().map(String::as_str),
            Some("id" | "uuid" | "key")
        );
        if is_id
            && !words
                .last()
                .is_some_and(|word| asked.contains(&word.as_str()))
        {
            continue;
        }
        let points = Points::of(&words, &asked, tool);
        match best.as_ref().map(|(most, _)| points.cmp(most)) {
            Some(Ordering::Less) => {}
            Some(Ordering::Equal) => tied = true,
            Some(Ordering::Greater) | None => {
                best = Some((points, field));
                tied = false;
            }
        }
    }
    let enough = |points: &Points| points.of_question + points.of_tool >= 2;
    best.filter(|(points, _)| enough(points) && !tied)
        .map(|(_, field)| field)
}

/// The stems of a question that may name a field: not what it was asked about ("of customer 42").
fn asked<'q>(question: &'q Reading<'_>, tool: &Tool, call: &Call) -> Vec<&'q str> {
    let given = tool
        .params
        .iter()
        .filter(|param| call.input.contains_key(&param.name));
    let given: Vec<&String> = given.flat_map(|param| &param.stems).collect();
    question
        .words
        .iter()
        .filter(|word| {
            !word.is_stop() && !question.is_quoted(word.start) && !given.contains(&&word.stem)
        })
        .map(|word| word.stem.as_str())
        .collect()
}

/// How much speaks for a field, what weighs most first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Points {
    of_question: usize,
    of_tool: usize,
    other_words: Reverse<usize>,
}

impl Points {
    fn of(words: &[String], asked: &[&str], tool: &Tool) -> Self {
        let mut points = Self {
            of_question: 0,
            of_tool: 0,
            other_words: Reverse(0),
        };
        for word in words {
            let said = if asked.contains(&word.as_str()) {
                2
            } else {
                usize::from(asked.iter().any(|asked| same(asked, word)))
            };
            let own = tool.name.iter().chain(&tool.title).any(|own| own == word);
            points.of_question += said;
            points.of_tool += usize::from(own);
            points.other_words.0 += usize::from(said == 0 && !own);
        }
        points
    }
}

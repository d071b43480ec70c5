//! Whether a value of a result is more or less than a number.

use serde_json::Value;

use super::{
    fields::{Field, echoes, fields, focus},
    sentence, subject, unwrapped, value,
};
use crate::{
    catalog::Tool,
    comparison::{Comparison, Unit},
    extract::Reading,
    history::Call,
    records::data,
    text::{identifier_words, stem},
    thesaurus::same,
    wording::title,
};

/// Says of the result of a call whether the comparison holds. `before` is the question that the call was made for, and tells
/// which value is meant. `None` if it cannot be told which value that is.
pub(crate) fn compared(
    comparison: &Comparison,
    question: &Reading<'_>,
    before: &Reading<'_>,
    tool: &Tool,
    call: &Call,
    others: &[&Call],
) -> Option<String> {
    let result = call.result.as_ref().filter(|result| !result.is_error)?;
    let Some(data) = data(result).map(unwrapped) else {
        return in_text(comparison, tool, call, &result.as_text());
    };
    if let Value::String(text) = &data {
        return in_text(comparison, tool, call, text);
    }
    let fields = fields(&data);
    if is_failure(&fields) {
        return None;
    }
    let field = meant(comparison, question, before, tool, call, &fields)?;
    let subject = subject(tool, call, others);
    let told = sentence(field, &fields, subject.as_ref());
    let own = Unit::in_key(&identifier_words(&field.key))
        .or_else(|| value::unit_of(field, &fields).map(Unit::named));
    match (&comparison.unit, own) {
        (Some(Unit::Currency(asked)), Some(Unit::Currency(own))) if own != *asked => {
            return Some(format!("{told} What that is in {asked} I do not know."));
        }
        // Whether 7,000 of something are more than 70 of something else is not known.
        (Some(asked @ (Unit::Currency(_) | Unit::Measure(_))), own)
            if own.as_ref() != Some(asked) =>
        {
            return None;
        }
        (Some(Unit::Noun(_)), Some(_)) => return None,
        (None, Some(own)) if own.is_minor() => return None,
        _ => {}
    }
    Some(verdict(comparison, number(&field.value)?, &told))
}

/// "Yes: the account value of customer 42 is 1,234.56 EUR, which is more than 100 euros."
fn verdict(comparison: &Comparison, found: f64, told: &str) -> String {
    let told = told.trim_end_matches('.');
    let told = told
        .strip_prefix("The ")
        .map_or_else(|| told.to_owned(), |rest| format!("the {rest}"));
    let words = comparison.in_words();
    if comparison.holds(found) {
        format!("Yes: {told}, which is {words}.")
    } else {
        format!("No: {told}, which is {}.", comparison.in_words_denied())
    }
}

/// The number that a text is, unless it was asked with it.
fn in_text(comparison: &Comparison, tool: &Tool, call: &Call, text: &str) -> Option<String> {
    if !comparison.points_back || !comparison.about.is_empty() {
        return None;
    }
    // A number of some unit is not known to be one of a text.
    if comparison.unit.is_some() {
        return None;
    }
    // Of a text in words nobody knows what its number says.
    let text = text.trim();
    let found: f64 = text.parse().ok().filter(|_| value::is_decimal(text))?;
    let mut given = call.input.values().filter_map(number);
    if given.any(|given| given.total_cmp(&found).is_eq()) {
        return None;
    }
    let told = format!("{} gave {found}", title(tool));
    Some(verdict(comparison, found, &told))
}

/// The field that is compared: the one that the question names, else the one that was asked for before, else the only one.
fn meant<'f>(
    comparison: &Comparison,
    question: &Reading<'_>,
    before: &Reading<'_>,
    tool: &Tool,
    call: &Call,
    fields: &'f [Field],
) -> Option<&'f Field> {
    let candidates: Vec<&Field> = fields
        .iter()
        .filter(|field| number(&field.value).is_some())
        .filter(|field| !echoes(field, call) && !names_something(field))
        .collect();
    let is_candidate = |field: &&Field| candidates.iter().any(|other| std::ptr::eq(*other, *field));
    if let Some(Unit::Noun(noun)) = &comparison.unit {
        // "more than 3 orders": what is counted is a field, or nothing that is known.
        let mut counted = candidates.iter().filter(|field| has(field, noun));
        let one = counted.next()?;
        return counted.next().is_none().then_some(*one);
    }
    let known = |word: &String| {
        let of_call = tool
            .params
            .iter()
            .filter(|param| call.input.contains_key(&param.name));
        let mut of_call = of_call.flat_map(|param| &param.stems);
        of_call.any(|own| same(own, word)) || tool.name.iter().any(|own| same(own, word))
    };
    let of_fields = |word: &String| candidates.iter().any(|field| has(field, word));
    // Other words may mean something else, which nothing here holds.
    if !comparison
        .about
        .iter()
        .all(|word| known(word) || of_fields(word))
    {
        return None;
    }
    let named = comparison.about.iter().any(of_fields);
    if !named && !comparison.points_back {
        return None;
    }
    if named && let Some(field) = focus(question, tool, call, fields).filter(is_candidate) {
        return Some(field);
    }
    if let Some(field) = focus(before, tool, call, fields) {
        return is_candidate(&field).then_some(field);
    }
    match candidates[..] {
        [only] => Some(only),
        _ => None,
    }
}

fn has(field: &Field, word: &str) -> bool {
    let words = identifier_words(&field.key);
    words.iter().any(|own| same(&stem(own), word))
}

/// Ids, codes and years are no amounts.
fn names_something(field: &Field) -> bool {
    const NAMING: &[&str] = &[
        "id",
        "ids",
        "uuid",
        "key",
        "code",
        "status",
        "errno",
        "error",
        "retry",
        "port",
        "zip",
        "postcode",
        "phone",
        "seed",
        "timestamp",
        "page",
        "offset",
        "index",
        "version",
        "year",
    ];
    let words = identifier_words(&field.key);
    words.last().is_some_and(|word| word == "number")
        || words.iter().any(|word| NAMING.contains(&word.as_str()))
}

/// Whether a result says of itself that something went wrong.
fn is_failure(fields: &[Field]) -> bool {
    fields.iter().any(|field| {
        let words = identifier_words(&field.key);
        let fails = matches!(
            words.last().map(String::as_str),
            Some("error" | "errors" | "failure" | "exception")
        );
        let is_ok = matches!(words.last().map(String::as_str), Some("ok" | "success"));
        fails && field.value != Value::Bool(false) || is_ok && field.value == Value::Bool(false)
    })
}

/// A number, or an amount that travels as text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if value::is_decimal(text) => text.parse().ok(),
        _ => None,
    }
}

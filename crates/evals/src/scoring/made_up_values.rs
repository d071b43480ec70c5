//! Finds made-up values: values in an answer that the model has not read.
//!
//! A value is an e-mail address, or a word with at least two digits: a number, a date or an
//! identifier. A value that the model has computed also counts as made up.

use std::collections::HashSet;

use switchboard_domain::ToolResult;
use switchboard_orchestration::Run;

/// Maximum number of made-up values of an answer. Further values are not counted.
const MAX_VALUES: usize = 100;

/// Maximum size in bytes of a made-up value in a report. Longer values are cut.
const MAX_VALUE_BYTES: usize = 100;

/// The texts that a model has read before it wrote its answer.
pub(crate) struct KnownValues {
    /// The texts in lower case.
    text: String,
    /// The numbers in the texts, without thousands separators and trailing zeros.
    numbers: HashSet<String>,
}

impl KnownValues {
    /// Returns the values of the messages with which the run began, including system instructions,
    /// and of all tool results.
    pub(crate) fn from_run(run: &Run) -> Self {
        let messages = run.messages();
        let initial = messages.len() - run.new_messages().len();
        let input = messages[..initial].iter().map(|message| message.text());
        let results = messages.iter().flat_map(|message| message.tool_results());
        let texts = input.chain(results.map(ToolResult::as_text));
        Self::from_text(&texts.collect::<Vec<_>>().join("\n"))
    }

    fn from_text(text: &str) -> Self {
        // A comma can also separate the items of a list.
        let numbers = split_numbers(text).flat_map(|it| it.split(',').chain([it]));
        Self {
            numbers: numbers.map(normalize_number).collect(),
            text: text.to_lowercase(),
        }
    }

    /// Returns the different values of the answer that are not known.
    pub(crate) fn find_made_up_values(&self, answer: &str) -> Vec<String> {
        let words = answer.split(|c: char| !c.is_alphanumeric() && !"-.,:/_@+".contains(c));
        let mut found = Vec::new();
        for word in words {
            let value = word.trim_matches(|c: char| !c.is_alphanumeric());
            let value = value.trim_start_matches("mailto:");
            if found.len() < MAX_VALUES && is_value(value) && !self.is_known(value) {
                let value = &value[..value.floor_char_boundary(MAX_VALUE_BYTES)];
                if !found.iter().any(|it| it == value) {
                    found.push(value.to_owned());
                }
            }
        }
        found
    }

    /// Returns whether the texts contain the value, not as a part of a longer number. For a value
    /// that begins with a digit, such as a date, it is sufficient that they contain its numbers.
    fn is_known(&self, value: &str) -> bool {
        let value = &value.to_lowercase();
        let mut numbers = split_numbers(value)
            .filter(|it| has_two_digits(it))
            .peekable();
        let is_digit = |c: char| c.is_ascii_digit();
        if value.starts_with(is_digit)
            && !value.contains('@')
            && numbers.peek().is_some()
            && numbers.all(|it| self.numbers.contains(&normalize_number(it)))
        {
            return true;
        }
        self.text.match_indices(value).any(|(at, _)| {
            let (before, after) = (&self.text[..at], &self.text[at + value.len()..]);
            !before.ends_with(is_digit) && !after.starts_with(is_digit)
        })
    }
}

fn is_value(word: &str) -> bool {
    let domain = word.split_once('@').map(|(_, domain)| domain);
    has_two_digits(word) || domain.is_some_and(|it| it.contains('.'))
}

fn has_two_digits(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).count() >= 2
}

/// Returns the numbers in a text with their separators, such as `1,234.50`.
fn split_numbers(text: &str) -> impl Iterator<Item = &str> {
    let numbers = text.split(|c: char| !c.is_ascii_digit() && !".,_".contains(c));
    let numbers = numbers.map(|it| it.trim_matches(['.', ',', '_']));
    numbers.filter(|it| !it.is_empty())
}

/// Removes thousands separators and zeros at the end of the fraction: `1,234.50` becomes `1234.5`.
/// A comma is a decimal separator unless three digits follow it.
fn normalize_number(number: &str) -> String {
    let is_decimal = |at: &usize| number[*at..].starts_with('.') || number.len() - at != 4;
    let decimal = number.rfind(['.', ',']).filter(is_decimal);
    let (whole, fraction) = number.split_at(decimal.unwrap_or(number.len()));
    let whole = whole.replace(['.', ',', '_'], "");
    let fraction = fraction.replace(',', ".");
    format!(
        "{whole}{}",
        fraction.trim_end_matches('0').trim_end_matches('.')
    )
}

#[cfg(test)]
#[path = "made_up_values_tests.rs"]
mod tests;

//! Finds values in the text of a question: numbers, quotations, dates, ids and names.

use jiff::{ToSpan as _, civil::Date};

use crate::word_stems::stem_word;

/// English words for the numbers 1 to 10, in order.
const NUMBERS: [&str; 10] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];

/// Words between the values of a list, as in "42 and 7".
const LIST_WORDS: [&str; 2] = ["and", "or"];

/// A word of the question. Words are separated by white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionToken {
    /// The word without punctuation around it.
    pub(crate) text: String,
    /// The stem of the word in lower case, for comparisons with parameter names.
    pub(crate) stem: String,
    /// Whether punctuation or the end of a line follows the word.
    pub(crate) ends_phrase: bool,
}

/// A value in a question, or a list of values such as "42 and 7", with the words around it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValueGroup<T> {
    pub(crate) values: Vec<T>,
    /// The stem of the word before the first value, or an empty string.
    pub(crate) before: String,
    /// The stems of up to three words after the last value.
    pub(crate) after: Vec<String>,
}

/// Values found in the text of one question.
#[derive(Debug, Clone)]
pub(crate) struct QuestionValues {
    /// All words of the question that are not in quotations.
    pub(crate) tokens: Vec<QuestionToken>,
    pub(crate) quoted: Vec<String>,
    pub(crate) numbers: Vec<ValueGroup<f64>>,
    /// Ids: words that contain both a digit and a letter, such as `AB-1234`.
    pub(crate) ids: Vec<ValueGroup<String>>,
    /// Dates in ISO 8601 format (`2026-01-31`), in the order of the text. Words such as "today" are
    /// already converted to dates.
    pub(crate) dates: Vec<String>,
    /// Names: sequences of adjacent capitalized words, such as `Grace Hopper`. The first word of
    /// the question, ids and the word `I` do not count.
    pub(crate) names: Vec<String>,
}

impl QuestionValues {
    pub(crate) fn from_text(text: &str, today: Date) -> Self {
        let (unquoted, quoted) = split_quotations(text);
        let tokens = tokenize_question(&unquoted);
        Self {
            quoted,
            numbers: group_values(&tokens, parse_number),
            ids: group_values(&tokens, parse_id),
            dates: tokens
                .iter()
                .filter_map(|token| parse_date(token, today))
                .collect(),
            names: find_names(&tokens),
            tokens,
        }
    }

    /// Returns the words that follow the last occurrence of any word in `markers`, up to
    /// punctuation or the line end. Returns `None` if no marker occurs or no word follows.
    pub(crate) fn phrase_after_word(&self, markers: &[&str]) -> Option<String> {
        let is_marker =
            |token: &QuestionToken| markers.contains(&token.text.to_lowercase().as_str());
        let at = self.tokens.iter().rposition(is_marker)?;
        self.phrase_from_token(at + 1)
    }

    /// Returns the words from the token at index `start` up to punctuation or a line end. An
    /// article at the start is omitted if further words follow. Returns `None` if `start` is not
    /// the index of a token.
    pub(crate) fn phrase_from_token(&self, start: usize) -> Option<String> {
        let rest = self.tokens.get(start..)?;
        let end = rest.iter().position(|token| token.ends_phrase);
        let phrase = rest.get(..=end.unwrap_or(rest.len().checked_sub(1)?))?;
        let is_article = |token: &QuestionToken| ["a", "an", "the"].contains(&token.text.as_str());
        let skipped = usize::from(phrase.len() > 1 && phrase.first().is_some_and(is_article));
        let words: Vec<&str> = phrase[skipped..]
            .iter()
            .map(|token| token.text.as_str())
            .collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Splits a text into the text outside of quotation marks and a list of the quoted texts.
fn split_quotations(text: &str) -> (String, Vec<String>) {
    let mut unquoted = String::new();
    let mut quoted = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '`', '“']) {
        let (before, from_quote) = rest.split_at(start);
        let Some(open) = from_quote.chars().next() else {
            break;
        };
        let close = if open == '“' { '”' } else { open };
        let inner = &from_quote[open.len_utf8()..];
        let Some(end) = inner.find(close) else {
            break;
        };
        unquoted.push_str(before);
        unquoted.push_str(" , ");
        quoted.push(inner[..end].to_owned());
        rest = &inner[end + close.len_utf8()..];
    }
    unquoted.push_str(rest);
    (unquoted, quoted)
}

fn tokenize_question(text: &str) -> Vec<QuestionToken> {
    let mut tokens: Vec<QuestionToken> = Vec::new();
    for line in text.lines() {
        for word in line.split_whitespace() {
            let is_edge = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '-' | '_' | '~');
            let bare = word
                .trim_start_matches(is_edge)
                .trim_end_matches(|c: char| is_edge(c) || c == '-');
            let bare = bare.strip_suffix("'s").unwrap_or(bare);
            let ends_phrase = word.ends_with([',', ';', '.', '?', '!', ':', ')']);
            if bare.is_empty() {
                if let Some(last) = tokens.last_mut() {
                    last.ends_phrase |= ends_phrase;
                }
                continue;
            }
            tokens.push(QuestionToken {
                text: bare.to_owned(),
                stem: stem_word(&bare.to_lowercase()),
                ends_phrase,
            });
        }
        if let Some(last) = tokens.last_mut() {
            last.ends_phrase = true;
        }
    }
    tokens
}

/// Applies `read` to every token and groups the values that it returns. The values of a list such
/// as "42, 43 and 7" form one group. Any other value is a group of its own.
fn group_values<T>(
    tokens: &[QuestionToken],
    read: impl Fn(&QuestionToken) -> Option<T>,
) -> Vec<ValueGroup<T>> {
    let mut groups: Vec<ValueGroup<T>> = Vec::new();
    // Index of the token after the value that was found last.
    let mut end = None;
    for (at, token) in tokens.iter().enumerate() {
        let Some(value) = read(token) else {
            continue;
        };
        let is_list_word =
            |between: &QuestionToken| LIST_WORDS.contains(&between.text.to_lowercase().as_str());
        let continues = end.is_some_and(|end: usize| {
            tokens[end..at].iter().all(is_list_word) && (end < at || tokens[end - 1].ends_phrase)
        });
        end = Some(at + 1);
        let after = tokens[at + 1..].iter().take(3);
        let after = after.map(|token| token.stem.clone()).collect();
        if continues && let Some(group) = groups.last_mut() {
            group.values.push(value);
            group.after = after;
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        groups.push(ValueGroup {
            values: vec![value],
            before: before.map(|token| token.stem.clone()).unwrap_or_default(),
            after,
        });
    }
    groups
}

fn parse_number(token: &QuestionToken) -> Option<f64> {
    let text = token.text.to_lowercase();
    if let Some(at) = NUMBERS.iter().position(|number| *number == text) {
        return u32::try_from(at + 1).ok().map(f64::from);
    }
    let digits = text.trim_start_matches('#').replace(',', "");
    let starts_with_digit = digits
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|number: &f64| starts_with_digit && number.is_finite())
}

fn parse_id(token: &QuestionToken) -> Option<String> {
    looks_like_id(&token.text).then(|| token.text.clone())
}

/// Returns whether a text has the form of an id, such as `AB-1234`.
pub(crate) fn looks_like_id(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && text.contains(char::is_alphabetic)
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "-_:.".contains(c))
}

/// Returns the date that a word stands for, in ISO 8601 format. The word is a date such as
/// `2026-01-31`, or "today", "yesterday" or "tomorrow". Returns `None` for other words.
fn parse_date(token: &QuestionToken, today: Date) -> Option<String> {
    let date = match token.text.to_lowercase().as_str() {
        "today" => today,
        "yesterday" => today.checked_sub(1.day()).ok()?,
        "tomorrow" => today.checked_add(1.day()).ok()?,
        text if text.len() == "2026-01-31".len() => text.parse().ok()?,
        _ => return None,
    };
    Some(date.to_string())
}

fn find_names(tokens: &[QuestionToken]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut continues = false;
    for (at, token) in tokens.iter().enumerate() {
        let is_capitalized = token.text.starts_with(char::is_uppercase) && token.text != "I";
        if at == 0 || !is_capitalized || parse_id(token).is_some() {
            continues = false;
            continue;
        }
        match names.last_mut() {
            Some(name) if continues => {
                name.push(' ');
                name.push_str(&token.text);
            }
            _ => names.push(token.text.clone()),
        }
        continues = !token.ends_phrase;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> QuestionValues {
        QuestionValues::from_text(text, Date::constant(2026, 10, 21))
    }

    #[test]
    fn listed_numbers_are_one_group() {
        let numbers = values("Compare customers 42, 43 and 7 with the 5 newest").numbers;
        let lists: Vec<_> = numbers.iter().map(|group| group.values.clone()).collect();
        assert_eq!(lists, [vec![42.0, 43.0, 7.0], vec![5.0]]);
        assert_eq!(numbers[0].before, "custom");
        assert_eq!(numbers[1].after, ["newest"]);
        assert!(values("infinity nan -x 1e999").numbers.is_empty());
    }

    #[test]
    fn quotations_names_ids_and_dates_are_found() {
        let values = values(
            "Tell Grace Hopper about \"late delivery\" of AB-12 from yesterday until 2026-11-02, \
             Ada.",
        );
        assert_eq!(values.quoted, ["late delivery"]);
        assert_eq!(values.names, ["Grace Hopper", "Ada"]);
        assert_eq!(values.ids[0].values, ["AB-12"]);
        assert_eq!(values.dates, ["2026-10-20", "2026-11-02"]);
        assert!(super::tests::values("on 2026-02-31").dates.is_empty());
    }

    #[test]
    fn a_phrase_ends_at_punctuation() {
        let values = values("A ticket about a late delivery, please");
        assert_eq!(
            values.phrase_after_word(&["about"]).unwrap(),
            "late delivery"
        );
        assert_eq!(values.phrase_after_word(&["for"]), None);
    }

    #[test]
    fn an_open_quotation_is_plain_text() {
        assert!(values("5\" screens of 3 customers").quoted.is_empty());
    }
}

//! Numbers in digits and in words.

use std::sync::LazyLock;

use serde_json::Number;

use super::{
    Amount, Findings, Found,
    form::{Form, Signs, digit},
};
use crate::text::Word;

pub(super) static DIGITS: LazyLock<Form<()>> = LazyLock::new(|| {
    Form::new(
        // Only these digits are read as numbers: those of all scripts are some seventy ranges in each place, which takes half a millisecond.
        r"(?P<hash>\#\s?)?(?P<minus>[-−])?[$€£]?(?P<digits>[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)",
        digit,
        (),
    )
});

const UNITS: &[&str] = &[
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: &[&str] = &[
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// Finds numbers: `42`, `#42`, `1,234.5`, `-3`, `$12.50`, `seven`, `twenty-five`.
pub(super) fn find(signs: &Signs<'_>, words: &[Word], findings: &mut Findings) {
    let text = signs.text();
    if let Some(regex) = DIGITS.for_text(signs) {
        for captures in regex.captures_iter(text) {
            let (Some(whole), Some(digits)) = (captures.get(0), captures.name("digits")) else {
                continue;
            };
            let minus = captures.name("minus").is_some();
            let before = text[..whole.start()].chars().next_back();
            let after = text[whole.end()..].chars().next();
            let glued = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.')
                || after.is_some_and(|c| c.is_alphanumeric() || c == '_');
            // "2-3" is no minus three, and "A-7" no number of its own.
            let dashed = before.is_some_and(|c| c == '-');
            if glued || dashed {
                continue;
            }
            if let Some(amount) = amount(digits.as_str(), minus, captures.name("hash").is_some()) {
                findings.add(whole.start(), whole.end(), Found::Number(amount));
            }
        }
    }
    find_words(words, findings);
}

fn amount(digits: &str, minus: bool, hash: bool) -> Option<Amount> {
    let european = digits.rfind(',') > digits.rfind('.') && digits.contains('.');
    let plain = if european {
        digits.replace('.', "").replace(',', ".")
    } else {
        digits.replace(',', "")
    };
    let signed = if minus { format!("-{plain}") } else { plain };
    if let Ok(whole) = signed.parse::<i64>() {
        return Some(Amount {
            number: whole.into(),
            whole: Some(whole),
            hash,
        });
    }
    let value: f64 = signed.parse().ok()?;
    Some(Amount {
        number: Number::from_f64(value)?,
        whole: None,
        hash,
    })
}

fn find_words(words: &[Word], findings: &mut Findings) {
    let mut i = 0;
    while let Some(word) = words.get(i) {
        let Some(value) = word_value(&word.lower) else {
            i += 1;
            continue;
        };
        let unit = words
            .get(i + 1)
            .filter(|next| value >= 20 && next.start <= word.end + 1)
            .and_then(|next| word_value(&next.lower).map(|unit| (unit, next.end)))
            .filter(|(unit, _)| (1..10).contains(unit));
        let (value, end) = unit.map_or((value, word.end), |(unit, end)| (value + unit, end));
        // "the first one", "that one": a pronoun, not a number.
        let pronoun = value == 1
            && (i
                .checked_sub(1)
                .and_then(|j| words.get(j))
                .is_some_and(|before| {
                    before.is_stop() || before.lower.ends_with("st") || before.lower == "newest"
                })
                || words.get(i + 1).is_none_or(Word::is_stop));
        if !pronoun {
            let amount = Amount {
                number: value.into(),
                whole: Some(value),
                hash: false,
            };
            findings.add(word.start, end, Found::Number(amount));
        }
        i += if unit.is_some() { 2 } else { 1 };
    }
}

/// The value of a number word up to ninety.
pub(crate) fn word_value(lower: &str) -> Option<i64> {
    let unit = UNITS.iter().position(|word| *word == lower);
    let tens = || {
        TENS.iter()
            .position(|word| *word == lower)
            .map(|i| 20 + 10 * i)
    };
    unit.or_else(tens)
        .and_then(|value| i64::try_from(value).ok())
}

//! Questions whether a value is more or less than a number: "Is that more than 100 euros?"

use std::cmp::Ordering;

use crate::{
    extract::{Found, Reading},
    text::{Word, stem},
};

/// What a question compares with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    relation: Relation,
    number: f64,
    /// The relation and the number in the person's words: "more than 100 euros".
    said: String,
    /// What the number counts: a currency by its code, or the word after it.
    pub(crate) unit: Option<Unit>,
    /// It says "it", "that" and the like of what is compared.
    pub(crate) points_back: bool,
    /// The stems of the words that say what is compared, if any do.
    pub(crate) about: Vec<String>,
}

/// What a number counts or measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A currency by its ISO code.
    Currency(&'static str),
    /// A measure, as its stem.
    Measure(String),
    /// Some other word, as its stem: what is counted.
    Noun(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    More,
    Less,
    AtLeast,
    AtMost,
    Equal,
}

/// Words with which such questions begin.
const ASKING: &[&str] = &[
    "is", "are", "was", "were", "does", "do", "did", "has", "have", "isn't", "aren't", "doesn't",
];
/// Words before these.
const OPENING: &[&str] = &["and", "but", "so", "or", "then", "ok", "okay", "well"];
/// Words that point at what was spoken of.
const BACK: &[&str] = &["it", "that", "this", "its", "her", "his", "their"];
/// What is asked for anew: the result that is there may be old.
const ANEW: &[&str] = &["now", "currently", "still", "again", "today", "meanwhile"];
/// Needs "than" after it.
const MORE: &[&str] = &[
    "more", "greater", "higher", "larger", "bigger", "warmer", "hotter", "heavier", "longer",
    "taller", "faster", "richer",
];
const LESS: &[&str] = &[
    "less", "lower", "smaller", "fewer", "colder", "cooler", "lighter", "shorter", "slower",
    "cheaper", "poorer",
];
/// Needs nothing after it.
const ABOVE: &[&str] = &["over", "above", "beyond", "exceed", "exceeds", "exceeding"];
const BELOW: &[&str] = &["under", "below", "beneath"];
/// How people call and write currencies.
const CURRENCIES: &[(&str, &str)] = &[
    ("€", "EUR"),
    ("eur", "EUR"),
    ("euro", "EUR"),
    ("euros", "EUR"),
    ("$", "USD"),
    ("usd", "USD"),
    ("dollar", "USD"),
    ("dollars", "USD"),
    ("£", "GBP"),
    ("gbp", "GBP"),
    ("pound", "GBP"),
    ("pounds", "GBP"),
    ("chf", "CHF"),
    ("yen", "JPY"),
    ("jpy", "JPY"),
];
/// Measures that a value may have without saying so.
const MEASURES: &[&str] = &[
    "degree",
    "celsius",
    "percent",
    "%",
    "kg",
    "kilo",
    "gram",
    "km",
    "mile",
    "metre",
    "meter",
    "litre",
    "liter",
    "second",
    "minute",
    "hour",
    "byte",
    "day",
    "week",
    "month",
    "year",
    "m",
    "cm",
    "mm",
    "g",
    "mg",
    "t",
    "ton",
    "tonne",
    "lb",
    "lbs",
    "ounce",
    "oz",
    "inch",
    "foot",
    "feet",
    "yard",
    "kilometre",
    "kilometer",
    "kilogram",
    "fahrenheit",
    "kelvin",
    "kb",
    "mb",
    "gb",
    "tb",
    "ms",
    "s",
    "sec",
    "min",
    "h",
    "cent",
    "pence",
    "watt",
    "kw",
    "kwh",
    "volt",
    "l",
    "ml",
    "knot",
];
/// The hundredth of a currency: who compares an amount does not mean it, unless it is said.
const MINOR: &[&str] = &["cent", "pence", "penny", "minor", "micros", "millis"];

impl Comparison {
    /// The comparison that a question is, if it is one with one number and nothing else that says what is meant.
    pub(crate) fn of(reading: &Reading<'_>) -> Option<Self> {
        let words = &reading.words;
        let from = words
            .iter()
            .position(|word| !OPENING.contains(&word.lower.as_str()))?;
        let is_asking = ASKING.contains(&words.get(from)?.lower.as_str());
        let [mention] = reading.mentions.as_slice() else {
            return None;
        };
        let Found::Number(amount) = &mention.found else {
            return None;
        };
        let is_anew = words.iter().any(|word| ANEW.contains(&word.lower.as_str()));
        if !is_asking || amount.hash || is_anew {
            return None;
        }
        let number = amount.number.as_f64()?;
        let before: Vec<&Word> = words
            .iter()
            .skip(from + 1)
            .take_while(|word| word.end <= mention.start)
            .collect();
        let (relation, at) = relation(&before)?;
        let written = reading.slice(mention.start, mention.end);
        let signs = currency(written.trim_start_matches(|c: char| c.is_alphabetic()));
        let after: Vec<&Word> = reading.words_after(mention.end).collect();
        let percent = reading
            .text
            .get(mention.end..)?
            .trim_start()
            .starts_with('%');
        let (unit, taken) = match (signs, after.first()) {
            (Some(code), _) => (Some(Unit::Currency(code)), 0),
            _ if percent => (Some(Unit::Measure(stem("percent"))), 0),
            (None, Some(word)) if !word.is_stop() => (Some(unit(word)), 1),
            (None, _) => (None, 0),
        };
        let end = match after.first().filter(|_| taken == 1) {
            Some(word) => word.end,
            None if percent => reading.text.get(mention.end..)?.find('%')? + mention.end + 1,
            None => mention.end,
        };
        let start = before.get(at).map_or(mention.start, |word| word.start);
        let rest = before.iter().take(at).chain(after.iter().skip(taken));
        let points_back = before
            .iter()
            .take(at)
            .any(|word| BACK.contains(&word.lower.as_str()));
        let about: Vec<String> = rest
            .filter(|word| !word.is_stop() && word.lower != "worth")
            .map(|word| word.stem.clone())
            .collect();
        Some(Self {
            relation,
            number,
            said: reading.slice(start, end).to_owned(),
            unit,
            points_back,
            about,
        })
    }

    /// Whether it is so of a value.
    pub(crate) fn holds(&self, value: f64) -> bool {
        match self.relation {
            Relation::More => value > self.number,
            Relation::Less => value < self.number,
            Relation::AtLeast => value >= self.number,
            Relation::AtMost => value <= self.number,
            // Both were read from decimal text: what is written alike is the same.
            Relation::Equal => value.partial_cmp(&self.number) == Some(Ordering::Equal),
        }
    }

    /// The same for what is not so: "not more than 100", and "more than 100" for "no more than 100".
    pub(crate) fn in_words_denied(&self) -> String {
        let words = self.in_words();
        match words.split_once(' ') {
            Some((no, rest)) if no.eq_ignore_ascii_case("no") => rest.to_owned(),
            _ => format!("not {words}"),
        }
    }

    /// The relation and the number, after "which is".
    pub(crate) fn in_words(&self) -> String {
        let word = |lower: &str| self.said.to_lowercase().starts_with(lower);
        // "Does it exceed 100" goes on as "which is more than 100".
        match self.said.split_once(' ') {
            Some((_, rest)) if word("exceed") => format!("more than {rest}"),
            _ => self.said.clone(),
        }
    }
}

/// The relation that the words right before the number say, and where they begin.
fn relation(before: &[&Word]) -> Option<(Relation, usize)> {
    let lower: Vec<&str> = before.iter().map(|word| word.lower.as_str()).collect();
    // "more than the 100 euros"
    let cut = lower
        .iter()
        .rposition(|word| !matches!(*word, "the" | "some" | "these" | "those"))?
        + 1;
    let lower = lower.get(..cut)?;
    let negated = |at: usize| {
        let before = at.checked_sub(1).and_then(|i| lower.get(i));
        before.is_some_and(|word| *word == "no")
    };
    // "Is that not more than …?" may ask either.
    if lower.contains(&"not") {
        return None;
    }
    let found = match lower {
        [.., a, "than"] if MORE.contains(a) => (Relation::More, lower.len() - 2),
        [.., a, "than"] if LESS.contains(a) => (Relation::Less, lower.len() - 2),
        [.., a, "than", "or", "equal", "to"] if MORE.contains(a) => {
            (Relation::AtLeast, lower.len() - 5)
        }
        [.., a, "than", "or", "equal", "to"] if LESS.contains(a) => {
            (Relation::AtMost, lower.len() - 5)
        }
        [.., "at", "least"] => (Relation::AtLeast, lower.len() - 2),
        [.., "at", "most"] => (Relation::AtMost, lower.len() - 2),
        [.., "equal", "to"] => (Relation::Equal, lower.len() - 2),
        [.., "exactly"] => (Relation::Equal, lower.len() - 1),
        [.., a] if ABOVE.contains(a) => (Relation::More, lower.len() - 1),
        [.., a] if BELOW.contains(a) => (Relation::Less, lower.len() - 1),
        _ => return None,
    };
    Some(match found {
        (Relation::More, at) if negated(at) => (Relation::AtMost, at - 1),
        (Relation::Less, at) if negated(at) => (Relation::AtLeast, at - 1),
        (_, at) if negated(at) => return None,
        found => found,
    })
}

/// The currency that a number is written with, by its sign.
fn currency(written: &str) -> Option<&'static str> {
    let is_in = |(sign, _): &&(&str, &str)| !sign.is_ascii() || *sign == "$";
    let mut signs = CURRENCIES.iter().filter(is_in);
    signs
        .find(|(sign, _)| written.contains(sign))
        .map(|(_, code)| *code)
}

fn unit(word: &Word) -> Unit {
    let currency = CURRENCIES.iter().find(|(name, _)| *name == word.lower);
    if let Some((_, code)) = currency {
        return Unit::Currency(code);
    }
    if MEASURES.iter().any(|measure| stem(measure) == word.stem) {
        Unit::Measure(word.stem.clone())
    } else {
        Unit::Noun(word.stem.clone())
    }
}

impl Unit {
    /// The unit that a field's name holds: `distance_km`, `total_eur`.
    pub(crate) fn in_key(words: &[String]) -> Option<Self> {
        let last = words.last()?;
        let currency = CURRENCIES.iter().find(|(name, _)| name == last);
        let is_known = |list: &[&str]| {
            list.iter()
                .any(|own| *own == last || stem(own) == stem(last))
        };
        match currency {
            Some((_, code)) => Some(Self::Currency(code)),
            None if is_known(MEASURES) || is_known(MINOR) => Some(Self::Measure(stem(last))),
            None => None,
        }
    }

    /// Whether it is the hundredth of something.
    pub(crate) fn is_minor(&self) -> bool {
        matches!(self, Self::Measure(own) if MINOR.iter().any(|minor| stem(minor) == *own))
    }

    /// What a result calls a unit, to be compared with it.
    pub(crate) fn named(text: &str) -> Self {
        let lower = text.trim().to_lowercase();
        let currency = CURRENCIES.iter().find(|(name, _)| *name == lower);
        match currency {
            Some((_, code)) => Self::Currency(code),
            None if lower == "%" => Self::Measure(stem("percent")),
            None => Self::Measure(stem(&lower)),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    fn comparison(text: &str) -> Option<Comparison> {
        Comparison::of(&Reading::new(text, Date::constant(2026, 10, 21)))
    }

    #[test]
    fn what_is_more_and_what_is_less_is_told_apart() {
        for (text, below, same, above) in [
            ("Is it more than 20 degrees?", false, false, true),
            ("And is that under 20?", true, false, false),
            ("Is this at least 20 kg?", false, true, true),
            ("Was that no more than 20?", true, true, false),
            ("Does it exceed $20?", false, false, true),
            ("Is it greater than or equal to 20?", false, true, true),
            ("Is that exactly 20?", false, true, false),
        ] {
            let found = comparison(text).expect(text);
            assert!(found.points_back, "{text}");
            let told = [19.5, 20.0, 20.5].map(|value| found.holds(value));
            assert_eq!(told, [below, same, above], "{text}");
        }
    }

    #[test]
    fn what_is_no_comparison_with_one_number_is_none() {
        for text in [
            "Is it 20?",
            "Is it more than that?",
            "Is it more than 20 or less than 30?",
            "Is it more than 20 in Paris?",
            "Is it more than 20 now?",
            "I paid more than 20",
            "Is it not exactly 20?",
            "Is this not more than 20?",
            "Is \"it\" more than 20?",
        ] {
            assert_eq!(comparison(text), None, "{text}");
        }
    }

    #[test]
    fn it_says_in_what_and_about_what() {
        let found = comparison("Is the total above 20 pounds?").expect("one");
        assert_eq!(found.unit, Some(Unit::Currency("GBP")));
        assert!(!found.points_back);
        assert_eq!(found.about, [stem("total")]);
        assert_eq!(found.in_words(), "above 20 pounds");
        let found = comparison("Does that exceed €20?").expect("one");
        assert_eq!(found.unit, Some(Unit::Currency("EUR")));
        assert_eq!(found.in_words(), "more than €20");
    }
}

//! Numbers that count results, and the one that a singular implies: "the most recent customer".

use serde_json::Value;

use super::{
    Places,
    nearness::{noun_before, nouns_after},
};
use crate::{
    catalog::Tool,
    chain::ORDINALS,
    extract::{Mention, Reading, word_value},
    mood::is_verb_of_change,
    schema::{Kind, Param},
    text::{Word, is_plural},
    thesaurus::same,
};

/// Words that select from an ordered list.
pub(crate) const SELECTING: &[&str] = &[
    "recent", "latest", "newest", "last", "first", "top", "oldest", "next",
];

/// Words before a number of things: "the 3", "our three".
const BEFORE_COUNT: &[&str] = &[
    "the", "my", "our", "your", "his", "her", "its", "their", "every", "other", "another", "us",
    "them",
];
/// The same where nothing else can be meant: "these three", "all 3".
const BEFORE_ALL: &[&str] = &["these", "those", "all", "any", "some", "both"];
/// Words for a part of several things, before "of": "one of three", "which of the 3".
const PARTS: &[&str] = &[
    "one", "ones", "each", "either", "neither", "none", "any", "some", "all", "which", "out",
    "half", "most", "both",
];

/// Whether a number is that of several things of which a part is meant, and so names none: "the last of these three", "one of 3",
/// "two of them".
pub(super) fn is_of_several(reading: &Reading<'_>, mention: &Mention, param: &Param) -> bool {
    let mut edge = mention.start;
    let mut before = reading.words_before(mention.start);
    let mut next = || {
        let word = before.next()?;
        let is_beside = reading.slice(word.end, edge).trim().is_empty();
        edge = word.start;
        is_beside.then_some(word.lower.as_str())
    };
    let first = next().unwrap_or_default();
    let is_determined = BEFORE_COUNT.contains(&first) || BEFORE_ALL.contains(&first);
    let of = if is_determined { next() } else { Some(first) };
    let is_part = of == Some("of")
        && next().is_some_and(|part| {
            [SELECTING, ORDINALS, PARTS]
                .iter()
                .any(|parts| parts.contains(&part))
                || word_value(part).is_some()
                || part.chars().all(|c| c.is_ascii_digit())
        });
    let is_whole = !follows_thing(reading, mention, |noun| is_of(param, noun))
        && word_after(reading, mention).is_some_and(|word| word.lower == "of");
    is_part || is_whole || BEFORE_ALL.contains(&first)
}

/// Whether a number says how many things there are, without their name: "the three", "three". In digits, and after the name of a thing, it
/// may be an id.
pub(super) fn is_count_alone(
    reading: &Reading<'_>,
    mention: &Mention,
    param: &Param,
    tool: &Tool,
) -> bool {
    let before = reading.words_before(mention.start).next();
    let is_determined = before.is_some_and(|word| {
        reading.slice(word.end, mention.start).trim().is_empty()
            && BEFORE_COUNT.contains(&word.lower.as_str())
    });
    let is_in_words = reading
        .slice(mention.start, mention.end)
        .starts_with(char::is_alphabetic);
    // "Account seven", but not "delete seven".
    let is_thing = |noun: &Word| {
        is_of(param, noun) || (tool.speaks_of(&noun.stem) && !is_verb_of_change(noun))
    };
    is_determined || (is_in_words && !follows_thing(reading, mention, is_thing))
}

/// Whether a mention stands right after a noun of which this holds, or after its "number" or "id".
fn follows_thing(
    reading: &Reading<'_>,
    mention: &Mention,
    is_thing: impl Fn(&Word) -> bool,
) -> bool {
    noun_before(reading, mention).is_some_and(|(noun, _)| is_thing(noun))
}

fn is_of(param: &Param, noun: &Word) -> bool {
    param.stems.iter().any(|stem| same(stem, &noun.stem))
}

fn word_after<'r>(reading: &'r Reading<'_>, mention: &Mention) -> Option<&'r Word> {
    let after = reading.words_after(mention.end).next();
    after.filter(|word| reading.slice(mention.end, word.start).trim().is_empty())
}

/// Whether a number counts things: "last 5", "5 most recent", "5 customers".
pub(super) fn counts_things(reading: &Reading<'_>, mention: &Mention) -> bool {
    let before = reading.words_before(mention.start).next();
    let selected = before.is_some_and(|word| {
        reading.slice(word.end, mention.start).trim().is_empty()
            && (SELECTING.contains(&word.lower.as_str())
                || matches!(
                    word.lower.as_str(),
                    "limit" | "most" | "max" | "maximum" | "only" | "up"
                ))
    });
    let counted = word_after(reading, mention)
        .is_some_and(|word| word.lower == "most" || SELECTING.contains(&word.lower.as_str()))
        || nouns_after(reading, mention)
            .iter()
            .take(3)
            .any(|noun| is_plural(&noun.lower));
    selected || counted
}

/// A singular after "latest", "most recent" and the like asks for one; after "second most recent"
/// for two, of which the last is meant.
pub(super) fn fill(places: &mut Places<'_>) {
    let reading = places.reading;
    let Some((selecting, noun)) = selected_one(reading) else {
        return;
    };
    let tool = places.tool;
    let knows = |stems: &[String]| stems.iter().any(|stem| same(stem, &noun.stem));
    let open: Vec<usize> = places
        .open()
        .filter(|(_, param)| {
            param.kind == Kind::Count
                && (tool.counts() == 1 || param.about.contains(&selecting.stem))
                && (knows(&tool.name)
                    || knows(&tool.title)
                    || knows(&tool.about)
                    || knows(&param.about))
        })
        .map(|(i, _)| i)
        .collect();
    if let [i] = open[..] {
        places.put(
            i,
            Value::from(nth(reading, selecting)),
            (selecting.start, selecting.end),
            3.0,
        );
    }
}

/// How many are needed to have the one that an ordinal before the selecting word means.
fn nth(reading: &Reading<'_>, selecting: &Word) -> usize {
    let before = reading.words_before(selecting.start).take(2);
    let mut ordinals = before.filter_map(|word| ORDINALS.iter().position(|own| *own == word.lower));
    ordinals.next().map_or(1, |place| place + 1)
}

/// The selecting word and the singular noun after it.
fn selected_one<'r>(reading: &'r Reading<'_>) -> Option<(&'r Word, &'r Word)> {
    reading.words.iter().enumerate().find_map(|(i, word)| {
        let selects = SELECTING.contains(&word.lower.as_str()) && !reading.is_quoted(word.start);
        let noun = reading.words.get(i + 1)?;
        // "the latest of our customers" is more than one word away, and no singular either.
        let singular = selects && !noun.is_stop() && !is_plural(&noun.lower);
        let adjacent = reading.slice(word.end, noun.start).trim().is_empty();
        let counted = noun.lower.starts_with(|c: char| c.is_ascii_digit())
            || reading.mentions.iter().any(|m| {
                m.start == noun.start && matches!(m.found, crate::extract::Found::Number(_))
            });
        let period = matches!(
            noun.lower.as_str(),
            "week" | "month" | "year" | "day" | "name"
        );
        (singular && adjacent && !counted && !period).then_some((word, noun))
    })
}

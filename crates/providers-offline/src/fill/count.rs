//! Numbers that count results, and the one that a singular implies: "the most recent customer".

use serde_json::Value;

use super::{Places, nearness::nouns_after};
use crate::{
    chain::ORDINALS,
    extract::{Mention, Reading},
    schema::Kind,
    text::{Word, is_plural},
    thesaurus::same,
};

/// Words that select from an ordered list.
pub(crate) const SELECTING: &[&str] = &[
    "recent", "latest", "newest", "last", "first", "top", "oldest", "next",
];

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
    let after = reading
        .words_after(mention.end)
        .next()
        .filter(|word| reading.slice(mention.end, word.start).trim().is_empty());
    let counted = after
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

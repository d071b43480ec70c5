//! Whether a text speaks of what a tool does as of an act.
//!
//! "What is the weight of boat 8?" asks for something to be looked up, "How do I sink boat 8?" asks about an act. Of a tool that
//! says nothing of itself, and whose name says neither, nobody knows which of both it is for; the place of its words in a
//! sentence tells: a verb stands after "to", after who does it, or where a command begins.

use crate::{
    catalog::Tool,
    chain::heads,
    extract::{Found, Reading},
    mood::{FILLERS, base, is_negator, is_verb_of_change},
    text::Word,
    thesaurus::{alike, same},
};

/// Those who act. What is said of "it" or "there" is no act of anybody.
const PERSONS: &[&str] = &[
    "i",
    "we",
    "you",
    "he",
    "she",
    "they",
    "somebody",
    "someone",
    "anybody",
    "anyone",
    "everybody",
    "everyone",
    "nobody",
    "people",
];
/// A verb comes right after them.
const BEFORE_VERB: &[&str] = &[
    "to", "can", "could", "will", "would", "shall", "should", "may", "might", "must", "do", "does",
    "did", "let's", "please",
];
/// After them, what ends in "ed" was done.
const BEFORE_DONE: &[&str] = &[
    "is", "are", "was", "were", "am", "be", "been", "being", "has", "have", "had", "got", "get",
    "gets", "i've", "we've", "you've", "they've", "already", "just",
];
/// After them, what ends in "ing" is being done.
const BEFORE_DOING: &[&str] = &[
    "is", "are", "was", "were", "am", "be", "been", "i'm", "we're", "you're", "they're", "he's",
    "she's",
];
/// What is acted upon begins with them.
const DETERMINERS: &[&str] = &[
    "the", "a", "an", "this", "that", "these", "those", "my", "our", "your", "his", "her", "their",
    "its", "all", "every", "each", "any", "some", "no", "both", "it", "them", "him",
];

/// Whether a tool may change something by what a text wants of it: it does so as far as is known, or nothing is known and the
/// text speaks of an act.
pub(crate) fn may_change(reading: &Reading<'_>, tool: &Tool) -> bool {
    tool.writes || (!tool.reads && acts(reading, tool).next().is_some())
}

/// The words with which a text speaks of what a tool does as of an act.
pub(crate) fn acts<'r>(
    reading: &'r Reading<'_>,
    tool: &'r Tool,
) -> impl Iterator<Item = &'r Word> + 'r {
    let words = reading.words.iter().enumerate();
    words
        .filter(|(i, word)| {
            !reading.is_quoted(word.start) && is_own(tool, word) && is_verb(reading, *i, word, tool)
        })
        .map(|(_, word)| word)
}

/// The stems in a tool's name that may say what it does: not those that name what it does it to.
pub(crate) fn name_of_act(tool: &Tool) -> impl Iterator<Item = &String> {
    let words = tool.name.iter().zip(&tool.name_words);
    words
        .filter(|(stem, word)| !is_thing(tool, stem) && !is_form_of(word, stem))
        .map(|(stem, _)| stem)
}

/// Whether a tool's own words are of this one, as what it may do.
fn is_own(tool: &Tool, word: &Word) -> bool {
    let stem = base(word);
    if word.is_stop() || is_thing(tool, stem) {
        return false;
    }
    // Descriptions begin with what is done.
    name_of_act(tool).any(|own| own == stem)
        || tool.about.first().is_some_and(|own| own == stem)
        || (is_verb_of_change(word)
            && (tool.speaks_of(stem) || alike(stem).iter().any(|it| tool.speaks_of(it))))
}

/// Whether a stem names what a parameter is about: `customer_id` is of a customer.
fn is_thing(tool: &Tool, stem: &str) -> bool {
    let mut of_params = tool.params.iter().flat_map(heads);
    of_params.any(|own| same(own, stem))
}

/// Whether a word is more than its stem, as what was done or is being done is.
fn is_form_of(word: &str, stem: &str) -> bool {
    ["ed", "ing"]
        .iter()
        .any(|ending| word.ends_with(ending) && !stem.ends_with(ending))
}

fn is_verb(reading: &Reading<'_>, i: usize, word: &Word, tool: &Tool) -> bool {
    let beside = |one: &Word, other: &Word| {
        let gap = reading.slice(one.end, other.start);
        let marks = [
            '.', ',', ';', ':', '!', '?', '\n', '(', ')', '\u{2013}', '\u{2014}',
        ];
        !gap.contains(marks) && !gap.contains(" - ")
    };
    let before = i.checked_sub(1).and_then(|j| reading.words.get(j));
    let before = before.filter(|before| beside(before, word));
    let after = reading.words.get(i + 1);
    let after = after.filter(|after| beside(word, after));
    let follows = |list: &[&str]| before.is_some_and(|it| list.contains(&it.lower.as_str()));
    // "… the weight", "… 8": what is acted upon.
    let has_object = after.is_some_and(|after| {
        DETERMINERS.contains(&after.lower.as_str())
            || is_thing(tool, &after.stem)
            || reading
                .mention_at(after.start)
                .is_some_and(|it| matches!(it.found, Found::Number(_)))
    });
    let begins = before.is_none_or(|it| FILLERS.contains(&it.lower.as_str()));
    if follows(PERSONS) {
        return true;
    }
    if base(word) != word.stem || is_form_of(&word.lower, &word.stem) {
        // The tool's own word is no form of it: a rating is none.
        let is_name = tool.name_words.contains(&word.lower);
        return !is_name
            && if word.lower.ends_with("ing") {
                follows(BEFORE_DOING) || has_object
            } else {
                follows(BEFORE_DONE) || (begins && has_object)
            };
    }
    follows(BEFORE_VERB) || before.is_some_and(is_negator) || (begins && has_object)
}

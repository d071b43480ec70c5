//! How near a mention stands to the words of a parameter.

use crate::{
    catalog::Tool,
    extract::{Found, Mention, Reading},
    schema::Param,
    text::Word,
    thesaurus::same,
};

/// Words between a noun and its number: "customer number 42", "customer id is 42".
const JOINTS: &[&str] = &[
    "number", "no", "nr", "id", "ids", "numbers", "nos", "equals", "called", "named",
];

/// Words before the first of two: "from Berlin", "since Monday".
const FROM_CUES: &[&str] = &[
    "from", "since", "after", "starting", "between", "source", "of",
];
/// Words before the second of two: "to Tokyo", "until Friday".
const TO_CUES: &[&str] = &[
    "to",
    "into",
    "until",
    "till",
    "before",
    "through",
    "target",
    "destination",
    "as",
];
/// Parameter words for the first of two.
const FROM_PARAMS: &[&str] = &[
    "from", "since", "after", "start", "begin", "source", "src", "origin", "old", "min",
];
/// Parameter words for the second of two.
const TO_PARAMS: &[&str] = &[
    "to",
    "until",
    "till",
    "before",
    "end",
    "target",
    "dest",
    "destination",
    "new",
    "max",
    "into",
];

/// The content word right before a mention and how many words lie between, if no clause ends there.
pub(super) fn noun_before<'r>(
    reading: &'r Reading<'_>,
    mention: &Mention,
) -> Option<(&'r Word, usize)> {
    let (start, _) = reading.group_bounds(mention);
    let mut edge = start;
    for (distance, word) in reading.words_before(start).take(4).enumerate() {
        if breaks(reading.slice(word.end, edge)) {
            return None;
        }
        edge = word.start;
        if !word.is_stop() && !JOINTS.contains(&word.lower.as_str()) {
            return Some((word, distance));
        }
    }
    None
}

/// The content words after a mention, up to two, if no clause ends there.
pub(super) fn nouns_after<'r>(reading: &'r Reading<'_>, mention: &Mention) -> Vec<&'r Word> {
    let (_, end) = reading.group_bounds(mention);
    let mut edge = end;
    let mut nouns = Vec::new();
    for word in reading.words_after(end).take(3) {
        if breaks(reading.slice(edge, word.start)) || word.is_stop() {
            break;
        }
        edge = word.end;
        nouns.push(word);
    }
    nouns
}

fn breaks(gap: &str) -> bool {
    gap.contains(['.', ',', ';', '?', '!', '\n', '(', ')'])
}

/// The score of nearness: positive when the words around a mention speak of the parameter,
/// negative when they speak of its counterpart.
pub(super) fn nearness(reading: &Reading<'_>, mention: &Mention, param: &Param) -> f64 {
    let mut score: f64 = 0.0;
    if let Some((noun, distance)) = noun_before(reading, mention) {
        let far = f64::from(u32::try_from(distance).unwrap_or(9)) * 0.5;
        if param.stems.contains(&noun.stem) {
            score += 4.0 - far;
        } else if param.stems.iter().any(|stem| same(stem, &noun.stem)) {
            score += 3.5 - far;
        } else if param.about.contains(&noun.stem) {
            score += 1.5;
        }
    }
    let after = nouns_after(reading, mention);
    for (i, noun) in after.iter().enumerate() {
        let less = if i == 0 { 0.0 } else { 0.75 };
        if param.stems.contains(&noun.stem) {
            score += 3.0 - less;
            break;
        } else if param.about.contains(&noun.stem) {
            score += 1.75 - less;
            break;
        }
    }
    score + direction(reading, mention, param)
}

fn direction(reading: &Reading<'_>, mention: &Mention, param: &Param) -> f64 {
    let has = |list: &[&str]| param.words.iter().any(|word| list.contains(&word.as_str()));
    let (from, to) = (has(FROM_PARAMS), has(TO_PARAMS));
    if from == to {
        return 0.0;
    }
    // A date such as "since Monday" carries its cue within.
    let within = reading
        .slice(mention.start, mention.end)
        .split(' ')
        .next()
        .unwrap_or_default();
    let before = reading
        .words_before(mention.start)
        .next()
        .map(|word| word.lower.as_str());
    let mut words = before.into_iter().chain([within]);
    let is_date = matches!(mention.found, Found::Date(_) | Found::DateTime(_));
    // "in May", "on Monday" is neither since nor until then.
    if is_date
        && words
            .clone()
            .any(|word| matches!(word, "in" | "on" | "during"))
    {
        return -3.0;
    }
    let cue = if follows_time(reading, mention) {
        Some(true)
    } else {
        words.find_map(|word| {
            if FROM_CUES.contains(&word) {
                Some(true)
            } else {
                TO_CUES.contains(&word).then_some(false)
            }
        })
    };
    match cue {
        Some(says_from) if says_from == from => 2.0,
        Some(_) => -3.0,
        None => 0.0,
    }
}

/// "9:00 in London": where a time of day is known is where it is taken from.
fn follows_time(reading: &Reading<'_>, mention: &Mention) -> bool {
    let from = reading
        .words_before(mention.start)
        .next()
        .map_or(0, |word| word.start);
    let count = reading
        .mentions
        .partition_point(|other| other.end <= mention.start);
    // What lies between grows with every mention further back.
    let beside = |other: &&Mention| {
        let between = reading.slice(other.end, from.max(other.end));
        between.trim().is_empty()
    };
    let mut before = reading.mentions.iter().take(count).rev().take_while(beside);
    before.any(|other| matches!(other.found, Found::Time(_)))
}

/// Whether the noun right before a number belongs to something that is not the parameter's:
/// "order 77" is no customer.
pub(super) fn is_of_another(
    reading: &Reading<'_>,
    mention: &Mention,
    param: &Param,
    tool: &Tool,
) -> bool {
    noun_before(reading, mention).is_some_and(|(noun, distance)| {
        let knows = |stems: &[String]| stems.iter().any(|stem| same(stem, &noun.stem));
        distance <= 1
            && !knows(&param.stems)
            && !knows(&param.about)
            && !knows(&tool.name)
            && !knows(&tool.title)
            && !crate::thesaurus::is_generic(&noun.stem)
    })
}

/// Moves the start of a used span left over the words that lead to it: "with high", "for customer".
pub(super) fn lead(reading: &Reading<'_>, start: usize, param: &Param) -> usize {
    const LEADS: &[&str] = &[
        "for", "of", "with", "at", "to", "as", "in", "from", "the", "a", "an", "by", "and", "on",
        "since", "is", "it", "its", "number", "id", "no", "into", "under", "set", "be", "should",
        "which",
    ];
    let mut start = start;
    for word in reading.words_before(start).take(5) {
        let gap = reading.slice(word.end, start);
        let leads = LEADS.contains(&word.lower.as_str())
            || param.stems.iter().any(|stem| same(stem, &word.stem));
        if !leads || gap.contains(['.', '?', '!', '\n', '"', ':']) {
            break;
        }
        start = word.start;
    }
    start
}

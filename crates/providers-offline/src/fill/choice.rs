//! Values from a list that the schema gives, and yes or no.

use serde_json::Value;

use super::{Places, nearness::lead, tail};
use crate::{
    schema::{Kind, Param},
    text::{identifier_words, stem},
    thesaurus::{same, same_degree},
};

/// An option of a parameter, found in the text.
#[derive(Debug, Clone)]
struct Hit {
    start: usize,
    end: usize,
    value: Value,
    /// The option's own word, not one that means the same.
    literal: bool,
    /// A word of the parameter's name stands beside it.
    near: bool,
}

/// Words of switches that do not say what is switched.
const SWITCH_WORDS: &[&str] = &[
    "include", "is", "enable", "with", "has", "use", "show", "want", "allow", "flag", "should",
];
const NEGATIONS: &[&str] = &[
    "no",
    "not",
    "without",
    "don't",
    "exclude",
    "excluding",
    "disable",
    "off",
    "never",
    "omit",
    "skip",
];

/// Fills parameters that are limited to certain values.
pub(super) fn fill(places: &mut Places<'_>) {
    let open: Vec<(usize, &Param)> = places.open().collect();
    for (i, param) in open {
        if param.kind == Kind::Boolean {
            switch(places, i, param);
        } else if !param.choices.is_empty() {
            choose(places, i, param);
        }
    }
}

/// The option that a text says, when the parameter was asked for.
pub(super) fn said(places: &Places<'_>, param: &Param) -> Option<Value> {
    if param.kind == Kind::Boolean {
        let yes = |word: &str| matches!(word, "yes" | "true" | "on" | "yeah" | "yep" | "sure");
        let no = |word: &str| matches!(word, "no" | "false" | "off" | "nope");
        return places.reading.words.iter().find_map(|word| {
            let lower = word.lower.as_str();
            (yes(lower) || no(lower)).then(|| Value::Bool(yes(lower)))
        });
    }
    let mut hits = hits(places, param, true);
    hits.retain(|hit| places.allows(param, &hit.value) || matches!(param.kind, Kind::List(_)));
    match (&param.kind, &hits[..]) {
        (Kind::List(_), [_, ..]) => Some(Value::Array(
            hits.into_iter().map(|hit| hit.value).collect(),
        ))
        .filter(|value| places.allows(param, value)),
        (_, [hit, ..]) => Some(hit.value.clone()),
        _ => None,
    }
}

fn hits(places: &Places<'_>, param: &Param, quoted_too: bool) -> Vec<Hit> {
    let words = &places.reading.words;
    let mut hits: Vec<Hit> = Vec::new();
    for option in &param.choices {
        let Some(text) = option.as_str() else {
            continue;
        };
        let joined = identifier_words(text).concat();
        let length = identifier_words(text).len();
        for from in 0..words.len() {
            let mut run = String::new();
            for (n, word) in words[from..].iter().take(length.max(1)).enumerate() {
                run.push_str(&word.lower);
                let literal =
                    run == joined || (n == 0 && length == 1 && word.stem == stem(&joined));
                let meant = n == 0 && length == 1 && same_degree(&word.lower, &joined);
                if literal || meant {
                    hits.push(Hit {
                        start: words[from].start,
                        end: word.end,
                        value: option.clone(),
                        literal,
                        near: is_near(places, param, from, from + n),
                    });
                    break;
                }
            }
        }
    }
    // "New York" leaves no place for an option "York".
    let wider = hits.clone();
    hits.retain(|hit| {
        !wider.iter().any(|other| {
            other.start <= hit.start
                && hit.end <= other.end
                && other.end - other.start > hit.end - hit.start
        })
    });
    hits.retain(|hit| {
        !places.is_used(hit.start, hit.end) && (quoted_too || !places.reading.is_quoted(hit.start))
    });
    hits.sort_by_key(|hit| hit.start);
    hits
}

fn is_near(places: &Places<'_>, param: &Param, from: usize, to: usize) -> bool {
    let words = &places.reading.words;
    let window = from.saturating_sub(3)..(to + 4).min(words.len());
    window
        .filter(|i| !(from..=to).contains(i))
        .filter_map(|i| words.get(i))
        .any(|word| param.stems.contains(&word.stem))
}

fn choose(places: &mut Places<'_>, i: usize, param: &Param) {
    let reading = places.reading;
    let mut hits = hits(places, param, false);
    if !param.required {
        // Within the free text of the question "high" is a word like any other.
        let free = tail::free_text_begins(places);
        hits.retain(|hit| {
            let in_free_text =
                free.is_some_and(|(start, end)| start <= hit.start && hit.start < end);
            let of_the_tool = hit.literal && places.tool.name.contains(&stem_of(places, hit));
            hit.near || !(in_free_text || of_the_tool)
        });
    }
    if hits.iter().any(|hit| hit.near) && !param.required {
        hits.retain(|hit| hit.near);
    } else if hits.iter().any(|hit| hit.literal) {
        hits.retain(|hit| hit.literal || hit.near);
    }
    let Some(first) = hits.first().cloned() else {
        return;
    };
    let evidence = if first.near {
        4.5
    } else if first.literal {
        3.5
    } else {
        2.5
    };
    if matches!(param.kind, Kind::List(_)) {
        let mut values: Vec<Value> = Vec::new();
        for hit in &hits {
            if !values.contains(&hit.value) {
                values.push(hit.value.clone());
            }
        }
        let end = hits.last().map_or(first.end, |hit| hit.end);
        places.put(i, Value::Array(values), (first.start, end), evidence);
        return;
    }
    let mut others: Vec<Value> = Vec::new();
    let mut edge = first.end;
    for hit in hits.iter().skip(1).filter(|hit| hit.value != first.value) {
        if !reading
            .slice(edge, hit.start)
            .trim_matches([',', ' '])
            .trim_start_matches("and")
            .trim()
            .is_empty()
        {
            // Two options far apart: which is meant cannot be told.
            if param.required && !first.near {
                return;
            }
            break;
        }
        edge = hit.end;
        others.push(hit.value.clone());
    }
    let start = lead(reading, first.start, param);
    if places.put(
        i,
        first.value,
        (start, reach(places, param, edge)),
        evidence,
    ) && !others.is_empty()
    {
        places.filling.further = Some((param.name.clone(), others));
    }
}

fn stem_of(places: &Places<'_>, hit: &Hit) -> String {
    stem(&places.reading.slice(hit.start, hit.end).to_lowercase())
}

/// Includes the parameter's own word after its value: "high priority".
fn reach(places: &Places<'_>, param: &Param, end: usize) -> usize {
    match places.reading.words_after(end).next() {
        Some(word)
            if places.reading.slice(end, word.start).trim().is_empty()
                && param.stems.iter().any(|own| same(own, &word.stem)) =>
        {
            word.end
        }
        _ => end,
    }
}

fn switch(places: &mut Places<'_>, i: usize, param: &Param) {
    let words = &places.reading.words;
    let telling: Vec<&String> = param
        .stems
        .iter()
        .zip(&param.words)
        .filter(|(_, word)| !SWITCH_WORDS.contains(&word.as_str()))
        .map(|(stem, _)| stem)
        .collect();
    let places_of = |wanted: &String| {
        words
            .iter()
            .position(|word| same(wanted, &word.stem) && !places.reading.is_quoted(word.start))
    };
    let found: Option<Vec<usize>> = telling.into_iter().map(places_of).collect();
    let Some(found) = found.filter(|found| !found.is_empty()) else {
        return;
    };
    let (Some(&first), Some(&last)) = (found.iter().min(), found.iter().max()) else {
        return;
    };
    let before = &words[first.saturating_sub(4)..first];
    let negated = before
        .iter()
        .any(|word| NEGATIONS.contains(&word.lower.as_str()));
    let switched = before.iter().any(|word| {
        matches!(
            word.lower.as_str(),
            "with" | "include" | "including" | "enable" | "and" | "add" | "plus"
        )
    });
    let own_name = found
        .iter()
        .all(|&at| places.tool.name.contains(&words[at].stem));
    if negated || switched || !own_name {
        let span = (words[first].start, words[last].end);
        places.put(i, Value::Bool(!negated), span, 2.5);
    }
}

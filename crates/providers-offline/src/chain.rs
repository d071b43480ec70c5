//! Values that one call needs and another gives.

use serde_json::Value;

use crate::{
    catalog::Tool,
    extract::{Found, Mention, Reading},
    fill::{Filling, fill},
    history::Call,
    records::{Record, data, key_fits, records},
    schema::{Kind, Param, TextKind, output_fields, type_name},
    text::{identifier_words, is_plural},
    thesaurus::same,
};

/// Which of several things a text means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selector {
    /// The one at this place: "first", "most recent", "second".
    Nth(usize),
    /// The one at the end of what was listed: "the last of them".
    Last,
    /// All, or the first so many: "each", "the 3 most recent customers".
    All(usize),
    /// Those that say this: names, addresses, ids.
    Named(Vec<String>),
    /// "it", "that customer": the only one there is.
    Only,
}

/// A selector and the places in the text that make it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selection {
    pub(crate) selector: Selector,
    /// It points at what was spoken of before: "the first one", "that customer".
    pub(crate) back: bool,
    pub(crate) spans: Vec<(usize, usize)>,
}

const FIRST: &[&str] = &["recent", "latest", "newest", "last", "first", "top", "next"];
/// Words for a place in a list.
pub(crate) const ORDINALS: &[&str] = &["first", "second", "third", "fourth", "fifth"];
const EVERY: &[&str] = &["each", "every", "all", "both"];
const PRONOUNS: &[&str] = &[
    "it", "its", "it's", "their", "them", "they", "his", "her", "hers", "him", "he", "she", "that",
    "this", "these", "those", "same",
];

/// Words for things that were spoken of, after "first", "each of" and the like.
const POINTING: &[&str] = &["one", "ones", "them", "these", "those"];

/// The noun stems of a parameter: `customer_id` is about a customer.
pub(crate) fn heads(param: &Param) -> Vec<&String> {
    let is_id = |word: &str| {
        matches!(
            word,
            "id" | "ids" | "key" | "uuid" | "number" | "no" | "name" | "ref"
        )
    };
    param
        .stems
        .iter()
        .zip(&param.words)
        .filter(|(_, word)| !is_id(word))
        .map(|(stem, _)| stem)
        .collect()
}

/// What a text says about which thing a parameter means, apart from the value itself.
pub(crate) fn selection(
    reading: &Reading<'_>,
    param: &Param,
    filling: &Filling,
) -> Option<Selection> {
    if !matches!(
        param.kind,
        Kind::IdNumber
            | Kind::Integer
            | Kind::Text(
                TextKind::Id
                    | TextKind::Uuid
                    | TextKind::Name
                    | TextKind::Email
                    | TextKind::Path
                    | TextKind::Plain
            )
    ) {
        return None;
    }
    let heads = heads(param);
    let is_head = |stem: &str| heads.iter().any(|head| same(head, stem));
    let used = |start: usize, end: usize| {
        filling
            .spans
            .iter()
            .any(|span| span.0 < end && start < span.1)
    };
    let name_of = |mention: &'_ Mention| match &mention.found {
        Found::Name(text) | Found::Email(text) | Found::Code(text)
            if !used(mention.start, mention.end) =>
        {
            Some(text.clone())
        }
        _ => None,
    };
    let first_named = reading
        .mentions
        .iter()
        .find(|mention| name_of(mention).is_some());
    let words = &reading.words;
    let outside_quotes = |i: &usize| !reading.is_quoted(words[*i].start);
    let head = (0..words.len())
        .filter(outside_quotes)
        .find(|&i| is_head(&words[i].stem));
    let head_span = head.map(|i| (words[i].start, words[i].end));
    if let Some(first) = first_named {
        let names = reading.group(first).iter().filter_map(name_of).collect();
        let spans = [Some(reading.group_bounds(first)), head_span];
        return Some(Selection {
            selector: Selector::Named(names),
            back: false,
            spans: spans.into_iter().flatten().collect(),
        });
    }
    let selected = (0..words.len()).filter(outside_quotes).find(|&i| {
        let word = words[i].lower.as_str();
        FIRST.contains(&word) || ORDINALS.contains(&word) || EVERY.contains(&word)
    });
    if let Some(i) = selected {
        // "the most recent customer", "the 3 latest customers", "the first one", "the second of them".
        let window = || i + 1..words.len().min(i + 5);
        let near = window()
            .find(|&j| is_head(&words[j].stem) || POINTING.contains(&words[j].lower.as_str()))
            .or_else(|| window().find(|&j| words[j].lower == "of"));
        if let Some(j) = near {
            let (word, last) = (words[i].lower.as_str(), words[j].lower.as_str());
            let of = (i + 1..j).find(|&k| words[k].lower == "of");
            let back = POINTING.contains(&last);
            let plural = is_plural(&words[j].lower) || (back && last != "one");
            // "the first two of them" are two, "the first of the three" is one.
            let count = count_near(reading, i, of.unwrap_or(j));
            let several = match of {
                Some(_) => count.is_some(),
                None => plural,
            };
            let selector = if several || EVERY.contains(&word) {
                Selector::All(count.unwrap_or(usize::MAX))
            } else if back && word == "last" {
                Selector::Last
            } else {
                let place = ORDINALS.iter().position(|ordinal| *ordinal == word);
                Selector::Nth(place.unwrap_or(0))
            };
            let spans = vec![(words[i].start, words[j].end)];
            return Some(Selection {
                selector,
                back,
                spans,
            });
        }
    }
    let pronoun = words
        .iter()
        .find(|word| PRONOUNS.contains(&word.lower.as_str()));
    pronoun.map(|word| Selection {
        selector: Selector::Only,
        back: true,
        spans: [Some((word.start, word.end)), head_span]
            .into_iter()
            .flatten()
            .collect(),
    })
}

/// A number within or right before a selecting phrase.
fn count_near(reading: &Reading<'_>, from: usize, to: usize) -> Option<usize> {
    let start = reading.words.get(from.saturating_sub(2))?.start;
    let end = reading.words.get(to)?.end;
    reading
        .mentions
        .iter()
        .find_map(|mention| match &mention.found {
            Found::Number(amount) if start <= mention.start && mention.end <= end => {
                usize::try_from(amount.whole?).ok()
            }
            _ => None,
        })
}

/// What results hold for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Lookup {
    /// These values are meant.
    Found(Vec<Record>),
    /// One of these is meant, and nothing tells which.
    Several(Vec<Record>),
    /// There are such values, but none of this name.
    NoneNamed(String),
    /// There are none.
    Nothing,
}

/// Looks for a parameter's value in the results of calls, the latest first.
pub(crate) fn look_up(
    calls: &[&Call],
    tools: &[Tool],
    param: &Param,
    root: &Value,
    selection: Option<&Selection>,
) -> Lookup {
    let mut unnamed = None;
    for call in calls.iter().rev() {
        let Some(result) = call.result.as_ref().filter(|result| !result.is_error) else {
            continue;
        };
        let Some(data) = data(result) else { continue };
        let words = tools
            .iter()
            .find(|tool| tool.id() == call.name)
            .map_or_else(
                || identifier_words(&call.name),
                |tool| tool.name_words.clone(),
            );
        let found = records(&data, &words, param, root);
        if found.is_empty() {
            continue;
        }
        match selection.map(|selection| &selection.selector) {
            Some(Selector::Named(names)) => match named(&found, names) {
                Lookup::NoneNamed(name) => unnamed = Some(name),
                lookup => return lookup,
            },
            Some(Selector::Nth(n)) => {
                if let Some(record) = found.into_iter().nth(*n) {
                    return Lookup::Found(vec![record]);
                }
            }
            Some(Selector::Last) => {
                if let Some(record) = found.into_iter().next_back() {
                    return Lookup::Found(vec![record]);
                }
            }
            Some(Selector::All(n)) => return Lookup::Found(found.into_iter().take(*n).collect()),
            Some(Selector::Only) | None if found.len() == 1 => return Lookup::Found(found),
            Some(Selector::Only) | None => return Lookup::Several(found),
        }
    }
    unnamed.map_or(Lookup::Nothing, Lookup::NoneNamed)
}

/// One record for each name.
fn named(found: &[Record], names: &[String]) -> Lookup {
    let mut records: Vec<Record> = Vec::new();
    for name in names {
        let mut of_name = found.iter().filter(|record| record.says(name)).cloned();
        match (of_name.next(), of_name.next()) {
            (None, _) => return Lookup::NoneNamed(name.clone()),
            (Some(record), None) => records.push(record),
            (Some(one), Some(other)) => {
                return Lookup::Several([one, other].into_iter().chain(of_name).collect());
            }
        }
    }
    Lookup::Found(records)
}

/// The tool that can give a value for a parameter, and the input to call it with.
pub(crate) fn producer<'t>(
    tools: &'t [Tool],
    allowed: &[usize],
    needy: &Tool,
    param: &Param,
    reading: &Reading<'_>,
    selection: &Selection,
) -> Option<(&'t Tool, Filling)> {
    let mut best: Option<(f64, &Tool, Filling)> = None;
    for tool in allowed.iter().filter_map(|&i| tools.get(i)) {
        if tool.id() == needy.id() || !tool.reads {
            continue;
        }
        let Some(likeness) = gives(tool, param) else {
            continue;
        };
        let mut filling = fill(tool, reading);
        if let Selector::Named(names) = &selection.selector
            && let [name] = names.as_slice()
        {
            name_into(tool, name, &mut filling);
        }
        if !filling.is_complete() {
            continue;
        }
        let spoken = reading
            .words
            .iter()
            .filter(|word| tool.name.iter().any(|own| same(own, &word.stem)))
            .count();
        let score =
            likeness + f64::from(u32::try_from(spoken).unwrap_or(0)) + 0.1 * filling.evidence;
        if best.as_ref().is_none_or(|(other, ..)| score > *other) {
            best = Some((score, tool, filling));
        }
    }
    best.map(|(_, tool, filling)| (tool, filling))
}

/// How surely a tool's results hold values for a parameter.
pub(crate) fn gives(tool: &Tool, param: &Param) -> Option<f64> {
    let wanted = type_name(&param.schema);
    if let Some(schema) = &tool.definition.output_schema {
        let fields = output_fields(schema);
        let holds = fields.iter().any(|(path, field)| {
            let mut around = tool.name_words.clone();
            let Some((key, above)) = path.split_last() else {
                return false;
            };
            around.extend(above.iter().flat_map(|name| identifier_words(name)));
            let same_type = match (type_name(field), wanted) {
                (Some(field), Some(wanted)) => {
                    field == wanted || matches!((field, wanted), ("integer", "number"))
                }
                _ => true,
            };
            same_type && key_fits(key, &around, param)
        });
        // A list to choose from is better than one thing that needs the same id to be found.
        let by_the_same = tool
            .params
            .iter()
            .any(|own| own.required && own.words == param.words);
        if !fields.is_empty() && !is_only_text(&fields) {
            return (holds && !by_the_same).then_some(2.0);
        }
    }
    // Without a schema of its results: a tool that lists the things by name.
    let heads = heads(param);
    let listed = !heads.is_empty()
        && heads.iter().all(|head| {
            tool.name_words
                .iter()
                .zip(&tool.name)
                .any(|(word, stem)| is_plural(word) && same(head, stem))
        });
    listed.then_some(1.0)
}

/// A schema of one text field, as servers give who wrap their text, promises nothing.
fn is_only_text(fields: &[(Vec<String>, Value)]) -> bool {
    matches!(fields, [(_, field)] if type_name(field) == Some("string"))
}

fn name_into(tool: &Tool, name: &str, filling: &mut Filling) {
    let takes_name = |param: &&Param| {
        matches!(param.kind, Kind::Text(TextKind::Name | TextKind::Query))
            && param.choices.is_empty()
    };
    if let Some(param) = tool.params.iter().find(takes_name) {
        filling
            .input
            .entry(param.name.clone())
            .or_insert_with(|| Value::from(name));
        filling.missing.retain(|missing| *missing != param.name);
    }
}

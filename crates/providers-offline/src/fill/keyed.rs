//! Arguments given by name: `{"a": 2}`, `subject: broken`, `limit=5`, "the location is Paris".

use serde_json::Value;

use super::{Places, convert::convert, tail};
use crate::{
    extract::Found,
    schema::{Kind, Param, TextKind},
    text::Word,
};

/// Evidence of a value that was given by name.
const BY_NAME: f64 = 6.0;

/// How a name was joined to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// `name: value`, `name = value`.
    Sign,
    /// `name is value`.
    Verb,
    /// `name value`.
    Beside,
}

/// A parameter's name in the text, and where its value begins.
#[derive(Debug, Clone, Copy)]
struct Key {
    index: usize,
    start: usize,
    value: usize,
    joint: Joint,
}

/// Takes arguments from a JSON object in the text, as far as they are the tool's and allowed.
pub(super) fn json_object(places: &mut Places<'_>) {
    let text = places.reading.text;
    for (start, _) in text.match_indices('{') {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let Some(Ok(Value::Object(object))) = values.next() else {
            continue;
        };
        let end = start + values.byte_offset();
        for (i, param) in places.tool.params.iter().enumerate() {
            if let Some(value) = object.get(&param.name)
                && !places.put(i, value.clone(), (start, end), BY_NAME)
            {
                places.refuse(param, (start, end));
            }
        }
        return;
    }
}

/// Takes arguments given by name.
pub(super) fn fill(places: &mut Places<'_>) {
    let mut keys: Vec<Key> = places
        .open()
        .filter_map(|(i, param)| find(places, i, param))
        .collect();
    keys.sort_by_key(|key| key.start);
    for (n, key) in keys.iter().enumerate() {
        let until = keys
            .get(n + 1)
            .filter(|next| next.joint == Joint::Sign && next.start > key.value)
            .map_or(places.reading.text.len(), |next| next.start);
        take(places, *key, until);
    }
}

fn find(places: &Places<'_>, index: usize, param: &Param) -> Option<Key> {
    let reading = places.reading;
    let joined = param.words.concat();
    // People say "branch main" for `branch_name`, and "user ab12" for `user_id`.
    let short = match (&param.kind, param.words.split_last()) {
        (Kind::Text(TextKind::Name), Some((last, head))) if last == "name" => head.concat(),
        (Kind::Text(TextKind::Id), Some((last, head))) if last == "id" => head.concat(),
        _ => String::new(),
    };
    let is_id = matches!(param.kind, Kind::Text(TextKind::Id));
    let is_short_for = |run: &str, end: usize| {
        let next = || token(places, reading.words_after(end).next()?.start);
        let digits = |(from, to): (usize, usize)| {
            reading
                .slice(from, to)
                .contains(|c: char| c.is_ascii_digit())
        };
        !short.is_empty() && run == short && (!is_id || next().is_some_and(digits))
    };
    let spans: Vec<(usize, usize)> = (0..reading.words.len())
        .filter_map(|from| {
            let mut run = String::new();
            for word in reading
                .words
                .iter()
                .skip(from)
                .take(param.words.len().max(1))
            {
                run.push_str(&word.lower);
                if run == joined || is_short_for(&run, word.end) {
                    return Some((reading.words.get(from)?.start, word.end));
                }
            }
            None
        })
        .filter(|&(start, _)| !reading.is_quoted(start) && !places.is_used(start, start + 1))
        .collect();
    // A name with a sign wins over the same word in running text.
    let keys = spans.into_iter().filter_map(|(start, end)| {
        let (value, joint) = joint(places, end)?;
        Some(Key {
            index,
            start,
            value,
            joint,
        })
    });
    keys.min_by_key(|key| (key.joint as u8, key.start))
}

/// Words that join a name to its value.
const VERBS: &[&str] = &[
    "is",
    "should be",
    "set to",
    "to be",
    "equals",
    "being",
    "are",
];

fn joint(places: &Places<'_>, end: usize) -> Option<(usize, Joint)> {
    let text = places.reading.text;
    let rest = &text[end..];
    let rest = rest.strip_prefix(['"', '`', '\'']).unwrap_or(rest);
    let trimmed = rest.trim_start();
    let signs: &[char] = &[':', '='];
    if let Some(after) = trimmed.strip_prefix(signs) {
        let after = after.trim_start_matches('=').trim_start();
        return Some((text.len() - after.len(), Joint::Sign));
    }
    for verb in VERBS {
        let after = trimmed
            .strip_prefix(verb)
            .and_then(|after| after.strip_prefix(' '));
        if let Some(after) = after {
            return Some((text.len() - after.trim_start().len(), Joint::Verb));
        }
    }
    (rest.starts_with(char::is_whitespace) && !trimmed.is_empty())
        .then(|| (text.len() - trimmed.len(), Joint::Beside))
}

fn take(places: &mut Places<'_>, key: Key, until: usize) {
    let reading = places.reading;
    let param = &places.tool.params[key.index];
    let evidence = if key.joint == Joint::Beside {
        BY_NAME - 2.0
    } else {
        BY_NAME
    };
    let mention = reading.mentions.iter().find(|m| m.start == key.value);
    let is_free = matches!(
        param.kind,
        Kind::Text(TextKind::Body | TextKind::Title | TextKind::Query | TextKind::Plain)
    );
    let quoted = mention.is_some_and(|m| matches!(m.found, Found::Quoted(_)));
    if let Some(mention) = mention.filter(|_| quoted || !is_free) {
        // Beside its name a number is weighed with the others, by nearness; a list stays whole.
        let whole_list = reading.group(mention).len() > 1;
        if (key.joint == Joint::Beside && !quoted) || whole_list {
            return;
        }
        if let Some(value) = convert(mention, param, reading) {
            if !places.put(key.index, value, (key.start, mention.end), evidence) {
                places.refuse(param, (mention.start, mention.end));
            }
            return;
        }
    }
    if let Some((value, end)) = choice_at(places, param, key.value) {
        places.put(key.index, value, (key.start, end), evidence);
    } else if is_free && key.joint != Joint::Beside {
        let (start, end) = tail::extent(places, key.value, until, key.joint == Joint::Sign);
        if end > start {
            places.put(
                key.index,
                reading.slice(start, end).into(),
                (key.start, end),
                evidence,
            );
        }
    } else if key.joint == Joint::Beside {
        beside(places, key, param, evidence);
    } else if let (Some(word), Kind::Text(TextKind::Id | TextKind::Name | TextKind::Path)) =
        (token(places, key.value), &param.kind)
    {
        let value = reading.slice(word.0, word.1);
        places.put(key.index, value.into(), (key.start, word.1), evidence);
    }
}

/// "branch main": one bare word right after the parameter's name, for names and ids only.
fn beside(places: &mut Places<'_>, key: Key, param: &Param, evidence: f64) {
    let reading = places.reading;
    if !matches!(
        param.kind,
        Kind::Text(TextKind::Id | TextKind::Name | TextKind::Plain)
    ) {
        return;
    }
    let next = reading.words_after(key.value).next();
    let ordinary = next.is_none_or(|word: &Word| {
        word.start != key.value || word.is_stop() || places.tool.speaks_of(&word.stem)
    });
    if let (false, Some((start, end))) = (ordinary, token(places, key.value)) {
        places.put(
            key.index,
            reading.slice(start, end).into(),
            (key.start, end),
            evidence,
        );
    }
}

/// The run of characters without space at a place, its closing punctuation taken off.
fn token(places: &Places<'_>, at: usize) -> Option<(usize, usize)> {
    let rest = places.reading.text.get(at..)?;
    let word = rest.split(char::is_whitespace).next()?;
    let word = word.trim_end_matches(['.', ',', ';', '?', '!', ')', '"', '\'']);
    (!word.is_empty()).then_some((at, at + word.len()))
}

fn choice_at(places: &Places<'_>, param: &Param, at: usize) -> Option<(Value, usize)> {
    let rest = places.reading.text.get(at..)?;
    let starts = |option: &str| {
        rest.get(..option.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(option))
            && !rest[option.len()..].starts_with(char::is_alphanumeric)
    };
    if param.kind == Kind::Boolean {
        let words = [
            ("true", true),
            ("yes", true),
            ("on", true),
            ("false", false),
            ("no", false),
            ("off", false),
        ];
        return words
            .into_iter()
            .find(|(word, _)| starts(word))
            .map(|(word, value)| (Value::Bool(value), at + word.len()));
    }
    let mut options: Vec<&Value> = param.choices.iter().collect();
    options.sort_by_key(|option| std::cmp::Reverse(option.as_str().map_or(0, str::len)));
    options.into_iter().find_map(|option| {
        option
            .as_str()
            .filter(|text| starts(text))
            .map(|text| (option.clone(), at + text.len()))
    })
}

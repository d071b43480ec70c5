//! A short answer from results.
//!
//! The words come from the question, the tool's title and the keys of its result. No tool is
//! known here by name: what a result is about is told by its shape.

mod compared;
mod fields;
mod value;

use serde_json::{Map, Value};

use crate::{
    catalog::Tool,
    extract::Reading,
    history::Call,
    records::{data, records},
    schema::{Kind, Param, TextKind},
    text::{identifier_words, is_plural},
    wording::{capitalized, listing, shortened, title},
};
pub(crate) use compared::compared;
use fields::{Field, echoes, fields, focus};

/// Characters of a tool's text that are told.
const TEXT_LIMIT: usize = 2000;
/// Characters of an error that are told.
const ERROR_LIMIT: usize = 500;
/// Rows of a list that are told.
const ROWS: usize = 20;
/// Fields of an object that are told.
const FIELDS: usize = 12;
/// Fields of a row beside its name.
const COLUMNS: usize = 6;

/// Answers a question from the calls of a tool. `others` are all calls so far: they tell the names
/// of what was looked up on the way.
pub(crate) fn write(
    question: &Reading<'_>,
    tool: &Tool,
    calls: &[&Call],
    others: &[&Call],
) -> String {
    let several = calls.len() > 1;
    let parts: Vec<String> = calls
        .iter()
        .map(|call| one(question, tool, call, others, several))
        .collect();
    parts.join("\n")
}

fn one(
    question: &Reading<'_>,
    tool: &Tool,
    call: &Call,
    others: &[&Call],
    several: bool,
) -> String {
    let subject = subject(tool, call, others);
    let name = |subject: &Option<Subject>| match subject {
        Some(subject) if subject.joint == "in" => format!("{} in {}", title(tool), subject.text),
        Some(subject) => format!("{} for {}", title(tool), subject.text),
        None => title(tool),
    };
    let Some(result) = &call.result else {
        return format!("{} gave no result.", name(&subject));
    };
    let text = result.as_text();
    let text = text.trim();
    if result.is_error {
        let reason = if text.is_empty() {
            "it gave no reason"
        } else {
            text
        };
        return format!(
            "{} failed: {}",
            name(&subject),
            shortened(reason, ERROR_LIMIT)
        );
    }
    match data(result).map(unwrapped) {
        Some(Value::String(inner)) => told_text(&inner, &name(&subject), several),
        Some(value @ (Value::Object(_) | Value::Array(_))) => told_data(
            question,
            tool,
            call,
            subject.as_ref(),
            &name(&subject),
            &value,
            several,
        ),
        Some(value) => format!("{}: {}", name(&subject), value::said("", &value)),
        None => told_text(text, &name(&subject), several),
    }
}

fn told_text(text: &str, name: &str, several: bool) -> String {
    let text = text.trim();
    if text.is_empty() {
        return format!("{name}: done, without further words.");
    }
    let short = shortened(text, TEXT_LIMIT);
    match (several, short.contains('\n')) {
        (false, _) => short,
        (true, true) => format!("{name}:\n{short}"),
        (true, false) => format!("{name}: {short}"),
    }
}

fn told_data(
    question: &Reading<'_>,
    tool: &Tool,
    call: &Call,
    subject: Option<&Subject>,
    name: &str,
    value: &Value,
    several: bool,
) -> String {
    let fields = fields(value);
    if !tool.writes
        && let Some(field) = focus(question, tool, call, &fields)
    {
        return sentence(field, &fields, subject);
    }
    if !tool.writes
        && let Some(text) = document(&fields)
    {
        return told_text(text, name, several);
    }
    if let Some((key, rows)) = rows(value) {
        let what = if key.is_empty() {
            title(tool)
        } else {
            capitalized(&identifier_words(key).join(" "))
        };
        return list(&what, rows, of_all(value, rows.len()));
    }
    let is_label = |field: &Field| {
        subject.is_some_and(|subject| {
            subject
                .labels
                .iter()
                .any(|label| field.value.as_str() == Some(label))
        })
    };
    let news: Vec<&Field> = fields
        .iter()
        .filter(|field| !echoes(field, call) && !value::is_unit(&field.key) && !is_label(field))
        .collect();
    let told = if news.is_empty() {
        fields.iter().collect()
    } else {
        news
    };
    let said: Vec<String> = told
        .iter()
        .take(FIELDS)
        .map(|field| format!("{}: {}", field.words(), value::with_unit(field, &fields)))
        .collect();
    let said = said.join("; ");
    let said = said.trim_end_matches('.');
    match (tool.writes, said.is_empty()) {
        (true, true) => format!("{name}: done."),
        (true, false) => format!("{name}: done. {}.", capitalized(said)),
        (false, true) => format!("{name}: nothing."),
        (false, false) => format!("{name}: {said}."),
    }
}

/// The text that a result is there for, such as what stands in a file: of more than one line or value, with only small things
/// beside it.
fn document(fields: &[Field]) -> Option<&str> {
    let is_one = |field: &&Field| {
        let text = field.value.as_str().unwrap_or_default();
        matches!(
            field.key.as_str(),
            "content" | "contents" | "text" | "body" | "markdown"
        ) && (text.trim_end().contains('\n') || text.len() > value::VALUE_LIMIT)
    };
    let mut texts = fields.iter().filter(is_one);
    let text = texts.next()?.value.as_str()?;
    texts.next().is_none().then_some(text)
}

/// "The account value of customer 42 is 1,234.56 EUR."
fn sentence(field: &Field, fields: &[Field], subject: Option<&Subject>) -> String {
    let of = subject.map_or_else(String::new, |subject| {
        format!(" {} {}", subject.joint, subject.text)
    });
    let words = field.words();
    if let (Some(subject), true) = (subject, field.value.is_u64() && is_plural(&field.key)) {
        return format!(
            "{}: {} {words}.",
            capitalized(&subject.text),
            value::with_unit(field, fields)
        );
    }
    let verb = if words.split(' ').next_back().is_some_and(is_plural) {
        "are"
    } else {
        "is"
    };
    let said = value::with_unit(field, fields);
    format!("The {words}{of} {verb} {}.", said.trim_end_matches('.'))
}

/// An object with nothing but one value in it is that value.
fn unwrapped(value: Value) -> Value {
    match value {
        Value::Object(map) if map.len() == 1 => {
            let inner = map
                .iter()
                .next()
                .map(|(key, inner)| (key.clone(), inner.clone()));
            match inner {
                Some((_, text @ Value::String(_))) => text,
                Some((key, inner @ Value::Object(_)))
                    if matches!(
                        key.as_str(),
                        "result" | "data" | "output" | "response" | "item"
                    ) =>
                {
                    unwrapped(inner)
                }
                _ => Value::Object(map),
            }
        }
        other => other,
    }
}

/// The list that a result is about, with its key; the longest if there are several.
fn rows(value: &Value) -> Option<(&str, &Vec<Value>)> {
    match value {
        Value::Array(rows) => Some(("", rows)),
        Value::Object(map) => {
            // Tags and the like are one field among others; a list of objects is what it is about.
            let alone = map
                .iter()
                .all(|(key, inner)| inner.is_array() || counts_rows(key));
            let lists = map
                .iter()
                .filter_map(|(key, inner)| Some((key.as_str(), inner.as_array()?)))
                .filter(|(_, rows)| alone || rows.iter().any(Value::is_object));
            lists.max_by_key(|(_, rows)| rows.len())
        }
        _ => None,
    }
}

/// Keys that stand beside a list and say how long it is or where it goes on.
fn counts_rows(key: &str) -> bool {
    const BESIDE: &[&str] = &[
        "count", "total", "size", "length", "limit", "offset", "page", "cursor", "more",
    ];
    identifier_words(key)
        .last()
        .is_some_and(|word| BESIDE.contains(&word.as_str()))
}

/// How many there are in all, where a result says so and gives only some.
fn of_all(value: &Value, listed: usize) -> Option<u64> {
    let map = value.as_object()?;
    let counts = map.iter().filter(|(key, _)| {
        identifier_words(key)
            .last()
            .is_some_and(|word| matches!(word.as_str(), "count" | "total" | "matching"))
    });
    let most = counts.filter_map(|(_, count)| count.as_u64()).max()?;
    usize::try_from(most)
        .is_ok_and(|most| most > listed)
        .then_some(most)
}

fn list(what: &str, rows: &[Value], of_all: Option<u64>) -> String {
    match rows {
        [] => format!("{what}: none."),
        [only] => format!("{what}: {}.", row(only)),
        rows => {
            let lines: Vec<String> = (1..)
                .zip(rows)
                .take(ROWS)
                .map(|(n, value)| format!("\n{n}. {}", row(value)))
                .collect();
            let more = match rows.len().saturating_sub(ROWS) {
                0 => String::new(),
                more => format!("\n… and {more} more"),
            };
            let of_all = of_all.map_or_else(String::new, |all| format!(" of {all}"));
            format!("{what} ({}{of_all}):{}{more}", rows.len(), lines.concat())
        }
    }
}

/// One line: what it is called, then the rest.
fn row(value: &Value) -> String {
    const NAMES: &[&str] = &[
        "name",
        "title",
        "subject",
        "label",
        "full_name",
        "fullname",
        "display_name",
        "path",
        "filename",
        "key",
    ];
    let Value::Object(map) = value else {
        return value::said("", value);
    };
    let named = NAMES.iter().find_map(|name| {
        map.iter()
            .find(|(key, inner)| key.eq_ignore_ascii_case(name) && inner.is_string())
    });
    let others: Vec<String> = map
        .iter()
        .filter(|(key, inner)| {
            named.is_none_or(|(name, _)| name != *key) && !inner.is_null() && !value::is_unit(key)
        })
        .take(COLUMNS)
        .map(|(key, inner)| {
            let words = identifier_words(key).join(" ");
            format!("{words} {}", value::with_unit_of(key, inner, map))
        })
        .collect();
    match named {
        Some((_, name)) if others.is_empty() => value::said("", name),
        Some((_, name)) => format!("{} ({})", value::said("", name), others.join(", ")),
        None => others.join(", "),
    }
}

/// What a call was about, as a person would say it.
struct Subject {
    text: String,
    joint: &'static str,
    /// Names of the things in it.
    labels: Vec<String>,
}

fn subject(tool: &Tool, call: &Call, others: &[&Call]) -> Option<Subject> {
    let mut said: Vec<(u8, String, &'static str)> = Vec::new();
    let mut labels = Vec::new();
    for param in &tool.params {
        let Some(value) = call.input.get(&param.name) else {
            continue;
        };
        let Some((rank, joint)) = tells(param) else {
            continue;
        };
        let text = match value {
            Value::String(text) => shortened(text, 80),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        let is_id = |word: &String| {
            matches!(
                word.as_str(),
                "id" | "ids" | "number" | "no" | "key" | "uuid"
            )
        };
        let head: Vec<String> = param
            .words
            .iter()
            .filter(|word| !is_id(word))
            .cloned()
            .collect();
        let noun = rank == 0 && !head.is_empty();
        let mut text = if noun {
            format!("{} {text}", head.join(" "))
        } else {
            text
        };
        if rank == 0
            && let Some(label) = name_of_thing(tool, call, param, &head, value, others)
        {
            text = format!("{text} ({label})");
            labels.push(label);
        }
        said.push((rank, text, joint));
    }
    said.sort_by_key(|(rank, ..)| *rank);
    let (first, joint) = said.first().map(|(rank, _, joint)| (*rank, *joint))?;
    let texts: Vec<String> = said
        .into_iter()
        .filter(|(rank, ..)| *rank == first)
        .map(|(_, text, _)| text)
        .take(3)
        .collect();
    Some(Subject {
        text: listing(&texts, "and"),
        joint,
        labels,
    })
}

/// Whether a parameter says what a call is about, how well (0 is best), and how it is joined.
fn tells(param: &Param) -> Option<(u8, &'static str)> {
    const PLACES: &[&str] = &[
        "city", "location", "country", "place", "region", "timezone", "zone", "town",
    ];
    if param
        .words
        .iter()
        .any(|word| PLACES.contains(&word.as_str()))
    {
        return Some((1, "in"));
    }
    match &param.kind {
        Kind::IdNumber | Kind::Text(TextKind::Id | TextKind::Uuid) => Some((0, "of")),
        Kind::Text(TextKind::Zone) => Some((1, "in")),
        Kind::Text(TextKind::Name | TextKind::Path | TextKind::Url | TextKind::Email) => {
            Some((1, "of"))
        }
        Kind::Integer | Kind::Number if param.required => Some((2, "of")),
        Kind::Text(TextKind::Query) => Some((2, "for")),
        Kind::Text(TextKind::Plain) if param.choices.is_empty() => Some((3, "for")),
        _ => None,
    }
}

/// The name of what an id stands for: in the result itself, such as `customer_name`, or in that of
/// another call.
fn name_of_thing(
    tool: &Tool,
    call: &Call,
    param: &Param,
    head: &[String],
    value: &Value,
    calls: &[&Call],
) -> Option<String> {
    let own = call.result.as_ref().and_then(data).and_then(|data| {
        let name = data.as_object()?.iter().find(|(key, _)| {
            let words = identifier_words(key);
            !head.is_empty() && words.strip_suffix(&["name".to_owned()]) == Some(head)
        })?;
        Some(shortened(name.1.as_str()?, 80))
    });
    let root = &tool.definition.input_schema;
    let others = calls.iter().rev().filter(|other| other.name != call.name);
    own.or_else(|| {
        others
            .filter_map(|other| Some((other, data(other.result.as_ref()?)?)))
            .find_map(|(other, data)| {
                let words = identifier_words(&other.name);
                let found = records(&data, &words, param, root);
                name_of(
                    &found
                        .into_iter()
                        .find(|record| record.value == *value)?
                        .fields,
                )
            })
    })
}

fn name_of(fields: &Map<String, Value>) -> Option<String> {
    let key = ["name", "full_name", "title", "label", "subject"];
    key.iter()
        .find_map(|key| fields.get(*key).and_then(Value::as_str))
        .map(|name| shortened(name, 80))
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;

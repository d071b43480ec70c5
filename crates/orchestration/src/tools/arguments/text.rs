//! Repairs of an input's text: what stands around exactly one JSON object, and small departures from
//! JSON inside it.
//!
//! Nothing is ever completed. A reader that is a little more lenient than JSON reads one whole value;
//! where it comes to the end of the text inside of a bracket or a string, there is no repair. And
//! nothing is guessed: what stands around the object must be words, not another piece of data.

use serde_json::{Map, Number, Value};
use switchboard_domain::{JsonObject, MAX_JSON_DEPTH, ToolInput};

use super::repair::{Repair, quoted};

/// How many times an object may be wrapped in a JSON string.
const MOST_STRINGS: usize = 2;

/// The object that `raw` holds, and what had to be done to read it. `is_property` tells the names that
/// the tool's schema has.
///
/// `None` if `raw` is an object as it stands: then it was called malformed for another reason than its
/// text, such as that it was cut off, and that cannot be repaired.
pub(super) fn repair(
    raw: &str,
    reason: &str,
    is_property: &dyn Fn(&str) -> bool,
) -> Option<(JsonObject, Vec<Repair>)> {
    match ToolInput::parse(raw) {
        ToolInput::Malformed { reason: own, .. } if own == reason => {}
        _ => return None,
    }
    let mut repairs = Vec::new();
    let object = read(raw, is_property, &mut repairs, 0)?;
    (!repairs.is_empty()).then_some((object, repairs))
}

fn read(
    text: &str,
    is_property: &dyn Fn(&str) -> bool,
    repairs: &mut Vec<Repair>,
    strings: usize,
) -> Option<JsonObject> {
    let mut text = text.trim();
    while let Some(rest) = text.strip_prefix('\u{feff}') {
        repairs.push(Repair::whole("a byte order mark was left out"));
        text = rest.trim_start();
    }
    if let Some((value, rest, oddities)) = Reader::read(text)
        && rest.is_empty()
    {
        oddities.tell(repairs);
        return match value {
            Value::Object(object) => Some(object),
            Value::String(inner) if strings < MOST_STRINGS => {
                repairs.push(Repair::whole("the object was read from a JSON string"));
                read(&inner, is_property, repairs, strings + 1)
            }
            _ => None,
        };
    }
    if text.starts_with("{\\\"") {
        let inner: String = serde_json::from_str(&format!("\"{text}\"")).ok()?;
        repairs.push(Repair::whole("the escaped quotes were read as quotes"));
        return match Reader::read(&inner)? {
            (Value::Object(object), "", oddities) => {
                oddities.tell(repairs);
                Some(object)
            }
            _ => None,
        };
    }
    amid_words(text, is_property, repairs)
}

/// The one object in a text of words.
fn amid_words(
    text: &str,
    is_property: &dyn Fn(&str) -> bool,
    repairs: &mut Vec<Repair>,
) -> Option<JsonObject> {
    let (before, rest) = text.split_at(text.find('{')?);
    let (value, after, oddities) = Reader::read(rest)?;
    let Value::Object(object) = value else {
        return None;
    };
    let (before, opened) = without_opening_fence(before);
    let (after, closed) = without_closing_fence(after);
    if !leads_up(before, is_property) || !follows(after) {
        return None;
    }
    if opened || closed {
        let what = "the code fence around the object was left out";
        repairs.push(Repair::whole(what));
    }
    for words in [before, after] {
        if !words.is_empty() {
            let words = quoted(words);
            let what = format!("what stood beside the object was left out: {words}");
            repairs.push(Repair::whole(what));
        }
    }
    oddities.tell(repairs);
    Some(object)
}

/// Without a line that opens a fence, such as ```` ```json ````, at its end.
fn without_opening_fence(before: &str) -> (&str, bool) {
    let before = before.trim();
    let Some(at) = before.rfind("```") else {
        return (before, false);
    };
    let language = &before[at + 3..];
    let is_word = language
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_word {
        (before[..at].trim_end(), true)
    } else {
        (before, false)
    }
}

fn without_closing_fence(after: &str) -> (&str, bool) {
    let after = after.trim();
    match after.strip_prefix("```") {
        Some(rest) => (rest.trim_start(), true),
        None => (after, false),
    }
}

/// Whether the text is words that introduce an object, such as `Here is the call:` or `lookup(`. It is
/// not if it could be a piece of data itself: `city: Bonn, options:`.
fn leads_up(before: &str, is_property: &dyn Fn(&str) -> bool) -> bool {
    let words = before
        .trim_end_matches(['`', '('])
        .trim_end()
        .trim_end_matches([':', '='])
        .trim_end();
    if !is_words(words) {
        return false;
    }
    let last = words
        .rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .find(|word| !word.is_empty());
    // `options: {…}` may be one property of an object whose brackets were forgotten.
    !(words.len() < before.len() && last.is_some_and(is_property))
}

/// Whether the text is words that may follow an object. A comma would lead to more data.
fn follows(after: &str) -> bool {
    after == "," || (is_words(after) && !after.starts_with(','))
}

fn is_words(text: &str) -> bool {
    !text.contains(['{', '}', '[', ']', '"', ':', '='])
}

/// Departures from JSON that were met inside the object.
#[derive(Default)]
struct Oddities {
    commas: usize,
    literals: Vec<(&'static str, &'static str)>,
    line_breaks: bool,
}

impl Oddities {
    fn tell(self, repairs: &mut Vec<Repair>) {
        match self.commas {
            0 => {}
            1 => repairs.push(Repair::whole("a trailing comma was left out")),
            n => repairs.push(Repair::whole(format!("{n} trailing commas were left out"))),
        }
        for (python, json) in self.literals {
            let what = format!("`{python}` was read as `{json}`");
            repairs.push(Repair::whole(what));
        }
        if self.line_breaks {
            let what = "line breaks and tabs inside of texts were kept";
            repairs.push(Repair::whole(what));
        }
    }
}

/// Reads one JSON value from the beginning of a text, leniently, in time linear in its length.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    oddities: Oddities,
}

impl<'a> Reader<'a> {
    /// The value, what follows it, and what was odd. `None` if there is no whole value.
    fn read(text: &'a str) -> Option<(Value, &'a str, Oddities)> {
        let mut reader = Self {
            text,
            at: 0,
            oddities: Oddities::default(),
        };
        let value = reader.value(0)?;
        let rest = text.get(reader.at..)?;
        Some((value, rest, reader.oddities))
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.peek()? {
            b'{' | b'[' if depth == MAX_JSON_DEPTH => None,
            b'{' => self.object(depth).map(Value::Object),
            b'[' => self.array(depth).map(Value::Array),
            b'"' => self.string().map(Value::String),
            b'-' | b'0'..=b'9' => self.number().map(Value::Number),
            _ => self.literal(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<JsonObject> {
        let mut object = Map::new();
        self.at += 1;
        self.space();
        while self.peek()? != b'}' {
            let key = self.string()?;
            self.space();
            self.take(b':')?;
            self.space();
            let value = self.value(depth + 1)?;
            // Of two values for one key neither is certain to be meant.
            if object.get(&key).is_some_and(|other| *other != value) {
                return None;
            }
            object.insert(key, value);
            self.comma(b'}')?;
        }
        self.at += 1;
        Some(object)
    }

    fn array(&mut self, depth: usize) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        while self.peek()? != b']' {
            items.push(self.value(depth + 1)?);
            self.comma(b']')?;
        }
        self.at += 1;
        Some(items)
    }

    /// After a value: a comma, or the closing bracket, which is left there.
    fn comma(&mut self, close: u8) -> Option<()> {
        self.space();
        if self.peek()? == close {
            return Some(());
        }
        self.take(b',')?;
        self.space();
        if self.peek()? == close {
            self.oddities.commas += 1;
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.take(b'"')?;
        let mut breaks = false;
        loop {
            match self.peek()? {
                b'"' => break,
                // A backslash before a real line break is no escape of JSON.
                b'\\' => match self.text.as_bytes().get(self.at + 1)? {
                    b'\n' | b'\r' | b'\t' => return None,
                    _ => self.at += 2,
                },
                b'\n' | b'\r' | b'\t' => {
                    breaks = true;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let literal = self.text.get(start..self.at)?;
        if !breaks {
            return serde_json::from_str(literal).ok();
        }
        self.oddities.line_breaks = true;
        let escaped = literal
            .replace('\n', "\\n")
            .replace('\r', "\\r")
            .replace('\t', "\\t");
        serde_json::from_str(&escaped).ok()
    }

    fn number(&mut self) -> Option<Number> {
        let rest = self.text.get(self.at..)?;
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        serde_json::from_str(&rest[..end]).ok()
    }

    fn literal(&mut self) -> Option<Value> {
        let rest = self.text.get(self.at..)?;
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        let (value, python) = match &rest[..end] {
            "true" => (Value::Bool(true), None),
            "false" => (Value::Bool(false), None),
            "null" => (Value::Null, None),
            "True" => (Value::Bool(true), Some(("True", "true"))),
            "False" => (Value::Bool(false), Some(("False", "false"))),
            "None" => (Value::Null, Some(("None", "null"))),
            _ => return None,
        };
        if let Some(python) = python
            && !self.oddities.literals.contains(&python)
        {
            self.oddities.literals.push(python);
        }
        Some(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;

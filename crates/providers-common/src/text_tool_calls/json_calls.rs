//! Calls written as JSON: an object, or a list of objects.

use serde_json::{Value, value::RawValue};

use super::{
    cursor::{Cursor, Stop},
    offered_tools::OfferedTools,
    python,
};

/// Keys under which models write a tool's name.
const NAME_KEYS: &[&str] = &["name", "tool", "tool_name", "function", "function_name"];
/// Keys under which models write a tool's input.
const INPUT_KEYS: &[&str] = &["arguments", "parameters", "args", "input"];
/// Other keys of a call.
const OTHER_KEYS: &[&str] = &["id", "type"];
/// The key whose value may be the call itself: `{"type": "function", "function": {…}}`.
const WRAPPER_KEY: &str = "function";

/// A call that was found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCall {
    /// The tool, by the name that the model received.
    pub(crate) name: String,
    /// The input, normally a JSON object.
    pub(crate) input: String,
    /// Whether the whole call was read. An incomplete call is never executed.
    pub(crate) is_complete: bool,
}

impl FoundCall {
    pub(crate) fn complete(name: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            input: input.into(),
            is_complete: true,
        }
    }

    pub(crate) fn incomplete(name: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            is_complete: false,
            ..Self::complete(name, input)
        }
    }
}

/// What may stand between two calls beside white space. Llama 3.1 writes semicolons.
pub(crate) fn is_separator(c: char) -> bool {
    matches!(c, ',' | ';')
}

/// Reads calls as JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonCalls<'a> {
    pub(crate) tools: &'a OfferedTools,
    /// Whether a mark of the form precedes the JSON. Without one, a call needs an input and has no
    /// other keys: lists of tools and data with a `name` are not calls.
    pub(crate) is_marked: bool,
    /// The marks that end the calls.
    pub(crate) closers: &'a [&'a str],
}

/// The members of a call that were read.
#[derive(Default)]
struct Members<'t> {
    name: Option<&'t str>,
    /// The start of the input, and its text once it is read.
    input_start: Option<usize>,
    input: Option<&'t str>,
}

impl JsonCalls<'_> {
    /// Reads JSON values after one another, with white space or separators between them. Stops
    /// before the first value that is not a call. Returns the calls and their end; the cursor is
    /// behind the separators that follow.
    pub(crate) fn sequence(self, cursor: &mut Cursor<'_>) -> Result<(Vec<FoundCall>, usize), Stop> {
        let mut calls = self.value(cursor)?;
        loop {
            let end = cursor.at();
            cursor.skip_while(|c| c.is_whitespace() || is_separator(c));
            if !matches!(cursor.peek(), Some('{' | '[')) {
                return Ok((calls, end));
            }
            let start = cursor.at();
            let Ok(more) = self.value(cursor) else {
                cursor.back_to(start);
                return Ok((calls, end));
            };
            calls.extend(more);
        }
    }

    /// Reads a call or a list of calls. A list with an element that is not a call is not a call.
    pub(crate) fn value(self, cursor: &mut Cursor<'_>) -> Result<Vec<FoundCall>, Stop> {
        if !cursor.optional(&["["]) {
            return Ok(vec![self.call(cursor)?]);
        }
        let mut calls = Vec::new();
        loop {
            cursor.skip_whitespace();
            match cursor.peek() {
                None if calls.is_empty() => return Err(Stop::End),
                None => return Ok(calls),
                Some(']') if calls.is_empty() => return Err(Stop::NotACall),
                Some(c @ (']' | ',')) => {
                    cursor.advance(1);
                    if c == ']' {
                        return Ok(calls);
                    }
                }
                Some(_) => match self.call(cursor) {
                    Ok(call) => calls.push(call),
                    Err(Stop::End) if !calls.is_empty() => return Ok(calls),
                    Err(stop) => return Err(stop),
                },
            }
        }
    }

    /// Reads one object. It may be in doubled braces: Qwen's chat template shows calls as
    /// `{{"name": …}}`, and its models imitate it.
    fn call(self, cursor: &mut Cursor<'_>) -> Result<FoundCall, Stop> {
        let is_doubled = cursor.rest().starts_with("{{");
        cursor.advance(usize::from(is_doubled));
        let mut members = Members::default();
        match self.members(cursor, &mut members) {
            Ok(()) => {}
            Err(stop) => {
                let name = members.name.ok_or(stop)?;
                if stop == Stop::NotACall {
                    if !self.is_marked {
                        return Err(stop);
                    }
                    // The tool is known, so the model receives an error about the rest.
                    let _ = cursor.until(self.closers);
                }
                let input = cursor.since(members.input_start.unwrap_or(cursor.at()));
                return Ok(FoundCall::incomplete(name, input));
            }
        }
        if is_doubled {
            let end = cursor.at();
            cursor.skip_whitespace();
            if !cursor.optional(&["}"]) {
                cursor.back_to(end);
            }
        }
        self.complete(&members)
    }

    fn members<'t>(self, cursor: &mut Cursor<'t>, members: &mut Members<'t>) -> Result<(), Stop> {
        cursor.expect("{")?;
        loop {
            cursor.skip_whitespace();
            match cursor.need()? {
                '}' => {
                    cursor.advance(1);
                    return Ok(());
                }
                ',' => {
                    cursor.advance(1);
                    continue;
                }
                _ => {}
            }
            let key = self.key(cursor)?;
            cursor.skip_whitespace();
            cursor.expect(":")?;
            cursor.skip_whitespace();
            let first = cursor.need()?;
            let start = cursor.at();
            if INPUT_KEYS.contains(&key) {
                if !self.is_marked && !matches!(first, '{' | '"') {
                    return Err(Stop::NotACall);
                }
                members.input_start = Some(start);
                skip_value(cursor)?;
                members.input = Some(cursor.since(start));
            } else if key == WRAPPER_KEY && first == '{' {
                self.members(cursor, members)?;
            } else if NAME_KEYS.contains(&key) {
                let name = string(cursor)?;
                if !self.tools.contains(name) {
                    return Err(Stop::NotACall);
                }
                members.name = Some(name);
            } else {
                skip_value(cursor)?;
            }
        }
    }

    fn key<'t>(self, cursor: &mut Cursor<'t>) -> Result<&'t str, Stop> {
        let start = cursor.at() + 1;
        match string(cursor) {
            Ok(key) if self.is_marked || keys().any(|it| it == key) => Ok(key),
            Err(Stop::End)
                if self.is_marked || keys().any(|it| it.starts_with(cursor.since(start))) =>
            {
                Err(Stop::End)
            }
            _ => Err(Stop::NotACall),
        }
    }

    fn complete(self, members: &Members<'_>) -> Result<FoundCall, Stop> {
        let name = members.name.ok_or(Stop::NotACall)?;
        let input = match members.input {
            None if self.is_marked => String::new(),
            None => return Err(Stop::NotACall),
            Some(raw) if raw.starts_with(['"', '\'']) => {
                // Some models write the input as a string of JSON, as in OpenAI's wire.
                let text = match python::literal_of(raw) {
                    Some(Value::String(text)) => text,
                    _ => raw.to_owned(),
                };
                if !self.is_marked && !text.trim_start().starts_with('{') {
                    return Err(Stop::NotACall);
                }
                text
            }
            Some(raw) => input_text(raw),
        };
        if !self.is_marked && self.is_schema(name, &input) {
            return Err(Stop::NotACall);
        }
        Ok(FoundCall::complete(name, input))
    }

    /// Whether an input repeats the tool's schema: `{"name": …, "parameters": {"type": "object",
    /// "properties": …}}` is a definition.
    fn is_schema(self, tool: &str, input: &str) -> bool {
        let Ok(Value::Object(input)) = serde_json::from_str(input) else {
            return false;
        };
        input.get("type").is_some_and(|it| it == "object")
            && input.get("properties").is_some_and(Value::is_object)
            && self.tools.property(tool, "properties").is_none()
    }
}

fn keys() -> impl Iterator<Item = &'static str> {
    let all = [NAME_KEYS, INPUT_KEYS, OTHER_KEYS].into_iter().flatten();
    all.copied()
}

/// Whether a text may begin with a call in JSON without a mark: its first key is one of a call.
pub(crate) fn may_begin_call(text: &str) -> bool {
    let first = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '['));
    if first.is_empty() {
        return true;
    }
    let Some(key) = first.strip_prefix('"') else {
        return false;
    };
    match key.split_once('"') {
        Some((key, _)) => keys().any(|it| it == key),
        None => keys().any(|it| it.starts_with(key)),
    }
}

/// Reads the input of a call whose tool is known. The object is not validated: the input of a call
/// may be malformed, and the model then receives an error.
pub(crate) fn input_of(name: &str, cursor: &mut Cursor<'_>) -> FoundCall {
    let start = cursor.at();
    match skip_value(cursor) {
        Ok(()) => FoundCall::complete(name, input_text(cursor.since(start))),
        Err(_) => FoundCall::incomplete(name, cursor.since(start)),
    }
}

/// Returns an input as JSON. Python literals and strings with line breaks are converted.
fn input_text(raw: &str) -> String {
    let is_json = serde_json::from_str::<&RawValue>(raw).is_ok();
    match python::literal_of(raw) {
        Some(value) if !is_json && value.is_object() => value.to_string(),
        _ => raw.to_owned(),
    }
}

/// Skips a JSON value or a Python literal by its brackets and quotes.
fn skip_value(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    let mut depth = 0_usize;
    loop {
        match cursor.need()? {
            '"' | '\'' => {
                string(cursor)?;
            }
            '{' | '[' | '(' => {
                cursor.advance(1);
                depth += 1;
                continue;
            }
            '}' | ']' | ')' if depth > 0 => {
                cursor.advance(1);
                depth -= 1;
            }
            _ if depth > 0 => {
                let is_plain = |c| !matches!(c, '"' | '\'' | '{' | '[' | '(' | '}' | ']' | ')');
                cursor.skip_while(is_plain);
                continue;
            }
            _ => {
                let start = cursor.at();
                cursor.skip_while(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
                if cursor.at() == start {
                    return Err(Stop::NotACall);
                }
                // A scalar may go on.
                cursor.need()?;
            }
        }
        if depth == 0 {
            return Ok(());
        }
    }
}

/// Reads a string in either quote. Returns its text between the quotes, with the escapes.
fn string<'t>(cursor: &mut Cursor<'t>) -> Result<&'t str, Stop> {
    let quote = cursor.next()?;
    if !matches!(quote, '"' | '\'') {
        return Err(Stop::NotACall);
    }
    let start = cursor.at();
    loop {
        cursor.skip_while(|c| c != quote && c != '\\');
        let end = cursor.at();
        if cursor.next()? == quote {
            return Ok(cursor.since(start).get(..end - start).unwrap_or_default());
        }
        cursor.next()?;
    }
}

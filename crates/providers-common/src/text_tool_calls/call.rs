//! What the parsers find.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use serde_json::{Value, value::RawValue};

use super::{known::Known, reader::Stop};

/// Keys under which models write a tool's name.
pub(crate) const NAME_KEYS: &[&str] = &["name", "tool", "tool_name", "function", "function_name"];
/// Keys under which models write a tool's input.
pub(crate) const INPUT_KEYS: &[&str] = &["arguments", "parameters", "args", "input"];
/// Further keys that a call may have.
const OTHER_KEYS: &[&str] = &["id", "type"];
/// The key whose value may be a call of its own: `{"type": "function", "function": {…}}`.
pub(crate) const WRAPPER_KEY: &str = "function";

/// A call that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCall {
    /// The tool, by the name that the model was told.
    pub(crate) name: String,
    /// Its input as JSON, or what there is of it.
    pub(crate) input: String,
    pub(crate) state: CallState,
}

/// How much of a call there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallState {
    /// All of it.
    Whole,
    /// All of it, but its input cannot be read.
    Broken,
    /// The text ended in it.
    CutOff,
}

/// Calls, and where the text goes on behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) calls: Vec<FoundCall>,
    pub(crate) end: usize,
}

impl FoundCall {
    pub(crate) fn whole(name: String, input: String) -> Self {
        Self {
            name,
            input,
            state: CallState::Whole,
        }
    }

    pub(crate) fn cut_off(name: String, input: String) -> Self {
        Self {
            name,
            input,
            state: CallState::CutOff,
        }
    }

    pub(crate) fn broken(name: String, input: String) -> Self {
        Self {
            name,
            input,
            state: CallState::Broken,
        }
    }
}

/// How sure it is that JSON means a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// A mark of the form stands before it: a name is enough.
    Marked,
    /// Nothing but the JSON says so: it must have an input, and nothing that a call has not.
    /// Lists of tools, data with a `name` and the like are no calls.
    Unmarked,
}

impl Strictness {
    /// Whether a key that begins so may be in a call.
    pub(crate) fn allows_beginning(self, beginning: &str) -> bool {
        self == Self::Marked || keys().any(|key| key.starts_with(beginning))
    }

    pub(crate) fn allows_key(self, key: &str) -> bool {
        self == Self::Marked || keys().any(|it| it == key)
    }

    /// Whether an input may begin so.
    pub(crate) fn allows_input(self, c: char) -> bool {
        self == Self::Marked || matches!(c, '{' | '"')
    }
}

fn keys() -> impl Iterator<Item = &'static str> {
    [NAME_KEYS, INPUT_KEYS, OTHER_KEYS]
        .into_iter()
        .flatten()
        .copied()
}

/// Reads one JSON object as a call. Fails with [`Stop::Syntax`] if it is no JSON and with
/// [`Stop::Foreign`] if it is no call of a known tool.
pub(crate) fn call_of_json(
    json: &str,
    known: &Known,
    strictness: Strictness,
) -> Result<FoundCall, Stop> {
    let json = with_escaped_controls(json);
    let object: BTreeMap<String, &RawValue> =
        serde_json::from_str(&json).map_err(|_| Stop::Syntax)?;
    if !object.keys().all(|key| strictness.allows_key(key)) {
        return Err(Stop::Foreign);
    }
    if let Some(inner) = object.get(WRAPPER_KEY)
        && inner.get().starts_with('{')
    {
        return call_of_json(inner.get(), known, strictness);
    }
    let mut names = NAME_KEYS.iter().filter_map(|key| object.get(*key));
    let name = names
        .find_map(|name| serde_json::from_str::<String>(name.get()).ok())
        .filter(|name| known.has(name))
        .ok_or(Stop::Foreign)?;
    let input = INPUT_KEYS.iter().find_map(|key| object.get(*key));
    let input = match input {
        // Some models write the input as a string that holds JSON, as OpenAI's wire does.
        Some(raw) if raw.get().starts_with('"') => {
            let text: String = serde_json::from_str(raw.get()).map_err(|_| Stop::Syntax)?;
            if strictness == Strictness::Unmarked && !text.trim_start().starts_with('{') {
                return Err(Stop::Foreign);
            }
            text
        }
        Some(raw) => raw.get().to_owned(),
        None if strictness == Strictness::Unmarked => return Err(Stop::Foreign),
        None => String::new(),
    };
    if strictness == Strictness::Unmarked && is_schema(&input, &name, known) {
        return Err(Stop::Foreign);
    }
    Ok(FoundCall::whole(name, input))
}

/// Whether an input is the tool's schema said back: `{"name": …, "parameters": {"type": "object",
/// "properties": …}}` is a definition, which models like to list.
fn is_schema(input: &str, tool: &str, known: &Known) -> bool {
    let Ok(Value::Object(input)) = serde_json::from_str(input) else {
        return false;
    };
    input.get("type").is_some_and(|it| it == "object")
        && input.get("properties").is_some_and(Value::is_object)
        && !known.has_property(tool, "properties")
}

/// JSON with the control characters in its strings escaped. Models write line breaks in strings as
/// they are, which JSON forbids; what is meant is never in doubt.
pub(crate) fn with_escaped_controls(json: &str) -> Cow<'_, str> {
    if !json.contains(|c: char| c < ' ') {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    let (mut in_string, mut after_backslash) = (false, false);
    for c in json.chars() {
        match c {
            _ if after_backslash => {
                after_backslash = false;
                if c < ' ' {
                    // A backslash at the end of a line stands for itself.
                    escaped.push('\\');
                }
            }
            '\\' if in_string => after_backslash = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        match c {
            c if !in_string || c >= ' ' => escaped.push(c),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
        }
    }
    Cow::Owned(escaped)
}

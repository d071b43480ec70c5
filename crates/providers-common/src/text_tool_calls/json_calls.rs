//! Calls written as JSON: an object, or a list of objects.

use serde_json::Value;

use super::{
    cursor::{CallParseError, Cursor, is_call_separator},
    literal::{read_literal, read_text_literal},
    offered_tools::OfferedTools,
};

/// JSON keys under which models write the name of a tool.
const NAME_KEYS: &[&str] = &["name", "tool", "tool_name", "function", "function_name"];
/// JSON keys under which models write the input of a tool.
const INPUT_KEYS: &[&str] = &["arguments", "parameters", "args", "input"];
/// JSON keys that a call may have besides its name and input.
const OTHER_KEYS: &[&str] = &["id", "type"];
/// JSON key whose value may be the call itself: `{"type": "function", "function": {…}}`.
const WRAPPER_KEY: &str = "function";

/// A tool call that was found in the text of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCall {
    /// Name of the tool as the model wrote it. This is the name that was sent to the provider,
    /// which may be an alias of the declared name.
    pub(crate) name: String,
    /// Input of the tool as JSON text, normally an object.
    pub(crate) input: String,
    /// Whether the whole call was read. An incomplete call is never executed.
    pub(crate) is_complete: bool,
}

impl FoundCall {
    pub(crate) fn new_complete(name: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            input: input.into(),
            is_complete: true,
        }
    }

    pub(crate) fn new_incomplete(name: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            is_complete: false,
            ..Self::new_complete(name, input)
        }
    }
}

/// Reader of tool calls that are written as JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonCallReader<'a> {
    pub(crate) tools: &'a OfferedTools,
    /// Whether a marker such as `[TOOL_CALLS]` precedes the JSON. Without a marker, a call needs an
    /// input and may have no other keys, because lists of tools and data with a `name` are not
    /// calls.
    pub(crate) is_marked: bool,
    /// Marks that close a sequence of calls, such as `<|/tool_call|>`.
    pub(crate) closers: &'a [&'a str],
}

/// Fields of a call that were read so far from its JSON object.
#[derive(Default)]
struct PartialJsonCall {
    name: Option<String>,
    /// Byte offset at which the call's input starts in the text that the cursor reads.
    input_start: Option<usize>,
    input: Option<String>,
}

impl JsonCallReader<'_> {
    /// Reads JSON values after one another, with white space or separators between them. Stops
    /// before the first value that is not a call. Fails if the first value is not a call.
    pub(crate) fn read_call_sequence(
        self,
        cursor: &mut Cursor<'_>,
    ) -> Result<Vec<FoundCall>, CallParseError> {
        let mut calls = self.read_call_or_list(cursor)?;
        loop {
            let end = cursor.position();
            cursor.skip_while(|c| c.is_whitespace() || is_call_separator(c));
            let Ok(more) = self.read_call_or_list(cursor) else {
                cursor.move_back_to(end);
                return Ok(calls);
            };
            calls.extend(more);
        }
    }

    /// Reads a call or a list of calls. Fails for a list with an element that is not a call.
    pub(crate) fn read_call_or_list(
        self,
        cursor: &mut Cursor<'_>,
    ) -> Result<Vec<FoundCall>, CallParseError> {
        if !cursor.skip_any(&["["]) {
            return Ok(vec![self.read_call(cursor)?]);
        }
        let mut calls = Vec::new();
        loop {
            cursor.skip_while(|c| c.is_whitespace() || c == ',');
            match cursor.peek() {
                Some(']') if !calls.is_empty() => {
                    cursor.advance(1);
                    return Ok(calls);
                }
                None if !calls.is_empty() => return Ok(calls),
                _ => match self.read_call(cursor) {
                    Ok(call) => calls.push(call),
                    Err(CallParseError::End) if !calls.is_empty() => return Ok(calls),
                    Err(stop) => return Err(stop),
                },
            }
        }
    }

    /// Reads one JSON object that is a call. It may be in doubled braces: Qwen's chat template
    /// shows calls as `{{"name": …}}`, and its models imitate it.
    fn read_call(self, cursor: &mut Cursor<'_>) -> Result<FoundCall, CallParseError> {
        let is_doubled = cursor.remaining_text().starts_with("{{");
        cursor.advance(usize::from(is_doubled));
        let mut members = PartialJsonCall::default();
        if let Err(stop) = self.read_members(cursor, &mut members, false) {
            let name = members.name.ok_or(stop)?;
            if stop == CallParseError::NotACall {
                if !self.is_marked {
                    return Err(stop);
                }
                // The rest of an unreadable call is skipped. Because its tool is known, the model
                // receives an error about it.
                let _ = cursor.read_until(self.closers);
            }
            let input = cursor.text_since(members.input_start.unwrap_or(cursor.position()));
            return Ok(FoundCall::new_incomplete(name, input));
        }
        if is_doubled {
            let end = cursor.position();
            cursor.skip_whitespace();
            if !cursor.skip_any(&["}"]) {
                cursor.move_back_to(end);
            }
        }
        self.build_call(members)
    }

    /// Reads the fields of a call, also those of a call nested in its key `function`.
    fn read_members(
        self,
        cursor: &mut Cursor<'_>,
        members: &mut PartialJsonCall,
        is_nested: bool,
    ) -> Result<(), CallParseError> {
        cursor.expect_text("{")?;
        loop {
            cursor.skip_while(|c| c.is_whitespace() || c == ',');
            if cursor.skip_any(&["}"]) {
                return Ok(());
            }
            let key = read_text_literal(cursor)?;
            let key = key.as_str();
            if !self.is_marked && !call_keys().any(|it| it == key) {
                return Err(CallParseError::NotACall);
            }
            cursor.skip_whitespace();
            cursor.expect_text(":")?;
            cursor.skip_whitespace();
            if key == WRAPPER_KEY && cursor.peek_required()? == '{' && !is_nested {
                self.read_members(cursor, members, true)?;
            } else if INPUT_KEYS.contains(&key) {
                if !self.is_marked && !matches!(cursor.peek_required()?, '{' | '"') {
                    return Err(CallParseError::NotACall);
                }
                members.input_start = Some(cursor.position());
                members.input = Some(read_literal(cursor)?);
            } else if NAME_KEYS.contains(&key) {
                let name = read_text_literal(cursor)?;
                members.name = Some(name).filter(|name| self.tools.contains(name));
                members.name.as_ref().ok_or(CallParseError::NotACall)?;
            } else {
                read_literal(cursor)?;
            }
        }
    }

    fn build_call(self, members: PartialJsonCall) -> Result<FoundCall, CallParseError> {
        let name = members.name.ok_or(CallParseError::NotACall)?;
        let Some(json) = members.input else {
            return if self.is_marked {
                Ok(FoundCall::new_complete(name, ""))
            } else {
                Err(CallParseError::NotACall)
            };
        };
        let value = serde_json::from_str(&json).map_err(|_| CallParseError::NotACall)?;
        let is_tool_definition = self.is_tool_definition(&name, &value);
        let input = match value {
            // Some models write the input as a string of JSON, as in OpenAI's API.
            Value::String(text) => text,
            _ => json,
        };
        let is_object = input.trim_start().starts_with('{');
        if !self.is_marked && (!is_object || is_tool_definition) {
            return Err(CallParseError::NotACall);
        }
        Ok(FoundCall::new_complete(name, input))
    }

    /// Returns whether the input of a call is a JSON Schema and not a set of arguments. `{"name":
    /// …, "parameters": {"type": "object", "properties": …}}` is the definition of a tool and not a
    /// call.
    fn is_tool_definition(self, tool: &str, input: &Value) -> bool {
        input.get("type").is_some_and(|it| it == "object")
            && input.get("properties").is_some_and(Value::is_object)
            && self.tools.property_schema(tool, "properties").is_none()
    }
}

fn call_keys() -> impl Iterator<Item = &'static str> {
    let all = [NAME_KEYS, INPUT_KEYS, OTHER_KEYS].into_iter().flatten();
    all.copied()
}

/// Returns whether a text may begin with a JSON call: its first key is a key of a call, or may
/// become one when more text arrives.
pub(crate) fn may_begin_call(text: &str) -> bool {
    let first = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '['));
    if first.is_empty() {
        return true;
    }
    let Some(key) = first.strip_prefix('"') else {
        return false;
    };
    match key.split_once('"') {
        Some((key, _)) => call_keys().any(|it| it == key),
        None => call_keys().any(|it| it.starts_with(key)),
    }
}

/// Reads the input of a call whose tool is known. If the input cannot be read, the call is
/// incomplete, and its input is the text up to the next of the marks `closers`, or to the end. The
/// model then receives an error about the call.
pub(crate) fn read_call_input(name: &str, cursor: &mut Cursor<'_>, closers: &[&str]) -> FoundCall {
    let start = cursor.position();
    match read_literal(cursor) {
        Ok(input) => FoundCall::new_complete(name, input),
        Err(stop) => {
            if stop == CallParseError::NotACall {
                let _ = cursor.read_until(closers);
            }
            FoundCall::new_incomplete(name, cursor.text_since(start))
        }
    }
}

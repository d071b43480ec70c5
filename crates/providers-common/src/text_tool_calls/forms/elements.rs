//! `<tool_call>` and `<function=name>`.

use serde_json::{Map, Value};

use super::{
    super::{
        cursor::{Cursor, Stop},
        json_calls::{FoundCall, input_of},
        offered_tools::OfferedTools,
        python,
    },
    marked_json,
};

pub(super) const TOOL_CALL: &str = "<tool_call>";
const TOOL_CALL_END: &str = "</tool_call>";
pub(super) const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";

/// Reads `<tool_call>` with JSON, a function element or pairs of keys and values.
pub(super) fn tool_call(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, Stop> {
    cursor.expect(TOOL_CALL)?;
    cursor.skip_whitespace();
    match cursor.need()? {
        '{' | '[' => marked_json(cursor, tools, &[TOOL_CALL_END]),
        '<' => {
            let calls = function(cursor, tools)?;
            close(cursor, &calls, TOOL_CALL_END);
            Ok(calls)
        }
        _ => {
            let ends_name = |c: char| c.is_whitespace() || c == '<';
            let name = tools.read_name(cursor, ends_name)?;
            let mut arguments = Map::new();
            let result = pairs(&mut arguments, name, cursor, tools);
            call_with(name, arguments, result, cursor)
        }
    }
}

/// Consumes the closing mark of complete calls, if it is there.
fn close(cursor: &mut Cursor<'_>, calls: &[FoundCall], closer: &str) {
    if calls.iter().all(|call| call.is_complete) {
        let end = cursor.at();
        cursor.skip_whitespace();
        if !cursor.closer(&[closer]) {
            cursor.back_to(end);
        }
    }
}

/// Reads `<arg_key>key</arg_key><arg_value>value</arg_value>` for each argument (GLM).
fn pairs(
    arguments: &mut Map<String, Value>,
    name: &str,
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<(), Stop> {
    loop {
        cursor.skip_whitespace();
        if cursor.optional(&[TOOL_CALL_END]) {
            return Ok(());
        }
        if !cursor.rest().is_empty() && TOOL_CALL_END.starts_with(cursor.rest()) {
            return Err(Stop::End);
        }
        let key = element(cursor, "<arg_key>", "</arg_key>")?.trim();
        cursor.skip_whitespace();
        let value = element(cursor, "<arg_value>", "</arg_value>")?;
        arguments.insert(key.to_owned(), argument(tools, name, key, value));
    }
}

fn element<'t>(cursor: &mut Cursor<'t>, open: &str, close: &str) -> Result<&'t str, Stop> {
    cursor.expect(open)?;
    let content = cursor.until(&[close])?;
    cursor.expect(close)?;
    Ok(content)
}

/// Reads `<function=name>` with JSON or `<parameter=key>` elements.
pub(super) fn function(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, Stop> {
    cursor.expect(FUNCTION)?;
    let name = tools.read_name(cursor, |c| c == '>')?;
    cursor.expect(">")?;
    cursor.skip_whitespace();
    match cursor.peek() {
        Some('{') => {
            let calls = vec![input_of(name, cursor)];
            close(cursor, &calls, FUNCTION_END);
            Ok(calls)
        }
        Some('<') => {
            let mut arguments = Map::new();
            let result = parameters(&mut arguments, name, cursor, tools);
            call_with(name, arguments, result, cursor)
        }
        Some(_) => Err(Stop::NotACall),
        None => Ok(vec![FoundCall::incomplete(name, "")]),
    }
}

fn parameters(
    arguments: &mut Map<String, Value>,
    name: &str,
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<(), Stop> {
    const OPEN: &str = "<parameter=";
    const CLOSE: &str = "</parameter>";
    loop {
        cursor.skip_whitespace();
        if cursor.optional(&[FUNCTION_END]) {
            return Ok(());
        }
        if !cursor.rest().is_empty() && FUNCTION_END.starts_with(cursor.rest()) {
            return Err(Stop::End);
        }
        let key = element(cursor, OPEN, ">")?.trim();
        // Models sometimes leave out the end of a parameter.
        let value = cursor.until(&[CLOSE, OPEN, FUNCTION_END])?;
        cursor.optional(&[CLOSE]);
        arguments.insert(key.to_owned(), argument(tools, name, key, value));
    }
}

fn call_with(
    name: &str,
    arguments: Map<String, Value>,
    result: Result<(), Stop>,
    cursor: &mut Cursor<'_>,
) -> Result<Vec<FoundCall>, Stop> {
    let input = Value::Object(arguments).to_string();
    match result {
        Ok(()) => Ok(vec![FoundCall::complete(name, input)]),
        Err(Stop::End) => {
            cursor.advance(cursor.rest().len());
            Ok(vec![FoundCall::incomplete(name, input)])
        }
        Err(stop) => Err(stop),
    }
}

/// Returns the value of an argument between marks: a string if the tool's schema says so, else the
/// value that the text denotes.
fn argument(tools: &OfferedTools, tool: &str, key: &str, raw: &str) -> Value {
    // The templates put line breaks around each value.
    let text = raw.strip_prefix('\n').unwrap_or(raw);
    let text = text.strip_suffix('\n').unwrap_or(text);
    if !tools.is_text(tool, key) {
        let value = text.trim();
        let json = serde_json::from_str(value).ok();
        if let Some(value) = json.or_else(|| python::literal_of(value)) {
            return value;
        }
    }
    Value::String(text.to_owned())
}

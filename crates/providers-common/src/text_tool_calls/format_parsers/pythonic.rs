//! Calls in Python's notation: `[name(key=value, …), …]`.

use super::super::{
    cursor::{CallParseError, Cursor},
    json_calls::FoundCall,
    literal::{read_literal, skip_item_separator},
    offered_tools::OfferedTools,
};

pub(super) const OPENERS: &[&str] = &["<|python_start|>", "<|tool_call_start|>"];
const CLOSERS: &[&str] = &["<|python_end|>", "<|tool_call_end|>"];

/// Reads a list of calls and the marks around it, such as `<|python_start|>`. The last call may be
/// incomplete if the text ends within it.
pub(super) fn read_calls(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, CallParseError> {
    if cursor.skip_any(OPENERS) {
        cursor.skip_whitespace();
    }
    let mut calls = Vec::new();
    match read_call_list(cursor, tools, &mut calls) {
        Err(CallParseError::End) if !calls.is_empty() => {}
        result => result?,
    }
    cursor.skip_closing_mark(CLOSERS);
    Ok(calls)
}

fn read_call_list(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
    calls: &mut Vec<FoundCall>,
) -> Result<(), CallParseError> {
    cursor.expect_text("[")?;
    loop {
        cursor.skip_whitespace();
        let name = tools.read_tool_name(cursor, |c| c == '(')?;
        cursor.expect_text("(")?;
        let start = cursor.position();
        let arguments = read_arguments(cursor);
        if arguments == Err(CallParseError::End) {
            calls.push(FoundCall::new_incomplete(name, cursor.text_since(start)));
        }
        calls.push(FoundCall::new_complete(name, arguments?));
        if !skip_item_separator(cursor, "]")? {
            return cursor.expect_text("]");
        }
    }
}

/// Reads the arguments of a call, `key=value, …)`. Returns them as a JSON object.
fn read_arguments(cursor: &mut Cursor<'_>) -> Result<String, CallParseError> {
    let mut arguments: Vec<String> = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.skip_any(&[")"]) {
            return Ok(format!("{{{}}}", arguments.join(",")));
        }
        let start = cursor.position();
        cursor.skip_while(|c| c == '_' || c.is_alphanumeric());
        let key = cursor.text_since(start);
        cursor.skip_whitespace();
        cursor.expect_text("=")?;
        if key.is_empty() {
            return Err(CallParseError::NotACall);
        }
        arguments.push(format!("\"{key}\":{}", read_literal(cursor)?));
        skip_item_separator(cursor, ")")?;
    }
}

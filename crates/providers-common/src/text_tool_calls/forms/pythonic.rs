//! Calls in Python's notation: `[name(key=value, …), …]`.

use super::super::{
    cursor::{Cursor, Stop},
    json_calls::FoundCall,
    literal::{read_literal, skip_comma_before},
    offered_tools::OfferedTools,
};

pub(super) const OPENERS: &[&str] = &["<|python_start|>", "<|tool_call_start|>"];
const CLOSERS: &[&str] = &["<|python_end|>", "<|tool_call_end|>"];

/// Reads a list of calls and the marks around it. At the end of the text, the last call may be
/// incomplete.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &OfferedTools) -> Result<Vec<FoundCall>, Stop> {
    if cursor.skip_any(OPENERS) {
        cursor.skip_whitespace();
    }
    let mut calls = Vec::new();
    match list(cursor, tools, &mut calls) {
        Err(Stop::End) if !calls.is_empty() => {}
        result => result?,
    }
    cursor.skip_closing_mark(CLOSERS);
    Ok(calls)
}

fn list(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
    calls: &mut Vec<FoundCall>,
) -> Result<(), Stop> {
    cursor.expect("[")?;
    loop {
        cursor.skip_whitespace();
        let name = tools.read_name(cursor, |c| c == '(')?;
        cursor.expect("(")?;
        let start = cursor.at();
        let arguments = arguments(cursor);
        if arguments == Err(Stop::End) {
            calls.push(FoundCall::incomplete(name, cursor.text_since(start)));
        }
        calls.push(FoundCall::complete(name, arguments?));
        if !skip_comma_before(cursor, "]")? {
            return cursor.expect("]");
        }
    }
}

/// Reads the arguments of a call, `key=value, …)`. Returns them as a JSON object.
fn arguments(cursor: &mut Cursor<'_>) -> Result<String, Stop> {
    let mut arguments: Vec<String> = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.skip_any(&[")"]) {
            return Ok(format!("{{{}}}", arguments.join(",")));
        }
        let start = cursor.at();
        cursor.skip_while(|c| c == '_' || c.is_alphanumeric());
        let key = cursor.text_since(start);
        cursor.skip_whitespace();
        cursor.expect("=")?;
        if key.is_empty() {
            return Err(Stop::NotACall);
        }
        arguments.push(format!("\"{key}\":{}", read_literal(cursor)?));
        skip_comma_before(cursor, ")")?;
    }
}

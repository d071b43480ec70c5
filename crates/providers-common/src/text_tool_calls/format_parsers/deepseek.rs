//! Parser of calls in the special tokens of `DeepSeek`. In these tokens, U+FF5C replaces the bar
//! and U+2581 replaces the space.

use super::super::{
    cursor::{CallParseError, Cursor},
    json_calls::{FoundCall, read_call_input},
    offered_tools::OfferedTools,
};

pub(super) const CALLS_BEGIN: &str = "<｜tool▁calls▁begin｜>";
const CALLS_END: &str = "<｜tool▁calls▁end｜>";
pub(super) const CALL_BEGIN: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";
/// Word before `<｜tool▁sep｜>` in a call of `DeepSeek` V3 or R1. V3.1 writes the tool's name there.
const KIND: &str = "function";

pub(super) fn read_calls(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, CallParseError> {
    if cursor.skip_any(&[CALLS_BEGIN]) {
        cursor.skip_whitespace();
    }
    let mut calls = vec![read_call(cursor, tools)?];
    while !cursor.skip_closing_mark(&[CALLS_END]) {
        let end = cursor.position();
        cursor.skip_whitespace();
        let Ok(call) = read_call(cursor, tools) else {
            cursor.move_back_to(end);
            break;
        };
        calls.push(call);
    }
    Ok(calls)
}

fn read_call(cursor: &mut Cursor<'_>, tools: &OfferedTools) -> Result<FoundCall, CallParseError> {
    cursor.expect_text(CALL_BEGIN)?;
    let head = cursor.read_until(&[SEPARATOR])?;
    cursor.expect_text(SEPARATOR)?;
    let name = if head == KIND && cursor.peek_required()? != '{' {
        let name = tools.read_tool_name(cursor, char::is_whitespace)?;
        cursor.skip_whitespace();
        cursor.skip_any(&["```json"]);
        name
    } else if tools.contains(head) {
        head
    } else {
        return Err(CallParseError::NotACall);
    };
    cursor.skip_whitespace();
    let call = match cursor.peek() {
        Some('{') => read_call_input(name, cursor, &[CALL_END]),
        Some(_) => return Err(CallParseError::NotACall),
        None => FoundCall::new_incomplete(name, ""),
    };
    cursor.skip_closing_mark(&["```"]);
    cursor.skip_closing_mark(&[CALL_END]);
    Ok(call)
}

//! The special tokens of `DeepSeek`. The bars are U+FF5C and the spaces U+2581.

use super::super::{
    cursor::{Cursor, Stop},
    json_calls::{FoundCall, read_input},
    offered_tools::OfferedTools,
};

pub(super) const CALLS_BEGIN: &str = "<｜tool▁calls▁begin｜>";
const CALLS_END: &str = "<｜tool▁calls▁end｜>";
pub(super) const CALL_BEGIN: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";
/// Word that V3 and R1 write before the separator. V3.1 writes the tool's name there.
const KIND: &str = "function";

pub(super) fn read(cursor: &mut Cursor<'_>, tools: &OfferedTools) -> Result<Vec<FoundCall>, Stop> {
    if cursor.skip_any(&[CALLS_BEGIN]) {
        cursor.skip_whitespace();
    }
    let mut calls = vec![call(cursor, tools)?];
    while !cursor.skip_closing_mark(&[CALLS_END]) {
        let end = cursor.at();
        cursor.skip_whitespace();
        let Ok(call) = call(cursor, tools) else {
            cursor.move_back_to(end);
            break;
        };
        calls.push(call);
    }
    Ok(calls)
}

fn call(cursor: &mut Cursor<'_>, tools: &OfferedTools) -> Result<FoundCall, Stop> {
    cursor.expect(CALL_BEGIN)?;
    let head = cursor.read_until(&[SEPARATOR])?;
    cursor.expect(SEPARATOR)?;
    let name = if head == KIND && cursor.peek_required()? != '{' {
        let name = tools.read_name(cursor, char::is_whitespace)?;
        cursor.skip_whitespace();
        cursor.skip_any(&["```json"]);
        name
    } else if tools.contains(head) {
        head
    } else {
        return Err(Stop::NotACall);
    };
    cursor.skip_whitespace();
    let call = match cursor.peek() {
        Some('{') => read_input(name, cursor, &[CALL_END]),
        Some(_) => return Err(Stop::NotACall),
        None => FoundCall::incomplete(name, ""),
    };
    cursor.skip_closing_mark(&["```"]);
    cursor.skip_closing_mark(&[CALL_END]);
    Ok(call)
}

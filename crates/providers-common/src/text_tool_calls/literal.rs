//! Parser for values in JSON's or Python's notation, which models mix in tool calls.

use std::fmt::Write as _;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::cursor::{CallParseError, Cursor};

/// Parses a text that consists of one JSON or Python literal. Returns `None` for any other text.
pub(crate) fn parse_literal(text: &str) -> Option<Value> {
    let mut cursor = Cursor::new(text);
    let json = read_literal(&mut cursor).ok()?;
    cursor.skip_whitespace();
    cursor
        .peek()
        .is_none()
        .then(|| serde_json::from_str(&json).ok())?
}

/// Reads a JSON or Python literal: a string, number, boolean, null, list, tuple or dictionary.
/// Returns it as JSON text, which is the original text if that is JSON. Models mix the notations of
/// JSON and Python, and write line breaks in strings.
pub(crate) fn read_literal(cursor: &mut Cursor<'_>) -> Result<String, CallParseError> {
    cursor.skip_whitespace();
    let mut json = String::new();
    let mut depth = 0_usize;
    loop {
        match cursor.peek_required()? {
            '"' | '\'' => convert_string(cursor, &mut json)?,
            '-' | '0'..='9' => convert_number(cursor, &mut json)?,
            c @ ('[' | '(' | '{') => {
                cursor.advance(1);
                json.push(if c == '{' { c } else { '[' });
                depth += 1;
            }
            c @ (']' | ')' | '}') if depth > 0 => {
                cursor.advance(1);
                // A comma after the last element is removed: Python allows it, but JSON does not.
                if let Some(elements) = json.trim_end().strip_suffix(',') {
                    json.truncate(elements.len());
                }
                json.push(if c == '}' { c } else { ']' });
                depth -= 1;
            }
            c @ (',' | ':') if depth > 0 => {
                cursor.advance(1);
                json.push(c);
            }
            c if c.is_whitespace() => {
                cursor.advance(c.len_utf8());
                json.push(if c.is_ascii() { c } else { ' ' });
            }
            _ => convert_constant(cursor, &mut json)?,
        }
        if depth == 0 {
            break;
        }
    }
    serde_json::from_str::<IgnoredAny>(&json).map_err(|_| CallParseError::NotACall)?;
    Ok(json)
}

/// Reads a string literal and returns its content. Fails with [`CallParseError::NotACall`] for a
/// literal of another type.
pub(crate) fn read_text_literal(cursor: &mut Cursor<'_>) -> Result<String, CallParseError> {
    serde_json::from_str(&read_literal(cursor)?).map_err(|_| CallParseError::NotACall)
}

/// Reads the end of a list element. Consumes a comma and returns `true`, or returns `false` if
/// `closer` comes next. Fails for any other text.
pub(crate) fn skip_item_separator(
    cursor: &mut Cursor<'_>,
    closer: &str,
) -> Result<bool, CallParseError> {
    cursor.skip_whitespace();
    if cursor.skip_any(&[","]) {
        return Ok(true);
    }
    cursor.peek_required()?;
    if cursor.remaining_text().starts_with(closer) {
        Ok(false)
    } else {
        Err(CallParseError::NotACall)
    }
}

/// Reads a string in single or double quotes and appends it to `json` as a JSON string.
fn convert_string(cursor: &mut Cursor<'_>, json: &mut String) -> Result<(), CallParseError> {
    let quote = cursor.next()?;
    json.push('"');
    loop {
        match cursor.next()? {
            c if c == quote => break,
            '\\' => match cursor.next()? {
                c @ ('n' | 't' | 'r' | 'b' | 'f' | 'u' | '\\' | '"' | '/') => {
                    json.extend(['\\', c]);
                }
                '\'' => json.push('\''),
                'x' => json.push_str("\\u00"),
                // The backslash of an unknown escape is kept, as Python does.
                c => {
                    json.push_str("\\\\");
                    push_escaped_char(c, json);
                }
            },
            '"' => json.push_str("\\\""),
            c => push_escaped_char(c, json),
        }
    }
    json.push('"');
    Ok(())
}

/// Appends a character to a JSON string. Control characters are escaped.
fn push_escaped_char(c: char, json: &mut String) {
    if c < ' ' {
        // Writing to a string cannot fail.
        let _ = write!(json, "\\u{:04x}", u32::from(c));
    } else {
        json.push(c);
    }
}

fn convert_number(cursor: &mut Cursor<'_>, json: &mut String) -> Result<(), CallParseError> {
    let start = cursor.position();
    cursor.skip_while(|c| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E' | '_'));
    // A number at the end of the text is an error, because more digits of it may arrive.
    cursor.peek_required()?;
    json.push_str(&cursor.text_since(start).replace('_', ""));
    Ok(())
}

fn convert_constant(cursor: &mut Cursor<'_>, json: &mut String) -> Result<(), CallParseError> {
    let (word, value) = match cursor.peek_required()? {
        'T' => ("True", "true"),
        't' => ("true", "true"),
        'F' => ("False", "false"),
        'f' => ("false", "false"),
        'N' => ("None", "null"),
        'n' => ("null", "null"),
        _ => return Err(CallParseError::NotACall),
    };
    cursor.expect_text(word)?;
    json.push_str(value);
    Ok(())
}

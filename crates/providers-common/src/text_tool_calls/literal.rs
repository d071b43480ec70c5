//! Values in JSON's or Python's notation.

use serde_json::{Map, Number, Value};

use super::cursor::{Cursor, Stop};

/// Maximum nesting of literals.
const MAX_DEPTH: usize = 64;

/// Parses a text that consists of one JSON or Python literal.
pub(crate) fn literal_of(text: &str) -> Option<Value> {
    let mut cursor = Cursor::new(text);
    let value = literal(&mut cursor).ok()?;
    cursor.skip_whitespace();
    cursor.peek().is_none().then_some(value)
}

/// Reads a JSON or Python literal: a string, number, boolean, null, list, tuple or dictionary.
/// Models mix the notations of JSON and Python, and write line breaks in strings.
pub(crate) fn literal(cursor: &mut Cursor<'_>) -> Result<Value, Stop> {
    nested_literal(cursor, 0)
}

fn nested_literal(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Stop> {
    if depth > MAX_DEPTH {
        return Err(Stop::NotACall);
    }
    cursor.skip_whitespace();
    match cursor.need()? {
        '"' | '\'' => Ok(Value::String(string(cursor)?)),
        '[' => sequence(cursor, "]", depth),
        '(' => sequence(cursor, ")", depth),
        '{' => dictionary(cursor, depth),
        '-' | '0'..='9' => number(cursor),
        _ => constant(cursor),
    }
}

fn sequence(cursor: &mut Cursor<'_>, closer: &str, depth: usize) -> Result<Value, Stop> {
    cursor.advance(1);
    let mut values = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.optional(&[closer]) {
            return Ok(Value::Array(values));
        }
        values.push(nested_literal(cursor, depth + 1)?);
        comma_before(cursor, closer)?;
    }
}

fn dictionary(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Stop> {
    cursor.advance(1);
    let mut object = Map::new();
    loop {
        cursor.skip_whitespace();
        if cursor.optional(&["}"]) {
            return Ok(Value::Object(object));
        }
        let key = string(cursor)?;
        cursor.skip_whitespace();
        cursor.expect(":")?;
        object.insert(key, nested_literal(cursor, depth + 1)?);
        comma_before(cursor, "}")?;
    }
}

/// Consumes a comma and returns `true`. Returns `false` if `closer` comes next.
pub(crate) fn comma_before(cursor: &mut Cursor<'_>, closer: &str) -> Result<bool, Stop> {
    cursor.skip_whitespace();
    if cursor.optional(&[","]) {
        return Ok(true);
    }
    cursor.need()?;
    if cursor.rest().starts_with(closer) {
        Ok(false)
    } else {
        Err(Stop::NotACall)
    }
}

/// Reads a string in single or double quotes.
pub(crate) fn string(cursor: &mut Cursor<'_>) -> Result<String, Stop> {
    let quote = cursor.next()?;
    if !matches!(quote, '"' | '\'') {
        return Err(Stop::NotACall);
    }
    let mut text = String::new();
    loop {
        match cursor.next()? {
            c if c == quote => return Ok(text),
            '\\' => match cursor.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                c @ ('\\' | '\'' | '"' | '/') => text.push(c),
                'x' => text.push(code_point(cursor, 2)?),
                'u' => text.push(code_point(cursor, 4)?),
                // Python keeps the backslash of an unknown escape.
                other => text.extend(['\\', other]),
            },
            c => text.push(c),
        }
    }
}

/// Reads a character by its hexadecimal number. A surrogate pair, as in JSON, is one character.
fn code_point(cursor: &mut Cursor<'_>, digits: u32) -> Result<char, Stop> {
    let high = hexadecimal(cursor, digits)?;
    if digits == 4 && (0xD800..0xDC00).contains(&high) {
        cursor.expect("\\u")?;
        let low = hexadecimal(cursor, 4)?;
        let low = low.checked_sub(0xDC00).filter(|low| *low < 0x400);
        let code = low.map(|low| 0x1_0000 + ((high - 0xD800) << 10) + low);
        return code.and_then(char::from_u32).ok_or(Stop::NotACall);
    }
    char::from_u32(high).ok_or(Stop::NotACall)
}

fn hexadecimal(cursor: &mut Cursor<'_>, digits: u32) -> Result<u32, Stop> {
    let mut value = 0;
    for _ in 0..digits {
        let digit = cursor.next()?.to_digit(16).ok_or(Stop::NotACall)?;
        value = value * 16 + digit;
    }
    Ok(value)
}

fn number(cursor: &mut Cursor<'_>) -> Result<Value, Stop> {
    let start = cursor.at();
    cursor.skip_while(|c| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E' | '_'));
    // At the end of the text, more digits may follow: wait for them.
    cursor.need()?;
    let text = cursor.since(start).replace('_', "");
    let number: Number = text.parse().map_err(|_| Stop::NotACall)?;
    Ok(Value::Number(number))
}

fn constant(cursor: &mut Cursor<'_>) -> Result<Value, Stop> {
    let (word, value) = match cursor.need()? {
        'T' => ("True", Value::Bool(true)),
        't' => ("true", Value::Bool(true)),
        'F' => ("False", Value::Bool(false)),
        'f' => ("false", Value::Bool(false)),
        'N' => ("None", Value::Null),
        'n' => ("null", Value::Null),
        _ => return Err(Stop::NotACall),
    };
    cursor.expect(word)?;
    Ok(value)
}

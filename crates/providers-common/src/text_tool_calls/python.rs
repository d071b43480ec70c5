//! Calls and literals as Python writes them.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use serde_json::{Map, Number, Value};

use super::{
    call::FoundCall,
    known::Known,
    reader::{Reader, Source, Stop},
};

/// Literals within one another.
const MAX_DEPTH: usize = 64;

/// What there is of a list of calls, and how it ended.
#[derive(Debug)]
pub(crate) struct PythonCalls {
    pub(crate) calls: Vec<FoundCall>,
    pub(crate) end: Result<(), Stop>,
}

/// Reads `[name(key=value, …), …]`.
pub(crate) async fn calls(reader: &mut Reader, known: &Known) -> PythonCalls {
    let mut calls = Vec::new();
    let end = list(reader, known, &mut calls).await;
    PythonCalls { calls, end }
}

async fn list(reader: &mut Reader, known: &Known, calls: &mut Vec<FoundCall>) -> Result<(), Stop> {
    reader.expect('[').await?;
    loop {
        reader.blanks().await;
        let name = known.read_name(reader, |c| c == '(').await?;
        reader.expect('(').await?;
        let start = reader.at();
        match arguments(reader).await {
            Ok(input) => {
                let input = Value::Object(input).to_string();
                calls.push(FoundCall::whole(name, input));
            }
            Err(Stop::End) => {
                calls.push(FoundCall::cut_off(name, reader.since(start)));
                return Err(Stop::End);
            }
            Err(stop) => return Err(stop),
        }
        reader.blanks().await;
        match reader.need().await? {
            ',' => reader.bump(','),
            ']' => {
                reader.bump(']');
                return Ok(());
            }
            _ => return Err(Stop::Syntax),
        }
    }
}

/// Reads `key=value, …)`.
async fn arguments(reader: &mut Reader) -> Result<Map<String, Value>, Stop> {
    let mut arguments = Map::new();
    loop {
        reader.blanks().await;
        if reader.need().await? == ')' {
            reader.bump(')');
            return Ok(arguments);
        }
        let start = reader.at();
        reader.skip(|c| c == '_' || c.is_alphanumeric()).await;
        let key = reader.since(start);
        if key.is_empty() {
            return Err(Stop::Syntax);
        }
        reader.blanks().await;
        reader.expect('=').await?;
        arguments.insert(key, literal(reader, 0).await?);
        reader.blanks().await;
        match reader.need().await? {
            ',' => reader.bump(','),
            ')' => {}
            _ => return Err(Stop::Syntax),
        }
    }
}

/// The value of a text that is one literal; `None` if it is not.
pub(crate) fn literal_of(text: &str) -> Option<Value> {
    let mut reader = Source::whole(text).reader(0, usize::MAX);
    let future = pin!(async {
        let value = literal(&mut reader, 0).await?;
        reader.blanks().await;
        match reader.peek().await {
            None => Ok(value),
            Some(_) => Err(Stop::Syntax),
        }
    });
    // The text is all there: it never waits.
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value.ok(),
        Poll::Pending => None,
    }
}

type Literal<'r> = Pin<Box<dyn Future<Output = Result<Value, Stop>> + Send + 'r>>;

/// Reads a literal: text, number, truth value, `None`, list, tuple or dictionary. JSON's words are
/// understood too: models mix them up.
fn literal(reader: &mut Reader, depth: usize) -> Literal<'_> {
    Box::pin(async move {
        if depth > MAX_DEPTH {
            return Err(Stop::Syntax);
        }
        reader.blanks().await;
        match reader.need().await? {
            quote @ ('"' | '\'') => Ok(Value::String(string(reader, quote).await?)),
            '[' => sequence(reader, ('[', ']'), depth).await,
            '(' => sequence(reader, ('(', ')'), depth).await,
            '{' => dictionary(reader, depth).await,
            '-' | '0'..='9' => number(reader).await,
            _ => word(reader).await,
        }
    })
}

async fn sequence(
    reader: &mut Reader,
    (opens, closes): (char, char),
    depth: usize,
) -> Result<Value, Stop> {
    reader.expect(opens).await?;
    let mut values = Vec::new();
    loop {
        reader.blanks().await;
        if reader.need().await? == closes {
            reader.bump(closes);
            return Ok(Value::Array(values));
        }
        values.push(literal(reader, depth + 1).await?);
        comma_or(reader, closes).await?;
    }
}

async fn dictionary(reader: &mut Reader, depth: usize) -> Result<Value, Stop> {
    reader.expect('{').await?;
    let mut object = Map::new();
    loop {
        reader.blanks().await;
        let quote = match reader.need().await? {
            '}' => {
                reader.bump('}');
                return Ok(Value::Object(object));
            }
            quote @ ('"' | '\'') => quote,
            _ => return Err(Stop::Syntax),
        };
        let key = string(reader, quote).await?;
        reader.blanks().await;
        reader.expect(':').await?;
        object.insert(key, literal(reader, depth + 1).await?);
        comma_or(reader, '}').await?;
    }
}

/// Steps over a comma, or stays before the end.
async fn comma_or(reader: &mut Reader, closes: char) -> Result<(), Stop> {
    reader.blanks().await;
    match reader.need().await? {
        ',' => reader.bump(','),
        c if c == closes => {}
        _ => return Err(Stop::Syntax),
    }
    Ok(())
}

async fn string(reader: &mut Reader, quote: char) -> Result<String, Stop> {
    reader.expect(quote).await?;
    let mut text = String::new();
    loop {
        let c = reader.need().await?;
        reader.bump(c);
        match c {
            _ if c == quote => return Ok(text),
            '\\' => {
                let escaped = reader.need().await?;
                reader.bump(escaped);
                match escaped {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '\n' => {}
                    '\\' | '\'' | '"' | '/' => text.push(escaped),
                    'x' => text.push(code(reader, 2).await?),
                    'u' => text.push(code(reader, 4).await?),
                    // Python keeps the backslash of an escape that it does not know.
                    other => text.extend(['\\', other]),
                }
            }
            _ => text.push(c),
        }
    }
}

/// A character by its number in hexadecimal digits; two halves of a pair (as JSON writes them) are
/// read as one.
async fn code(reader: &mut Reader, digits: u32) -> Result<char, Stop> {
    let high = digits_of(reader, digits).await?;
    if digits == 4 && (0xD800..0xDC00).contains(&high) {
        reader.literal("\\u").await?;
        let low = digits_of(reader, 4).await?;
        let low = low.checked_sub(0xDC00).filter(|low| *low < 0x400);
        let code = low.map(|low| 0x1_0000 + ((high - 0xD800) << 10) + low);
        return code.and_then(char::from_u32).ok_or(Stop::Syntax);
    }
    char::from_u32(high).ok_or(Stop::Syntax)
}

async fn digits_of(reader: &mut Reader, digits: u32) -> Result<u32, Stop> {
    let mut value = 0;
    for _ in 0..digits {
        let c = reader.need().await?;
        let digit = c.to_digit(16).ok_or(Stop::Syntax)?;
        reader.bump(c);
        value = value * 16 + digit;
    }
    Ok(value)
}

async fn number(reader: &mut Reader) -> Result<Value, Stop> {
    let start = reader.at();
    reader
        .skip(|c| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E' | '_'))
        .await;
    // It may go on.
    reader.need().await?;
    let text = reader.since(start).replace('_', "");
    let number: Number = text.parse().map_err(|_| Stop::Syntax)?;
    Ok(Value::Number(number))
}

async fn word(reader: &mut Reader) -> Result<Value, Stop> {
    let (word, value) = match reader.need().await? {
        'T' => ("True", Value::Bool(true)),
        't' => ("true", Value::Bool(true)),
        'F' => ("False", Value::Bool(false)),
        'f' => ("false", Value::Bool(false)),
        'N' => ("None", Value::Null),
        'n' => ("null", Value::Null),
        _ => return Err(Stop::Syntax),
    };
    reader.literal(word).await?;
    Ok(value)
}

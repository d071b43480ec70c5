//! Calls as JSON: an object, or a list of objects, one or several after one another.

use std::ops::Range;

use super::{
    call::{CallState, FoundCall, INPUT_KEYS, NAME_KEYS, Strictness, WRAPPER_KEY, call_of_json},
    known::Known,
    place::is_separator,
    reader::{Reader, Stop},
};

/// Arrays and objects within one another, as `serde_json` allows them.
const MAX_DEPTH: usize = 127;
/// Characters of a key or name that are compared; both are shorter.
const MAX_WORD: usize = 512;

/// Reads one JSON object without looking at what it holds. Gives where it stands.
pub(crate) async fn object(reader: &mut Reader) -> Result<Range<usize>, Stop> {
    let start = reader.at();
    if reader.need().await? != '{' {
        return Err(Stop::Syntax);
    }
    walk(reader, &mut Watch::Nothing).await?;
    Ok(start..reader.at())
}

/// Reads calls: JSON values after one another, with blanks, commas or semicolons between them.
///
/// Where the first value is no call, [`Trouble`] says what there was of it. Where a later one is none,
/// the calls end before it.
pub(crate) async fn calls(
    reader: &mut Reader,
    known: &Known,
    strictness: Strictness,
) -> Result<Calls, Trouble> {
    let mut calls = one(reader, known, strictness).await?;
    let mut end = reader.at();
    let ending = loop {
        reader.skip(|c| c.is_whitespace() || is_separator(c)).await;
        match reader.peek().await {
            None => break Ending::Text,
            Some('{' | '[') => {}
            Some(_) => break Ending::Other,
        }
        match one(reader, known, strictness).await {
            Ok(more) => calls.extend(more),
            Err(trouble) if trouble.stop == Stop::End && !trouble.calls.is_empty() => {
                calls.extend(trouble.calls);
                end = reader.at();
                break Ending::Text;
            }
            Err(_) => break Ending::NoCall,
        }
        end = reader.at();
    };
    Ok(Calls {
        found: calls,
        end,
        ending,
    })
}

/// Calls that were read.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) found: Vec<FoundCall>,
    /// Where the last one ends.
    pub(crate) end: usize,
    pub(crate) ending: Ending,
}

/// What comes after calls and blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing, the text has ended; maybe within the last call.
    Text,
    /// Something that is no JSON. The reader stands before it.
    Other,
    /// JSON that is no call.
    NoCall,
}

/// Why a value is no call, and what there was of calls in it.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) stop: Stop,
    /// The calls of the value so far. The last one is the one that was being read, if its name was
    /// known already; it is [`CallState::CutOff`].
    pub(crate) calls: Vec<FoundCall>,
}

/// Reads one JSON value. An object may stand in doubled braces: Qwen's chat template shows calls as
/// `{{"name": …}}`, an escape gone wrong, and its models imitate it.
pub(crate) async fn one(
    reader: &mut Reader,
    known: &Known,
    strictness: Strictness,
) -> Result<Vec<FoundCall>, Trouble> {
    let mut calls = CallWatch {
        known,
        strictness,
        found: Vec::new(),
        open: None,
    };
    let mut watch = Watch::Calls(&mut calls);
    let is_doubled = doubled_brace(reader).await;
    let read = walk(reader, &mut watch).await;
    if is_doubled && read.is_ok() {
        closing_brace(reader).await;
    }
    match read {
        Ok(()) if calls.found.is_empty() => Err(Stop::Foreign.into()),
        Ok(()) => Ok(calls.found),
        // A call of a list that names no tool: nobody can say what was meant by the others.
        Err(Stop::Foreign) => Err(Stop::Foreign.into()),
        Err(stop) => {
            let open = calls.open.and_then(|open| {
                let from = open.input.unwrap_or(reader.at());
                let input = reader.text(from..reader.at());
                Some(FoundCall::cut_off(open.name?, input))
            });
            calls.found.extend(open);
            Err(Trouble {
                stop,
                calls: calls.found,
            })
        }
    }
}

/// Steps over the first of two braces, which no JSON begins with.
async fn doubled_brace(reader: &mut Reader) -> bool {
    let start = reader.at();
    if reader.peek().await == Some('{') {
        reader.bump('{');
        if reader.peek().await == Some('{') {
            return true;
        }
        reader.back_to(start);
    }
    false
}

/// Steps over the brace that belongs to the first of two, where it was not forgotten.
async fn closing_brace(reader: &mut Reader) {
    let end = reader.at();
    reader.blanks().await;
    if reader.peek().await == Some('}') {
        reader.bump('}');
    } else {
        reader.back_to(end);
    }
}

impl Trouble {
    /// Whether a call was being read, by a name that is known.
    pub(crate) fn has_open_call(&self) -> bool {
        let last = self.calls.last();
        last.is_some_and(|call| call.state == CallState::CutOff)
    }
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Self {
        Self {
            stop,
            calls: Vec::new(),
        }
    }
}

/// What is looked for in JSON while it is read.
enum Watch<'w, 'k> {
    Nothing,
    Calls(&'w mut CallWatch<'k>),
}

struct CallWatch<'k> {
    known: &'k Known,
    strictness: Strictness,
    found: Vec<FoundCall>,
    open: Option<OpenCall>,
}

/// A call that is being read.
struct OpenCall {
    start: usize,
    /// The stack's height around it.
    depth: usize,
    name: Option<String>,
    /// Where its input begins.
    input: Option<usize>,
}

/// An array or object that is open.
struct Frame {
    is_object: bool,
    /// It is a call, or the wrapper of one.
    is_call: bool,
    /// The key whose value comes, in a call.
    key: String,
}

/// What a string may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Any,
    Key,
    Name,
}

/// Reads one JSON value.
async fn walk(reader: &mut Reader, watch: &mut Watch<'_, '_>) -> Result<(), Stop> {
    let mut stack: Vec<Frame> = Vec::new();
    loop {
        reader.blanks().await;
        let c = reader.need().await?;
        let word = watch.value(&stack, c, reader.at())?;
        match c {
            '{' | '[' => {
                if stack.len() >= MAX_DEPTH {
                    return Err(Stop::Syntax);
                }
                let is_call = c == '{' && watch.opens_call(&stack, reader.at());
                reader.bump(c);
                stack.push(Frame {
                    is_object: c == '{',
                    is_call,
                    key: String::new(),
                });
                reader.blanks().await;
                let closes = if c == '{' { '}' } else { ']' };
                if reader.need().await? != closes {
                    if c == '{' {
                        key(reader, &mut stack, watch).await?;
                    }
                    continue;
                }
            }
            '"' => {
                let name = string(reader, word, watch).await?;
                watch.named(word, name);
            }
            _ => scalar(reader).await?,
        }
        // A value is complete, or an array or object is at its end.
        loop {
            let Some(frame) = stack.last() else {
                return Ok(());
            };
            let is_object = frame.is_object;
            reader.blanks().await;
            match reader.need().await? {
                ',' => {
                    reader.bump(',');
                    if is_object {
                        reader.blanks().await;
                        key(reader, &mut stack, watch).await?;
                    }
                    break;
                }
                c @ ('}' | ']') if is_object == (c == '}') => {
                    reader.bump(c);
                    stack.pop();
                    watch.closed(&stack, reader)?;
                }
                _ => return Err(Stop::Syntax),
            }
        }
    }
}

async fn key(
    reader: &mut Reader,
    stack: &mut [Frame],
    watch: &mut Watch<'_, '_>,
) -> Result<(), Stop> {
    let Some(frame) = stack.last_mut() else {
        return Err(Stop::Syntax);
    };
    if reader.need().await? != '"' {
        return Err(Stop::Syntax);
    }
    let word = if frame.is_call { Word::Key } else { Word::Any };
    frame.key = string(reader, word, watch).await?;
    reader.blanks().await;
    reader.expect(':').await
}

/// Reads a string. Gives what is in it if it is a key or name that is compared, without escapes.
async fn string(reader: &mut Reader, word: Word, watch: &Watch<'_, '_>) -> Result<String, Stop> {
    reader.expect('"').await?;
    let mut content = String::new();
    // With an escape in it, it is compared when all is there.
    let mut is_plain = word != Word::Any;
    loop {
        if !is_plain {
            reader.skip(|c| c != '"' && c != '\\').await;
        }
        let c = reader.need().await?;
        match c {
            '"' => {
                if is_plain && !watch.may_be(word, &content, true) {
                    return Err(Stop::Foreign);
                }
                reader.bump(c);
                return Ok(content);
            }
            '\\' => {
                is_plain = false;
                reader.bump(c);
                let escaped = reader.need().await?;
                reader.bump(escaped);
            }
            _ => {
                if is_plain {
                    content.push(c);
                    if content.len() > MAX_WORD || !watch.may_be(word, &content, false) {
                        return Err(Stop::Foreign);
                    }
                }
                reader.bump(c);
            }
        }
    }
}

/// Reads a number, `true`, `false` or `null`. Whether a number is written well is not looked at.
async fn scalar(reader: &mut Reader) -> Result<(), Stop> {
    let first = reader.need().await?;
    let literal = match first {
        't' => "true",
        'f' => "false",
        'n' => "null",
        '-' | '0'..='9' => {
            reader
                .skip(|c| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                .await;
            return Ok(());
        }
        _ => return Err(Stop::Syntax),
    };
    reader.literal(literal).await
}

impl Watch<'_, '_> {
    /// A value begins. Says what it may be if it is a string.
    fn value(&mut self, stack: &[Frame], c: char, at: usize) -> Result<Word, Stop> {
        let Self::Calls(calls) = self else {
            return Ok(Word::Any);
        };
        let Some(frame) = stack.last() else {
            return Ok(Word::Any);
        };
        if !frame.is_object && stack.len() == 1 && !matches!(c, '{' | ']') {
            return Err(Stop::Foreign);
        }
        if !frame.is_call {
            return Ok(Word::Any);
        }
        let key = frame.key.as_str();
        if INPUT_KEYS.contains(&key) {
            if !calls.strictness.allows_input(c) {
                return Err(Stop::Foreign);
            }
            if let Some(open) = &mut calls.open {
                open.input = Some(at);
            }
        } else if NAME_KEYS.contains(&key) {
            return match c {
                '"' => Ok(Word::Name),
                '{' if key == WRAPPER_KEY => Ok(Word::Any),
                _ => Err(Stop::Foreign),
            };
        }
        Ok(Word::Any)
    }

    /// Whether the object that begins is a call.
    fn opens_call(&mut self, stack: &[Frame], at: usize) -> bool {
        let Self::Calls(calls) = self else {
            return false;
        };
        let is_element = match stack {
            [] => true,
            [list] => !list.is_object,
            _ => false,
        };
        if is_element {
            calls.open = Some(OpenCall {
                start: at,
                depth: stack.len(),
                name: None,
                input: None,
            });
            return true;
        }
        stack
            .last()
            .is_some_and(|frame| frame.is_call && frame.key == WRAPPER_KEY)
    }

    fn may_be(&self, word: Word, content: &str, whole: bool) -> bool {
        let Self::Calls(calls) = self else {
            return true;
        };
        match (word, whole) {
            (Word::Any, _) => true,
            (Word::Key, false) => calls.strictness.allows_beginning(content),
            (Word::Key, true) => calls.strictness.allows_key(content),
            (Word::Name, false) => calls.known.may_become(content),
            (Word::Name, true) => calls.known.has(content),
        }
    }

    fn named(&mut self, word: Word, name: String) {
        if let Self::Calls(calls) = self
            && word == Word::Name
            && let Some(open) = &mut calls.open
            && calls.known.has(&name)
        {
            open.name = Some(name);
        }
    }

    /// An array or object is complete, and `stack` is what is around it.
    fn closed(&mut self, stack: &[Frame], reader: &Reader) -> Result<(), Stop> {
        let Self::Calls(calls) = self else {
            return Ok(());
        };
        let Some(open) = calls.open.take_if(|open| open.depth == stack.len()) else {
            return Ok(());
        };
        let json = reader.since(open.start);
        let call = call_of_json(&json, calls.known, calls.strictness);
        match call {
            Ok(call) => calls.found.push(call),
            Err(stop) => {
                // It may have a name and yet be no JSON.
                calls.open = Some(open);
                return Err(stop);
            }
        }
        Ok(())
    }
}

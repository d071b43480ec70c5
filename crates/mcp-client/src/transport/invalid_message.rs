//! Server messages that cannot be parsed: repairs lone surrogates, and finds the request of an
//! invalid answer, so that its call fails immediately and does not wait for its time-out.

use std::fmt;

use memchr::memmem;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::{
    Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::json;

use crate::common::error::shortened;

/// The field of an error's `data` for the reason why an answer is invalid.
const INVALID_ANSWER: &str = "switchboard/invalid-answer";

/// The usable part of an unparsable text.
pub(crate) enum Recovered {
    /// The repaired message, or an error for the request that it answers, if its id was found.
    Message(Box<ServerJsonRpcMessage>),
    /// The id of an invalid request.
    Request(RequestId),
    /// Neither a request nor an answer.
    Nothing,
}

/// Recovers the usable part of a text. `error` is the parse error.
pub(crate) fn recover(text: &[u8], error: &serde_json::Error) -> Recovered {
    if let Some(repaired) = replace_lone_surrogates(text) {
        match serde_json::from_slice(&repaired) {
            Ok(message) => return Recovered::Message(Box::new(message)),
            Err(other) => return recover_id(text, &other),
        }
    }
    recover_id(text, error)
}

/// Finds the request that an invalid answer belongs to, or the id of an invalid request.
fn recover_id(text: &[u8], error: &serde_json::Error) -> Recovered {
    let fields = TopLevel::scan(text);
    // Programs also log JSON that has an id. Only JSON-RPC messages are answers.
    let is_answer = fields.has_outcome && !fields.has_method;
    match fields.id {
        Some(id) if is_answer && fields.has_version => invalid(error, Some(id)),
        // The id may be behind the error.
        None if is_answer && fields.is_cut && memmem::find(text, br#""jsonrpc""#).is_some() => {
            invalid(error, None)
        }
        Some(id) if fields.has_method && (fields.has_version || error.is_data()) => {
            Recovered::Request(id)
        }
        _ => Recovered::Nothing,
    }
}

/// Returns the error for an invalid answer.
fn invalid(error: &serde_json::Error, id: Option<RequestId>) -> Recovered {
    let expected = if error.is_data() {
        "a valid JSON-RPC message"
    } else {
        "valid JSON"
    };
    // The parse error may repeat text of the server.
    let reason = format!("is not {expected}: {}", shortened(&error.to_string()));
    let error = invalid_answer(&reason);
    Recovered::Message(Box::new(ServerJsonRpcMessage::error(error, id)))
}

/// Returns the error that replaces an invalid answer. `reason` is a clause such as
/// `is not valid JSON: …`.
pub(crate) fn invalid_answer(reason: &str) -> ErrorData {
    let message = format!("its answer {reason}");
    let data = json!({ INVALID_ANSWER: reason });
    ErrorData::new(ErrorCode::PARSE_ERROR, message, Some(data))
}

/// Returns the reason why an answer is invalid. Returns `None` for an error of the server.
pub(crate) fn invalid_answer_reason(error: &ErrorData) -> Option<&str> {
    error.data.as_ref()?.get(INVALID_ANSWER)?.as_str()
}

/// Replaces every lone surrogate escape by U+FFFD. Returns `None` if there are none.
fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let mut repaired: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        at += match surrogate(text, at) {
            // A backslash and the escaped character.
            None => 2,
            Some(Surrogate::High)
                if matches!(surrogate(text, at + ESCAPE), Some(Surrogate::Low)) =>
            {
                2 * ESCAPE
            }
            Some(_) => {
                let repaired = repaired.get_or_insert_with(|| text.to_vec());
                repaired[at..at + ESCAPE].copy_from_slice(br"\ufffd");
                ESCAPE
            }
        };
    }
    repaired
}

/// The length of an escape such as `\ud800`.
const ESCAPE: usize = 6;

enum Surrogate {
    High,
    Low,
}

/// Returns the surrogate that is escaped at this index.
fn surrogate(text: &[u8], at: usize) -> Option<Surrogate> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix(br"\u")?;
    let [b'd' | b'D', second, rest @ ..] = digits else {
        return None;
    };
    if !rest.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    match second {
        b'8' | b'9' | b'a' | b'A' | b'b' | b'B' => Some(Surrogate::High),
        b'c'..=b'f' | b'C'..=b'F' => Some(Surrogate::Low),
        _ => None,
    }
}

/// Fields of the top-level object of a text, which may be invalid JSON.
#[derive(Default)]
struct TopLevel {
    id: Option<RequestId>,
    has_version: bool,
    has_method: bool,
    has_outcome: bool,
    /// Whether a syntax error ended the text.
    is_cut: bool,
}

impl TopLevel {
    /// Reads the fields before the first syntax error. Values other than the id are skipped without
    /// recursion and may be out of range.
    fn scan(text: &[u8]) -> Self {
        let mut fields = Self::default();
        let mut text = serde_json::Deserializer::from_slice(text);
        let end = text.deserialize_map(&mut fields);
        fields.is_cut = end.is_err();
        fields
    }
}

impl<'de> Visitor<'de> for &mut TopLevel {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<String>()? {
            match key.as_str() {
                "id" => {
                    self.id = Some(fields.next_value()?);
                    continue;
                }
                "jsonrpc" => self.has_version = true,
                "method" => self.has_method = true,
                "result" | "error" => self.has_outcome = true,
                _ => {}
            }
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "invalid_message_tests.rs"]
mod tests;

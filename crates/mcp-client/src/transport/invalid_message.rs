//! Server messages that cannot be parsed. This module repairs lone surrogates, and finds the
//! request of an invalid answer, so that its call fails immediately instead of at its time-out.

use std::{fmt, sync::LazyLock};

use regex::bytes::{Captures, Regex};
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::{
    Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::json;

use crate::primitives::error::shorten;

/// Key in the `data` of an error for the reason why a server's answer is invalid.
const INVALID_ANSWER: &str = "switchboard/invalid-answer";

/// Usable part of a server message that could not be parsed.
pub(crate) enum RecoveredMessage {
    /// The repaired message, or an error that replaces an invalid answer. The error has the id of
    /// the answered request, if known.
    Message(Box<ServerJsonRpcMessage>),
    /// Id of an invalid request from the server, which needs an error as its answer.
    Request(RequestId),
    /// The text is not a JSON-RPC request or answer, so it is ignored.
    Nothing,
}

/// Recovers the usable part of a server message. `error` is the parse error of `text`.
pub(crate) fn recover_message(text: &[u8], error: &serde_json::Error) -> RecoveredMessage {
    if let Some(repaired) = replace_lone_surrogates(text) {
        match serde_json::from_slice(&repaired) {
            Ok(message) => return RecoveredMessage::Message(Box::new(message)),
            Err(other) => return recover_request_id(text, &other),
        }
    }
    recover_request_id(text, error)
}

/// Finds the id of the request that an invalid answer belongs to, or the id of an invalid request.
fn recover_request_id(text: &[u8], error: &serde_json::Error) -> RecoveredMessage {
    let fields = TopLevelFields::scan_fields(text);
    // A JSON object with an id is not always an answer, because some programs print log objects
    // with an id. An answer has a `result` or an `error`, and no `method`.
    let is_answer = fields.has_outcome && !fields.has_method;
    match fields.id {
        Some(id) if is_answer && fields.has_version => to_error_message(error, Some(id)),
        // The id of the answer is unknown, because it may come after the syntax error. The error
        // message then has no id either.
        None if is_answer && fields.is_cut && text.windows(9).any(|it| it == br#""jsonrpc""#) => {
            to_error_message(error, None)
        }
        Some(id) if fields.has_method && (fields.has_version || error.is_data()) => {
            RecoveredMessage::Request(id)
        }
        _ => RecoveredMessage::Nothing,
    }
}

/// Creates the error that replaces an invalid answer to the request with this id.
fn to_error_message(error: &serde_json::Error, id: Option<RequestId>) -> RecoveredMessage {
    let expected = if error.is_data() {
        "a valid JSON-RPC message"
    } else {
        "valid JSON"
    };
    // The parse error may contain text of the server, so its text is shortened.
    let reason = format!("is not {expected}: {}", shorten(&error.to_string()));
    let error = invalid_answer_error(&reason);
    RecoveredMessage::Message(Box::new(ServerJsonRpcMessage::error(error, id)))
}

/// Creates the error that replaces an invalid answer of a server. `reason` is a clause such as `is
/// not valid JSON: …`.
pub(crate) fn invalid_answer_error(reason: &str) -> ErrorData {
    let message = format!("the answer {reason}");
    let data = json!({ INVALID_ANSWER: reason });
    ErrorData::new(ErrorCode::PARSE_ERROR, message, Some(data))
}

/// Returns the reason why an answer is invalid. Returns `None` for an error that the server sent.
pub(crate) fn invalid_answer_reason(error: &ErrorData) -> Option<&str> {
    error.data.as_ref()?.get(INVALID_ANSWER)?.as_str()
}

/// Replaces every lone surrogate escape in JSON text by U+FFFD. Returns `None` if there is none.
fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    /// Matches a surrogate pair, a lone surrogate (captured group), or the start of another escape.
    static ESCAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let high = "u(?i:d[89ab][0-9a-f]{2})";
        let low = "u(?i:d[c-f][0-9a-f]{2})";
        Regex::new(&format!(r"(?s-u)\\(?:{high}\\{low}|({high}|{low})|.)")).ok()
    });
    let mut is_repaired = false;
    let repaired = ESCAPE.as_ref()?.replace_all(text, |escape: &Captures<'_>| {
        let is_lone = escape.get(1).is_some();
        is_repaired |= is_lone;
        if is_lone {
            br"\ufffd".to_vec()
        } else {
            escape[0].to_vec()
        }
    });
    let repaired = repaired.into_owned();
    is_repaired.then_some(repaired)
}

/// Fields of the top-level JSON object in a server message that may be invalid JSON.
#[derive(Default)]
struct TopLevelFields {
    id: Option<RequestId>,
    has_version: bool,
    has_method: bool,
    has_outcome: bool,
    /// Whether a syntax error ended the scan, so that further fields may be missing.
    is_cut: bool,
}

impl TopLevelFields {
    /// Scans the fields before the first syntax error. Skips all values except the id, so that deep
    /// nesting and numbers out of range are not errors.
    fn scan_fields(text: &[u8]) -> Self {
        let mut fields = Self::default();
        let mut text = serde_json::Deserializer::from_slice(text);
        let end = text.deserialize_map(&mut fields);
        fields.is_cut = end.is_err();
        fields
    }
}

impl<'de> Visitor<'de> for &mut TopLevelFields {
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

//! The events that nearly all of a long answer is made of, read without copying anything.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};

/// More of a block: one piece of text.
///
/// Reading it fails for every other event, and for one in which anything is odd: that is an
/// [`Envelope`](super::Envelope), which forgives.
#[derive(Debug, Clone)]
pub(crate) struct PlainDelta<'a> {
    /// Of which block.
    pub(crate) index: u64,
    /// What it is.
    pub(crate) piece: Piece,
    /// The text.
    pub(crate) text: Cow<'a, str>,
}

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text.
    Text,
    /// Thinking.
    Thought,
    /// JSON of a call's input.
    Input,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(default, rename = "error")]
    _error: (),
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    text: Cow<'a, str>,
    #[serde(default, borrow)]
    thinking: Cow<'a, str>,
    #[serde(default, borrow)]
    partial_json: Cow<'a, str>,
    /// With it serde reads no list as the fields in order.
    #[serde(flatten)]
    _others: IgnoredAny,
}

impl<'a> PlainDelta<'a> {
    /// The delta, if `data` is one.
    pub(crate) fn read(data: &'a str) -> Option<Self> {
        // serde would read a list as the fields in order.
        if !data.starts_with('{') {
            return None;
        }
        let event: Event<'a> = serde_json::from_str(data).ok()?;
        if event.kind != "content_block_delta" {
            return None;
        }
        let delta = event.delta;
        let (piece, text) = match delta.kind.as_ref() {
            "text_delta" => (Piece::Text, delta.text),
            "thinking_delta" => (Piece::Thought, delta.thinking),
            "input_json_delta" => (Piece::Input, delta.partial_json),
            _ => return None,
        };
        let index = event.index;
        Some(Self { index, piece, text })
    }
}

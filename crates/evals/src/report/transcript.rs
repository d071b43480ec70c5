//! The whole course of a turn, to be read by people: what the model said and thought, each call with its input
//! and result, approvals, retries and warnings, in their order.
//!
//! It is bounded: a text is cut at 64 KiB, an input or a result at 16 KiB, all texts of a turn together at 256 KiB,
//! and there are no more than 2,000 entries; what was left out is counted where it is missing. Images, audio and
//! other bytes are named by kind and size. What a tool tells of its progress is not in it.

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::is_zero;

/// The course of a turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// What happened, in its order. A call stands where the model asked for it, with all that became of it.
    pub entries: Vec<Entry>,
    /// Entries beyond the bound, which are not here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl Transcript {
    /// Whether nothing is known of the turn.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.left_out == 0
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Milliseconds since the question; of a text, those of its beginning.
    pub at_ms: u64,
    /// What it was.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A model was asked.
    Asked {
        /// 1 for the first call of the run.
        step: u32,
        /// The model.
        model: ModelId,
        /// How many tools it was offered.
        tools: usize,
    },
    /// The model thought this.
    Reasoning(Excerpt),
    /// The model said this.
    Text(Excerpt),
    /// The provider did this on its own side.
    Provider {
        /// Its own word for it, such as `web_search_tool_result`.
        kind: String,
        /// What can be read of it.
        #[serde(flatten)]
        text: Excerpt,
    },
    /// The model has answered.
    Answered {
        /// Which call.
        step: u32,
        /// The model, in the provider's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why it stopped.
        reason: String,
        /// What it told of its tokens.
        #[serde(default, skip_serializing_if = "is_zero")]
        usage: Usage,
    },
    /// The model asked for a tool.
    Call(Box<Call>),
    /// Anything else: warnings, retries, another model, what a server wanted to know.
    Note {
        /// What sort of thing: the name of the run's event, such as `warning` or `model_call_failed`.
        about: String,
        /// What it was, in words.
        #[serde(flatten)]
        text: Excerpt,
    },
    /// What a newer program knows of.
    #[serde(other)]
    Unknown,
}

/// A text, or the beginning of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Excerpt {
    /// The text.
    pub text: String,
    /// Bytes that came after it and are not here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool use.
    pub id: String,
    /// The server; `None` for a tool of the program itself, or one that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// Which of the turn's judged calls it is, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<usize>,
    /// What the model wrote, as JSON.
    pub input: Excerpt,
    /// What was said and decided about it before it ended: repairs, approvals, retries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<CallNote>,
    /// How it ended; `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

/// Something that happened to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNote {
    /// Milliseconds since the question.
    pub at_ms: u64,
    /// What sort of thing: the name of the run's event, such as `tool_approved`.
    pub about: String,
    /// What it was, in words.
    #[serde(flatten)]
    pub text: Excerpt,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Milliseconds since the question.
    pub at_ms: u64,
    /// It did not run, or the tool says that it failed.
    pub is_error: bool,
    /// Why there is no proper result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The result came from the cache.
    pub cached: bool,
    /// How often it was tried; 0 if it did not run.
    pub attempts: u32,
    /// How long it took, in milliseconds, all attempts together.
    pub duration_ms: u64,
    /// What the model read.
    pub content: Vec<Piece>,
    /// Pieces beyond the bound, which are not here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// A piece of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Piece {
    /// Text.
    Text(Excerpt),
    /// What is no text, by what it is.
    Bytes {
        /// `image`, `audio` or `resource`.
        kind: String,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Its address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<Excerpt>,
        /// Its size in bytes, if it was given whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// What a newer program knows of.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;

//! The events of a turn, for people.
//!
//! A transcript is limited: 64 KiB per text, 16 KiB per input or result, 256 KiB of text per turn
//! and 2,000 entries. The numbers of omitted bytes and entries are stored. Media are described, not
//! included. Progress of tools is omitted.

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::is_zero;

/// The recorded events of one turn, for display in a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// The events in order. A tool call is listed where the model requested it.
    pub entries: Vec<Entry>,
    /// Number of events that were omitted because the transcript became too large.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

impl Transcript {
    /// Returns whether the transcript has no events.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.omitted == 0
    }
}

/// An event of a turn with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Start time of the event in milliseconds since the user message.
    pub at_ms: u64,
    /// The kind and the data of the event.
    #[serde(flatten)]
    pub event: Event,
}

/// An event of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A request was sent to a model.
    ModelRequest {
        /// Number of the model call in the turn, starting at 1.
        step: u32,
        /// The model that received the request.
        model: ModelId,
        /// Number of tools offered to the model.
        tools: usize,
    },
    /// Reasoning text that the model emitted.
    Reasoning(Excerpt),
    /// Answer text that the model emitted.
    Text(Excerpt),
    /// An action that the provider ran itself, such as a web search.
    Provider {
        /// The provider's name for the kind of action, such as `web_search_tool_result`.
        kind: String,
        /// The readable part of the action's content.
        #[serde(flatten)]
        text: Excerpt,
    },
    /// A model response ended.
    ModelResponse {
        /// Number of the model call in the turn, starting at 1.
        step: u32,
        /// The model name that the provider reported in the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The finish reason of the response, such as `stop`.
        reason: String,
        /// Number of tokens that the provider reported for the response.
        #[serde(default, skip_serializing_if = "is_zero")]
        usage: Usage,
    },
    /// A tool call with its input and result.
    Call(Box<Call>),
    /// Any other event, such as a warning, a retry or an elicitation.
    Note {
        /// The kind of the run event, such as `warning`.
        kind: String,
        /// The fields of the run event as JSON.
        #[serde(flatten)]
        text: Excerpt,
    },
    /// An unknown event that a newer program wrote.
    #[serde(other)]
    Unknown,
}

/// An excerpt: the beginning of a longer text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "StoredExcerpt")]
pub struct Excerpt {
    /// The beginning of the text.
    pub text: String,
    /// Number of bytes omitted after the excerpt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// An excerpt in the form in which reports store it. Older reports contain media without text.
#[derive(Deserialize)]
struct StoredExcerpt {
    text: Option<String>,
    #[serde(default)]
    omitted: u64,
    kind: Option<String>,
    media_type: Option<String>,
    bytes: Option<u64>,
}

impl From<StoredExcerpt> for Excerpt {
    fn from(stored: StoredExcerpt) -> Self {
        let media = || {
            let kind = stored.kind?;
            let media_type = stored.media_type.map(|it| format!(" {it}"));
            let bytes = stored.bytes.map(|it| format!(", {it} bytes"));
            let (media_type, bytes) = (media_type.unwrap_or_default(), bytes.unwrap_or_default());
            Some(format!("[{kind}{media_type}{bytes}]"))
        };
        Self {
            text: stored.text.or_else(media).unwrap_or_default(),
            omitted: stored.omitted,
        }
    }
}

/// A tool call with its input, its notes and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Id of the tool use in the model's response.
    pub id: String,
    /// Name of the server that provides the tool. `None` for built-in and unknown tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the tool on its server.
    pub tool: String,
    /// Index of this call among the scored calls of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scored_call: Option<usize>,
    /// Excerpt of the call's input as JSON.
    pub input: Excerpt,
    /// Events before the result, such as repairs, approvals and retries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<CallNote>,
    /// The result of the call. `None` if the call did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

/// An event during a tool call, such as an approval or a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNote {
    /// Time of the event in milliseconds since the user message.
    pub at_ms: u64,
    /// The kind of the run event, such as `tool_approved`.
    pub kind: String,
    /// The fields of the run event as JSON.
    #[serde(flatten)]
    pub text: Excerpt,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Time of the result in milliseconds since the user message.
    pub at_ms: u64,
    /// Whether the call was not executed or the tool reported an error.
    pub is_error: bool,
    /// The reason why the call has no result, if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Number of attempts to execute the call. 0 if it was not executed.
    pub attempts: u32,
    /// Duration of all attempts in milliseconds.
    pub duration_ms: u64,
    /// The content that the model received, as text. Media are described in words.
    pub content: Vec<Excerpt>,
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;

//! The events of a turn, for people.
//!
//! A transcript is limited: 64 KiB per text, 16 KiB per input or result, 256 KiB of text per turn
//! and 2,000 entries. The numbers of omitted bytes and entries are stored. Media are described, not
//! included. Progress of tools is omitted.

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::is_zero;

/// The events of a turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// The events in order. A tool call is at the position of the model's request.
    pub entries: Vec<Entry>,
    /// Number of omitted entries.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

impl Transcript {
    /// Returns whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.omitted == 0
    }
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Start of the event in milliseconds since the user message.
    pub at_ms: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// An event of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A request to a model.
    ModelRequest {
        /// Number of the model call, from 1.
        step: u32,
        /// The model.
        model: ModelId,
        /// Number of offered tools.
        tools: usize,
    },
    /// Reasoning of the model.
    Reasoning(Excerpt),
    /// Text of the model.
    Text(Excerpt),
    /// An action of the provider, such as a web search.
    Provider {
        /// The provider's type, such as `web_search_tool_result`.
        kind: String,
        /// The readable content.
        #[serde(flatten)]
        text: Excerpt,
    },
    /// The end of a response.
    ModelResponse {
        /// Number of the model call.
        step: u32,
        /// The model's name in the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The finish reason.
        reason: String,
        /// The reported tokens.
        #[serde(default, skip_serializing_if = "is_zero")]
        usage: Usage,
    },
    /// A tool call.
    Call(Box<Call>),
    /// Any other event, such as a warning, a retry or an elicitation.
    Note {
        /// The name of the run event, such as `warning`.
        kind: String,
        /// The fields of the run event.
        #[serde(flatten)]
        text: Excerpt,
    },
    /// An event of a newer program.
    #[serde(other)]
    Unknown,
}

/// The beginning of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "StoredExcerpt")]
pub struct Excerpt {
    /// The text.
    pub text: String,
    /// Number of omitted bytes after it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// An excerpt as reports store it. Earlier reports have media without text.
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

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The id of the tool use.
    pub id: String,
    /// The server. `None` for built-in and unknown tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// Index of the scored call of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scored_call: Option<usize>,
    /// The input as JSON.
    pub input: Excerpt,
    /// Repairs, approvals and retries before the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<CallNote>,
    /// The result. `None` if the call did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

/// An event of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNote {
    /// Milliseconds since the user message.
    pub at_ms: u64,
    /// The name of the run event, such as `tool_approved`.
    pub kind: String,
    /// The fields of the run event.
    #[serde(flatten)]
    pub text: Excerpt,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Milliseconds since the user message.
    pub at_ms: u64,
    /// The call was not executed, or the tool reported a failure.
    pub is_error: bool,
    /// The reason of a missing result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether the result is from the cache.
    pub cached: bool,
    /// Number of attempts. 0 if the call was not executed.
    pub attempts: u32,
    /// Duration of all attempts in milliseconds.
    pub duration_ms: u64,
    /// The content for the model as text. Media are described.
    pub content: Vec<Excerpt>,
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;

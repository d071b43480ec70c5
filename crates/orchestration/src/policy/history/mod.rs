//! Size limit of the conversation in a model request.
//!
//! [`HistoryTrimmer`] selects the messages of a request by index. It omits whole turns: a message
//! of the person, all responses to it, and all calls with their results. No call loses its result,
//! and no signed reasoning loses the start of its turn, which providers reject. These messages are
//! always sent:
//!
//! - system messages,
//! - the first message of the person,
//! - the current turn, which starts at the last message of the person,
//! - [pinned](HistoryTrimmer::pin_message) messages.
//!
//! If the current turn alone is too long, its oldest tool results are shortened, with a marker for
//! the model. If the request is still too long, [`HistoryTrimResult::is_over`] is set and the
//! caller decides.
//!
//! A trim reduces the request to a low-water mark below the limit. The first messages then stay
//! equal for many steps, so that the prompt cache of the provider is effective.
//!
//! Provider-specific data of messages, such as reasoning signatures, is kept. The adapter of
//! another provider omits it from its requests.
//!
//! ```
//! use std::sync::Arc;
//! use switchboard_domain::Message;
//! use switchboard_orchestration::policy::history::{HistoryPolicy, HistoryTrimmer};
//!
//! let policy = HistoryPolicy { max_tokens: Some(100), ..HistoryPolicy::default() };
//! let long = "word ".repeat(100);
//! let messages = [
//!     Message::user("Explain this text."),
//!     Message::assistant(long),
//!     Message::user("And in short?"),
//! ]
//! .map(Arc::new);
//!
//! let mut history = HistoryTrimmer::default();
//! let fit = history.trim_to_token_limit(&policy, &messages, 0);
//! assert_eq!(fit.trimmed.map(|trimmed| trimmed.messages), Some(1));
//! let sent = history.messages_to_send(&messages);
//! assert_eq!(sent.len(), 2);
//! assert!(Arc::ptr_eq(&sent[1], &messages[2]));
//! ```

mod shorten;
mod summary;
mod trimmer;

use serde::{Deserialize, Serialize};

pub use summary::summary_request;
pub use trimmer::HistoryTrimmer;

/// Settings for the size limit of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryPolicy {
    /// Maximum number of [estimated](crate::tools::tokens) tokens of a request, including tools.
    /// `None` sets no maximum here; a run then uses 80 percent of the model's context window, if
    /// its size is known.
    ///
    /// Set the maximum below the context window of the model, so that the answer fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Target size of a request after a trim, in percent of `max_tokens`. Values above 100 count as
    /// 100.
    pub low_water_percent: u8,
    /// Number of tokens that are kept of a shortened tool result. If the request is still too long,
    /// the whole content of the result is removed.
    pub shortened_tokens: u64,
    /// Whether the model summarises the messages that a trim omits. Each trim then costs a model
    /// call.
    pub summarise: bool,
}

impl Default for HistoryPolicy {
    fn default() -> Self {
        Self {
            max_tokens: None,
            low_water_percent: 60,
            shortened_tokens: 200,
            summarise: false,
        }
    }
}

/// Result of fitting a conversation to the maximum size of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryTrimResult {
    /// Estimated number of tokens of the request, after a trim if there was one.
    pub tokens: u64,
    /// Effect of the trim. `None` if the request was not trimmed.
    pub trimmed: Option<TrimEffect>,
    /// Whether the request still exceeds the maximum after the trim.
    pub is_over: bool,
}

/// Effect of trimming a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimEffect {
    /// Number of messages that the trim omitted. 0 if it only shortened tool results.
    pub messages: usize,
    /// Estimated number of tokens of the request before the trim.
    pub tokens_before: u64,
    /// Estimated number of tokens of the request after the trim.
    pub tokens_after: u64,
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;

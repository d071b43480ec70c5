//! How much of a conversation goes to the model.
//!
//! [`History`] says which messages of a growing conversation are left out of a request, by their indices:
//! nothing is copied, and a step costs what its new messages cost. What is left out goes in whole turns (a
//! person's message, everything the model answered to it, and all calls with their results), so that no
//! call is parted from its result, and no thought from what it led to: providers refuse a turn that lost
//! the beginning of its signed thinking. Never left out are
//!
//! - system messages,
//! - the first message of the person,
//! - the current turn: everything from the last message of the person on,
//! - what is [pinned](History::pin).
//!
//! When the current turn alone is too long, its oldest tool results are shortened, with a marker that the
//! model sees. When that is not enough either, [`Fit::over`] says so, and the request goes out too long or
//! not at all: that is the caller's to decide.
//!
//! A trim goes down to a low-water mark, not just below the limit. So the messages before the new ones stay
//! the same for many steps, and the provider's prompt cache holds.
//!
//! What a provider attached for itself stays on the messages as it is; after a switch of the model its
//! adapter leaves it out, trimmed or not.
//!
//! ```
//! use std::sync::Arc;
//! use switchboard_domain::Message;
//! use switchboard_orchestration::history::{History, HistoryPolicy};
//!
//! let policy = HistoryPolicy { max_tokens: Some(100), ..HistoryPolicy::default() };
//! let long = "word ".repeat(100);
//! let messages = [
//!     Message::user("What is this about?"),
//!     Message::assistant(long),
//!     Message::user("And in short?"),
//! ]
//! .map(Arc::new);
//!
//! let mut history = History::default();
//! let fit = history.fit(&policy, &messages, 0);
//! assert_eq!(fit.trimmed.map(|trimmed| trimmed.messages), Some(1));
//! let sent = history.messages(&messages);
//! assert_eq!(sent.len(), 2);
//! assert!(Arc::ptr_eq(&sent[1], &messages[2]));
//! ```

mod shorten;
mod state;
mod summary;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use state::History;
pub use summary::summary_request;

/// How long a conversation may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryPolicy {
    /// The tokens of a request at most, tools included, by [estimate](crate::tools::tokens). `None` never trims.
    /// Leave room for the answer below the model's context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Down to how many percent of that a trim goes, if it can. More than 100 is 100.
    pub low_water_percent: u8,
    /// What a shortened tool result keeps, in tokens; nothing if that is still too much.
    pub shortened_tokens: u64,
    /// The model is asked for a summary of what is left out. This costs a call of the model for each
    /// trim.
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

/// How a conversation fits the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// Tokens of the request, estimated.
    pub tokens: u64,
    /// What was just left out or shortened; `None` if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<Trimmed>,
    /// It is too long although all is left out that may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverBudget>,
}

/// What a trim did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trimmed {
    /// Messages that are left out now and were not before.
    pub messages: usize,
    /// Messages of tool results that were shortened; twice if one was shortened further at once.
    pub shortened: usize,
    /// Tokens of the request before.
    pub tokens_before: u64,
    /// Tokens of the request now.
    pub tokens_after: u64,
}

/// Why a conversation is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverBudget {
    /// Tokens of the request.
    pub tokens: u64,
    /// Tokens that it may have.
    pub max_tokens: u64,
    /// Of them, tools and what else is not a message.
    pub overhead_tokens: u64,
    /// Of them, the current turn.
    pub current_turn_tokens: u64,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tokens,
            max_tokens,
            overhead_tokens,
            current_turn_tokens,
        } = self;
        let kept = tokens.saturating_sub(overhead_tokens.saturating_add(*current_turn_tokens));
        write!(
            f,
            "the conversation has about {tokens} tokens and may have {max_tokens}: {overhead_tokens} are \
             the tools, {current_turn_tokens} the current turn and {kept} what is always kept before it"
        )
    }
}

impl std::error::Error for OverBudget {}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;

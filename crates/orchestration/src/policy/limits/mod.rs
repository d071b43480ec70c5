//! What ends a run early, and the counting for it.
//!
//! [`Limits`] is what is configured, [`Ledger`] what has been used, [`LimitHit`] which limit is reached.
//! Before each call of the model [`Ledger::check_before_model_call`] says whether the run may go on;
//! before each tool call [`Ledger::admit_call`] says whether it may run. What a call of the model costs is
//! known only afterwards: a limit of tokens or money is overrun by one answer at most, and by less where
//! [`Ledger::output_left`] caps it.

mod hit;
mod ledger;
mod pricing;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_domain::DEFAULT_MAX_ANSWER_BYTES;

pub use hit::LimitHit;
pub use ledger::{Ledger, TokenEstimate};
pub use pricing::{Cost, Pricing};

/// What ends a run early, keeping what there is. `None` is no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Calls of the model, checked before each.
    pub max_steps: u32,
    /// Tool calls in the whole run. Those beyond it are not executed, and the model is not asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Tool calls in one answer; 128 unless something else is said. Those beyond it are not executed; the
    /// run goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls_per_response: Option<u32>,
    /// Tool calls within any sixty seconds. Those beyond it are not executed; the run goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls_per_minute: Option<u32>,
    /// Tokens of all prompts together; what is sent again counts again, as it is paid again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Tokens written, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// Bytes of one answer, counted while it streams: text, reasoning, tool inputs and provider data.
    /// Each event of the stream counts with at least 32 bytes. 16 MiB unless something else is
    /// configured. The stream of a longer answer is dropped, and what arrived of it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_answer_bytes: Option<u64>,
    /// What the calls of models may cost, in US dollars. A model without a known price is not asked
    /// under such a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// How long it may take, without the time that it waits for a person or lies stored; in seconds where
    /// it is stored.
    #[serde(
        with = "crate::policy::seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_wall_time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_steps: 16,
            max_tool_calls: None,
            max_calls_per_response: Some(128),
            max_calls_per_minute: None,
            max_input_tokens: None,
            max_output_tokens: None,
            max_total_tokens: None,
            max_answer_bytes: Some(DEFAULT_MAX_ANSWER_BYTES),
            max_cost_usd: None,
            max_wall_time: None,
        }
    }
}

impl Limits {
    /// At most this many calls of the model, and no other limit.
    pub fn steps(max_steps: u32) -> Self {
        Self {
            max_steps,
            ..Self::default()
        }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;

//! Limits of a run, and the ledger of what the run has consumed.
//!
//! [`Limits`] is the configuration and [`UsageLedger`] the consumption. A reached limit is a
//! [`RunError`](crate::RunError).
//! [`UsageLedger::check_model_call_limits`] decides before each model call, and
//! [`UsageLedger::count_tool_call`] before each tool call. The tokens of a model call are known
//! only afterwards, so a run can exceed a limit of tokens or cost by one answer.
//! [`UsageLedger::remaining_output_tokens`] reduces that excess.

mod errors;
mod pricing;
mod usage_ledger;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_domain::DEFAULT_MAX_ANSWER_BYTES;

pub(crate) use errors::{answer_size_limit_error, time_limit_error};
pub use pricing::{AnswerCost, Pricing};
pub use usage_ledger::UsageLedger;

/// Limits of a run. `None` is unlimited.
///
/// Most reached limits end the run with its partial result. The fields describe the exceptions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of model calls in the run. The run ends before a further call.
    pub max_steps: u32,
    /// Maximum number of tool calls in the run. Further calls are not executed, and the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Maximum number of tool calls in one model answer, 128 by default. Further calls are not
    /// executed, and the run continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls_per_response: Option<u32>,
    /// Maximum number of tool calls within 60 seconds. Further calls are not executed, and the run
    /// continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls_per_minute: Option<u32>,
    /// Maximum number of input tokens of all model calls. Input that is sent again counts again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Maximum number of output tokens of all model calls, including reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Maximum number of input and output tokens of all model calls together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// Maximum size of one model answer in bytes, 16 MiB by default. It includes text, reasoning,
    /// tool inputs and provider data; each stream event counts at least 32 bytes. If a streamed
    /// answer is longer, the run ends, and its report contains the received part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_answer_bytes: Option<u64>,
    /// Maximum cost of the model calls in US dollars. With this limit, a model without a known
    /// price is not called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Maximum duration of the run. The time during which the run waits for the decision of a
    /// person, or no process executes the run, does not count. Serialized in seconds.
    #[serde(
        with = "crate::policy::duration_serde",
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
    /// Returns the default limits, except for this maximum number of model calls.
    pub fn with_max_steps(max_steps: u32) -> Self {
        Self {
            max_steps,
            ..Self::default()
        }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;

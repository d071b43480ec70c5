//! Limits of a run, and the ledger of what the run has consumed.
//!
//! [`Limits`] is the configuration and [`UsageLedger`] the consumption. A reached limit is a
//! [`RunError`](crate::RunError).
//! [`UsageLedger::check_model_call_limits`] decides before each model call, and
//! [`UsageLedger::count_tool_call`] before each tool call. The tokens of a model call are known
//! only afterwards, so a run can exceed a limit of tokens or cost by one answer.
//! [`UsageLedger::remaining_output_tokens`] reduces that excess.

mod call_rates;
mod errors;
mod pricing;
mod usage_ledger;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use switchboard_domain::{CallRateLimits, DEFAULT_MAX_ANSWER_BYTES};

pub use call_rates::{InMemoryCallRates, SharedCallRates};
pub(crate) use errors::{answer_size_limit_error, time_limit_error, tool_call_limit_error};
pub use pricing::{AnswerCost, Pricing};
pub use usage_ledger::UsageLedger;

use crate::tools::name_pattern::NamePattern;

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
    /// Maximum number of tool calls within 60 seconds, in all runs of the principal together (see
    /// [`SharedCallRates`]). Further calls are not executed, and the run continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls_per_minute: Option<u32>,
    /// Limits of single tools, by a pattern of their names. Further calls of the tool are not
    /// executed, and the run continues.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<NamePattern, ToolLimits>,
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
            tools: BTreeMap::new(),
            max_input_tokens: None,
            max_output_tokens: None,
            max_total_tokens: None,
            max_answer_bytes: Some(DEFAULT_MAX_ANSWER_BYTES),
            max_cost_usd: None,
            max_wall_time: None,
        }
    }
}

/// Limits of one tool. `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolLimits {
    /// Maximum number of calls of the tool in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// Maximum number of calls of the tool within 60 seconds, in all runs of the principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls_per_minute: Option<u32>,
}

impl Limits {
    /// Returns the limits of a tool. If several patterns match its name, the lowest limits apply.
    pub fn limits_of_tool(&self, name: &str) -> ToolLimits {
        let lower = |a: Option<u32>, b: Option<u32>| a.into_iter().chain(b).min();
        let matching = self.tools.iter().filter(|(it, _)| it.matches(name));
        matching.fold(ToolLimits::default(), |found, (_, limits)| ToolLimits {
            max_calls: lower(found.max_calls, limits.max_calls),
            max_calls_per_minute: lower(found.max_calls_per_minute, limits.max_calls_per_minute),
        })
    }

    /// Returns the limits per minute for a call of a tool, or `None` if there are none.
    pub(crate) fn call_rates_of_tool(&self, name: &str) -> Option<CallRateLimits> {
        let limits = CallRateLimits {
            all_tools: self.max_calls_per_minute,
            this_tool: self.limits_of_tool(name).max_calls_per_minute,
        };
        (limits != CallRateLimits::default()).then_some(limits)
    }

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

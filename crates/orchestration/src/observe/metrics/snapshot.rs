//! Types of a metrics snapshot.

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::Histogram;
use crate::{ToolFailure, observe::audit::AuditedToolCall};

/// Counts of runs, tool calls and model calls at one time. Tools and models are sorted by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// Number of runs that started.
    pub runs_started: u64,
    /// Number of runs that completed with an answer.
    pub runs_completed: u64,
    /// Number of runs that ended at a limit.
    pub runs_limited: u64,
    /// Number of runs that ended with an error.
    pub runs_failed: u64,
    /// Number of runs that the caller cancelled.
    pub runs_cancelled: u64,
    /// Call counts and durations of each tool.
    pub tools: Vec<ToolMetrics>,
    /// Call counts, durations, tokens and costs of each model.
    pub models: Vec<ModelMetrics>,
}

/// Call counts and durations of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolMetrics {
    /// Server of the tool. `None` for a tool without a server, and for the shared counters
    /// `(unknown)` and `(other)`.
    pub server: Option<String>,
    /// Name of the tool on its server. `(unknown)` counts the calls of all tools that do not exist,
    /// and `(other)` the calls of tools beyond the maximum number of counted tools.
    pub tool: String,
    /// Numbers of the tool's calls: in total and by result.
    #[serde(flatten)]
    pub calls: ToolCallCounts,
    /// Durations of the calls in which the tool ran, in milliseconds.
    pub latency: Histogram,
}

/// Numbers of tool calls by result. The [module documentation](super) defines each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolCallCounts {
    /// Number of all tool calls: successful, failed, hallucinated and not executed.
    pub total: u64,
    /// Number of successful tool calls, including calls with a cached result.
    pub successful: u64,
    /// Number of tool calls that failed: an error of the tool or its server, or no answer.
    pub failed: u64,
    /// Number of calls of a tool that does not exist, or with invalid arguments.
    pub hallucinated: u64,
    /// Number of tool calls that were not executed, for example because they were denied.
    pub not_executed: u64,
    /// Number of tool calls that repeated an earlier call of the run. They are also counted in
    /// `successful`, `failed`, `hallucinated` or `not_executed`.
    pub unnecessary: u64,
    /// Number of tool calls that were successful and did not repeat an earlier call.
    pub useful: u64,
    /// Number of tool calls with a cached result. Such calls are also counted as successful.
    pub cached: u64,
}

impl ToolCallCounts {
    /// Returns the share of tool calls that were successful and necessary (0 to 1), or `None` if
    /// there are no calls.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share, of counts far below 2^52"
    )]
    pub fn accuracy(&self) -> Option<f64> {
        (self.total > 0).then(|| self.useful as f64 / self.total as f64)
    }

    /// Counts a finished tool call. `repeated` means that an equal call had a result before the
    /// model requested this call.
    pub(super) fn add_tool_call(&mut self, call: &AuditedToolCall, repeated: bool) {
        self.total += 1;
        let is_error = call.is_error.unwrap_or(false);
        let unnecessary = repeated || call.failure == Some(ToolFailure::Repeated);
        let end = match call.failure {
            // A repeated call gets the result of the earlier call, so it counts as successful.
            None | Some(ToolFailure::Repeated) if !is_error => &mut self.successful,
            Some(failure) if failure.is_hallucination() => &mut self.hallucinated,
            Some(failure) if was_tool_call_prevented(failure, call.attempts.unwrap_or(0)) => {
                &mut self.not_executed
            }
            _ => &mut self.failed,
        };
        *end += 1;
        let successful = !is_error && matches!(call.failure, None | Some(ToolFailure::Repeated));
        self.unnecessary += u64::from(unnecessary);
        self.useful += u64::from(successful && !unnecessary);
        self.cached += u64::from(call.cached.unwrap_or(false));
    }
}

/// Returns whether the run prevented the tool call, for example because it was denied. For a
/// cancelled call, returns `true` only if the call had not started.
fn was_tool_call_prevented(failure: ToolFailure, attempts: u32) -> bool {
    match failure {
        ToolFailure::Denied
        | ToolFailure::NotApproved
        | ToolFailure::Skipped
        | ToolFailure::LimitReached
        | ToolFailure::Repeated
        | ToolFailure::Withheld
        | ToolFailure::NotStored => true,
        ToolFailure::Cancelled => attempts == 0,
        _ => false,
    }
}

/// Call counts, durations, tokens and costs of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelMetrics {
    /// Id of the model that the run requested. The provider may answer with another model.
    pub model: ModelId,
    /// Numbers of the model's calls: in total and by result.
    pub requests: RequestCounts,
    /// Time from each model request to the end of its answer, in milliseconds.
    pub latency: Histogram,
    /// Numbers of tokens that the answers of the model used.
    pub tokens: TokenCounts,
    /// Cost of the model calls with a known price, in US dollars.
    pub cost_usd: f64,
    /// Number of model answers with an unknown price, which `cost_usd` does not include.
    pub unpriced: u64,
    /// Numbers of the tool calls that the model requested, by result.
    pub tool_calls: ToolCallCounts,
}

impl ModelMetrics {
    pub(super) fn new(model: ModelId) -> Self {
        Self {
            model,
            requests: RequestCounts::default(),
            latency: Histogram::default(),
            tokens: TokenCounts::default(),
            cost_usd: 0.0,
            unpriced: 0,
            tool_calls: ToolCallCounts::default(),
        }
    }
}

/// Numbers of model calls: in total and by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Number of all model calls that ended.
    pub total: u64,
    /// Number of model calls with an answer, whatever its finish reason.
    pub successful: u64,
    /// Number of model calls that returned an error.
    pub failed: u64,
    /// Number of model calls whose run ended before the model returned an answer or an error.
    pub cancelled: u64,
}

/// Token counts that the providers reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Number of input tokens, including cached ones.
    pub input: u64,
    /// Number of output tokens, including reasoning.
    pub output: u64,
    /// Number of input tokens that were read from the provider's prompt cache.
    pub cache_read: u64,
    /// Number of input tokens that were written to the provider's prompt cache.
    pub cache_write: u64,
    /// Number of output tokens for reasoning.
    pub reasoning: u64,
}

impl TokenCounts {
    pub(super) fn add_usage(&mut self, usage: &Usage) {
        for (mine, theirs) in [
            (&mut self.input, usage.input_tokens),
            (&mut self.output, usage.output_tokens),
            (&mut self.cache_read, usage.cache_read_tokens),
            (&mut self.cache_write, usage.cache_write_tokens),
            (&mut self.reasoning, usage.reasoning_tokens),
        ] {
            *mine = mine.saturating_add(theirs.unwrap_or(0));
        }
    }
}

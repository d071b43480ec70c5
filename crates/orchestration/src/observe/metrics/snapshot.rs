//! The counts at one moment.

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::Histogram;
use crate::{ToolFailure, observe::audit::ToolCallEntry};

/// The counts at one moment. Tools and models are sorted by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Number of started runs.
    pub runs_started: u64,
    /// Number of completed runs.
    pub runs_completed: u64,
    /// Number of runs that ended at a limit.
    pub runs_limited: u64,
    /// Number of failed runs.
    pub runs_failed: u64,
    /// Number of cancelled runs.
    pub runs_cancelled: u64,
    /// Counts per tool.
    pub tools: Vec<ToolMetrics>,
    /// Counts per model.
    pub models: Vec<ModelMetrics>,
}

/// The counts of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolMetrics {
    /// Server of the tool. `None` for a built-in tool.
    pub server: Option<String>,
    /// Name of the tool on its server. All tools that do not exist are `(unknown)`.
    pub tool: String,
    /// Results of its calls.
    #[serde(flatten)]
    pub calls: CallCounts,
    /// Durations of the executed calls.
    pub latency: Histogram,
}

/// Numbers of tool calls by result. The [module](super) defines the terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallCounts {
    /// All calls: the sum of the next four.
    pub total: u64,
    /// Calls with a result, also from the cache.
    pub successful: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls of a tool that does not exist, or with invalid arguments.
    pub hallucinated: u64,
    /// Calls that were not executed.
    pub not_executed: u64,
    /// Calls that repeated an earlier call. They are also part of the other counts.
    pub unnecessary: u64,
    /// Calls that were successful and necessary.
    pub useful: u64,
    /// Calls with a cached result. They are also part of the other counts.
    pub cached: u64,
}

impl CallCounts {
    /// Returns the share of calls that were successful and necessary, or `None` without calls.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share, of counts far below 2^52"
    )]
    pub fn accuracy(&self) -> Option<f64> {
        (self.total > 0).then(|| self.useful as f64 / self.total as f64)
    }

    /// Counts a finished call. `repeated`: an earlier model answer already had the
    /// result of the same call.
    pub(super) fn add(&mut self, call: &ToolCallEntry, repeated: bool) {
        self.total += 1;
        let is_error = call.is_error.unwrap_or(false);
        let unnecessary = repeated || call.failure == Some(ToolFailure::Repeated);
        let end = match call.failure {
            // The earlier result is its result.
            None | Some(ToolFailure::Repeated) if !is_error => &mut self.successful,
            Some(failure) if failure.is_hallucination() => &mut self.hallucinated,
            Some(failure) if is_not_executed(failure, call.attempts.unwrap_or(0)) => {
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

/// Returns whether the run decided not to execute the call.
fn is_not_executed(failure: ToolFailure, attempts: u32) -> bool {
    match failure {
        ToolFailure::Denied
        | ToolFailure::NotApproved
        | ToolFailure::Skipped
        | ToolFailure::LimitReached
        | ToolFailure::Repeated
        | ToolFailure::Withheld => true,
        ToolFailure::Cancelled => attempts == 0,
        _ => false,
    }
}

/// The counts of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelMetrics {
    /// The requested model.
    pub model: ModelId,
    /// Results of its calls.
    pub requests: RequestCounts,
    /// Durations from the request to the end of the answer.
    pub latency: Histogram,
    /// Token counts.
    pub tokens: TokenCounts,
    /// Cost of the calls with a known price, in US dollars.
    pub cost_usd: f64,
    /// Number of answers with an unknown price.
    pub unpriced: u64,
    /// Results of the tool calls that the model requested.
    pub tool_calls: CallCounts,
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
            tool_calls: CallCounts::default(),
        }
    }
}

/// Numbers of model calls by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestCounts {
    /// All ended calls.
    pub total: u64,
    /// Calls with an answer of any finish reason.
    pub successful: u64,
    /// Calls with an error.
    pub failed: u64,
    /// Calls that were cancelled with their run.
    pub cancelled: u64,
}

/// Token counts that the providers reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens for reasoning.
    pub reasoning: u64,
}

impl TokenCounts {
    pub(super) fn add(&mut self, usage: &Usage) {
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

//! What was counted, at one moment.

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::Histogram;
use crate::ToolFailure;

/// What was counted, at one moment. Tools and models stand in the order of their names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Runs that began, those that were taken up again included.
    pub runs_started: u64,
    /// Runs by how they ended.
    pub runs_completed: u64,
    /// At a limit.
    pub runs_limited: u64,
    /// With an error.
    pub runs_failed: u64,
    /// Stopped by somebody.
    pub runs_cancelled: u64,
    /// The tools.
    pub tools: Vec<ToolMetrics>,
    /// The models.
    pub models: Vec<ModelMetrics>,
}

/// What was counted of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolMetrics {
    /// The server; `None` for a tool of the program itself.
    pub server: Option<String>,
    /// Its own name. All that do not exist are one: `(unknown)`.
    pub tool: String,
    /// How its calls ended.
    #[serde(flatten)]
    pub calls: CallCounts,
    /// How long those took that ran.
    pub latency: Histogram,
}

/// How tool calls ended. See the [module](super) for what the words mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallCounts {
    /// All: the sum of the next four.
    pub total: u64,
    /// Those with a proper result, also from a cache.
    pub successful: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those for a tool that does not exist or with arguments that do not fit.
    pub hallucinated: u64,
    /// Those that were not let run.
    pub not_executed: u64,
    /// Those that asked for what was there already; they are among the others too.
    pub unnecessary: u64,
    /// Those that were successful and not unnecessary.
    pub useful: u64,
    /// Those whose result came from a cache; they are among the others too.
    pub cached: u64,
}

impl CallCounts {
    /// The share of calls that were successful and necessary; `None` if there was none.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share, of counts far below 2^52"
    )]
    pub fn accuracy(&self) -> Option<f64> {
        (self.total > 0).then(|| self.useful as f64 / self.total as f64)
    }

    pub(super) fn add(&mut self, call: FinishedCall) {
        self.total += 1;
        let unnecessary = call.repeated || call.failure == Some(ToolFailure::Repeated);
        let end = match call.failure {
            // Its earlier result stands in for it, so there is one.
            Some(ToolFailure::Repeated) if !call.is_error => &mut self.successful,
            Some(failure) if failure.is_hallucination() => &mut self.hallucinated,
            Some(failure) if is_not_executed(failure, call.attempts) => &mut self.not_executed,
            Some(_) => &mut self.failed,
            None if call.is_error => &mut self.failed,
            None => &mut self.successful,
        };
        *end += 1;
        let successful = match call.failure {
            Some(failure) => failure == ToolFailure::Repeated && !call.is_error,
            None => !call.is_error,
        };
        self.unnecessary += u64::from(unnecessary);
        self.useful += u64::from(successful && !unnecessary);
        self.cached += u64::from(call.cached);
    }
}

/// What counts of a tool call that has its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct FinishedCall {
    pub(super) is_error: bool,
    pub(super) failure: Option<ToolFailure>,
    pub(super) cached: bool,
    pub(super) attempts: u32,
    /// The same call had its result already.
    pub(super) repeated: bool,
}

/// Nobody's fault: it was decided that the call is not made.
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

/// What was counted of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelMetrics {
    /// The model, as it was asked for.
    pub model: ModelId,
    /// How its calls ended.
    pub requests: RequestCounts,
    /// How long its answers took, from the request to their end.
    pub latency: Histogram,
    /// What it cost in tokens.
    pub tokens: TokenCounts,
    /// What the calls cost in US dollars whose price is known.
    pub cost_usd: f64,
    /// Answers whose price is not known.
    pub unpriced: u64,
    /// How the tool calls ended that it asked for.
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

/// How calls of a model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestCounts {
    /// All that ended.
    pub total: u64,
    /// With an answer, whatever its finish reason.
    pub successful: u64,
    /// With an error.
    pub failed: u64,
    /// Not waited for, because the run was cancelled.
    pub cancelled: u64,
}

/// Tokens, as far as the providers said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Of prompts, those from and to caches included.
    pub input: u64,
    /// Written, reasoning included.
    pub output: u64,
    /// Of the input, read from a cache.
    pub cache_read: u64,
    /// Of the input, written to a cache.
    pub cache_write: u64,
    /// Of the output, reasoning.
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

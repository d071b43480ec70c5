//! The ledger of a run: its consumption of calls, tokens, money and time.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::{
    Limits, Pricing,
    errors::{
        cost_limit_error, step_limit_error, time_limit_error, token_limit_error,
        tool_call_limit_error, unknown_price_error,
    },
};
use crate::{RunError, policy::duration_serde::to_milliseconds};

/// Ledger of the consumption of a run. It has no clock; the caller passes the current time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageLedger {
    /// Number of model calls so far, which [`Limits::max_steps`] limits.
    pub steps: u32,
    /// Number of tool calls that the limits allowed.
    pub tool_calls: u32,
    /// Number of tool calls in the latest model answer that the limits allowed.
    calls_in_response: u32,
    /// Whether the model requested more tool calls than [`Limits::max_tool_calls`]. If so,
    /// [`UsageLedger::check_model_call_limits`] returns an error.
    is_exhausted: bool,
    /// Number of input tokens of all model calls.
    pub input_tokens: u64,
    /// Number of output tokens of all model calls.
    pub output_tokens: u64,
    /// Cost of the model answers with a known price, in US dollars.
    pub cost_usd: f64,
    /// Number of requests to built-in tools of providers, such as web searches, whose price is
    /// unknown. The cost limit does not include them.
    pub unpriced_requests: u64,
    /// Number of model answers with an unknown price. After such an answer, a run with a cost limit
    /// makes no further model call.
    unpriced_answers: u32,
    /// Total duration of the completed work periods, in milliseconds. During a work period, a
    /// process executes the run and the run does not wait for the decision of a person.
    earlier_ms: u64,
    /// Start of the current work period. `None` before the first one and while the run waits for
    /// the decision of a person.
    period_start: Option<Timestamp>,
    /// Latest time that the caller recorded. If the process crashes, the current work period counts
    /// until this time.
    latest_time: Option<Timestamp>,
}

impl UsageLedger {
    /// Starts a work period, whose duration counts for [`Limits::max_wall_time`]. Call this
    /// function at the start of the run, after a decision of a person, and when a stored run is
    /// resumed.
    ///
    /// If the process of the previous work period crashed, this period counts until the latest
    /// recorded time.
    pub fn start_wall_time(&mut self, now: Timestamp) {
        if let (Some(since), Some(seen)) = (self.period_start, self.latest_time) {
            self.earlier_ms = self.earlier_ms.saturating_add(ms_between(since, seen));
        }
        self.period_start = Some(now);
        self.latest_time = Some(now);
    }

    /// Ends the current work period. Call this function before the run waits for the decision of a
    /// person.
    pub fn stop_wall_time(&mut self, now: Timestamp) {
        if let Some(since) = self.period_start.take() {
            self.earlier_ms = self.earlier_ms.saturating_add(ms_between(since, now));
        }
        self.latest_time = Some(now);
    }

    /// Records the current time. If the process crashes, the current work period counts until the
    /// latest recorded time.
    pub fn record_current_time(&mut self, now: Timestamp) {
        self.latest_time = Some(now);
    }

    /// Counts a model call.
    pub fn count_model_call(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }

    /// Subtracts one model call. Call this function before a failed or lost model call is repeated,
    /// so that both attempts count as one call.
    pub fn uncount_model_call(&mut self) {
        self.steps = self.steps.saturating_sub(1);
    }

    /// Sets the number of tool calls in the current model answer to 0. Call this function for each
    /// new model answer.
    pub fn reset_response_call_count(&mut self) {
        self.calls_in_response = 0;
    }

    /// Returns an error if a limit forbids another model call.
    ///
    /// If several limits are reached, the error names the first one in the order of [`Limits`].
    pub fn check_model_call_limits(
        &self,
        limits: &Limits,
        model: &ModelId,
        pricing: Option<&Pricing>,
        now: Timestamp,
    ) -> Result<(), RunError> {
        if self.steps >= limits.max_steps {
            return Err(step_limit_error(limits.max_steps));
        }
        if let Some(max) = limits.max_tool_calls
            && self.is_exhausted
        {
            return Err(tool_call_limit_error(max, "", "max_tool_calls"));
        }
        self.check_token_limits(limits)?;
        if let Some(max_usd) = limits.max_cost_usd {
            // Without the price of the model and of each earlier answer, the total cost is unknown.
            let is_priced =
                pricing.is_some_and(Pricing::has_valid_prices) && self.unpriced_answers == 0;
            if !is_priced {
                return Err(unknown_price_error(model));
            }
            // The comparison of a cost with NaN is always false, so a maximum of NaN would never be
            // reached. It ends the run instead.
            if max_usd.is_nan() || self.cost_usd >= max_usd {
                return Err(cost_limit_error(self.cost_usd, max_usd));
            }
        }
        if let Some(max) = limits.max_wall_time {
            let (used_ms, max_ms) = (self.elapsed_ms(now), to_milliseconds(max));
            if used_ms >= max_ms {
                return Err(time_limit_error(used_ms, max_ms));
            }
        }
        Ok(())
    }

    fn check_token_limits(&self, limits: &Limits) -> Result<(), RunError> {
        let (input, output) = (self.input_tokens, self.output_tokens);
        let total = input.saturating_add(output);
        for (used, max, kind, setting) in [
            (input, limits.max_input_tokens, "input", "max_input_tokens"),
            (
                output,
                limits.max_output_tokens,
                "output",
                "max_output_tokens",
            ),
            (
                total,
                limits.max_total_tokens,
                "input and output",
                "max_total_tokens",
            ),
        ] {
            if let Some(max) = max.filter(|max| used >= *max) {
                return Err(token_limit_error(used, max, kind, setting));
            }
        }
        Ok(())
    }

    /// Counts a tool call, or returns an error if a limit forbids it.
    ///
    /// Call this function once for each tool call of a model answer, in their order, and not again
    /// for retries.
    pub fn count_tool_call(&mut self, limits: &Limits, now: Timestamp) -> Result<(), RunError> {
        self.latest_time = Some(now);
        if let Some(max) = limits.max_tool_calls
            && self.tool_calls >= max
        {
            self.is_exhausted = true;
            return Err(tool_call_limit_error(max, "", "max_tool_calls"));
        }
        if let Some(max) = limits.max_calls_per_response
            && self.calls_in_response >= max
        {
            let setting = "max_calls_per_response";
            return Err(tool_call_limit_error(max, " in one answer", setting));
        }
        self.tool_calls = self.tool_calls.saturating_add(1);
        self.calls_in_response = self.calls_in_response.saturating_add(1);
        Ok(())
    }

    /// Adds the token usage and the cost of a model answer to the ledger.
    ///
    /// Counts of `usage` that are `None` add nothing. `pricing` is the price of the answering
    /// model. Without a valid price, the answer counts as an answer with an unknown price.
    pub fn record_usage(&mut self, usage: &Usage, pricing: Option<&Pricing>, now: Timestamp) {
        self.latest_time = Some(now);
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        self.input_tokens = self.input_tokens.saturating_add(input.unwrap_or(0));
        self.output_tokens = self.output_tokens.saturating_add(output.unwrap_or(0));
        match pricing.filter(|pricing| pricing.has_valid_prices()) {
            Some(pricing) => {
                let cost = pricing.compute_cost(usage);
                self.cost_usd += cost.usd;
                self.unpriced_requests = self
                    .unpriced_requests
                    .saturating_add(cost.unpriced_requests);
            }
            None => self.unpriced_answers = self.unpriced_answers.saturating_add(1),
        }
    }

    /// Returns the time until the run reaches [`Limits::max_wall_time`], or zero if it was reached.
    /// Returns `None` if the limit is not set.
    pub fn remaining_time(&self, limits: &Limits, now: Timestamp) -> Option<Duration> {
        let max = limits.max_wall_time?;
        Some(max.saturating_sub(Duration::from_millis(self.elapsed_ms(now))))
    }

    /// Returns the maximum number of output tokens of the next answer, according to the token
    /// limits of the run. Returns `None` without such a limit.
    ///
    /// The input tokens of the next call also count for [`Limits::max_total_tokens`], but this
    /// function does not subtract them.
    pub fn remaining_output_tokens(&self, limits: &Limits) -> Option<u64> {
        let output = limits
            .max_output_tokens
            .map(|max| max.saturating_sub(self.output_tokens));
        let total = limits.max_total_tokens.map(|max| {
            max.saturating_sub(self.input_tokens)
                .saturating_sub(self.output_tokens)
        });
        output.into_iter().chain(total).min()
    }

    /// Returns the total duration of the run's work periods, in milliseconds.
    pub fn elapsed_ms(&self, now: Timestamp) -> u64 {
        let running = self.period_start.map_or(0, |since| ms_between(since, now));
        self.earlier_ms.saturating_add(running)
    }
}

/// Returns the milliseconds from `start` to `end`, or 0 if `end` is before `start` because the
/// clock was set back.
fn ms_between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.duration_since(start).as_millis()).unwrap_or(0)
}

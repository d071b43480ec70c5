//! What a run has used.

use std::{collections::VecDeque, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::{LimitHit, Limits, Pricing};

const MINUTE: SignedDuration = SignedDuration::from_secs(60);

/// What a run has used so far. It counts what it is told, and knows no clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    steps: u32,
    tool_calls: u32,
    /// Tool calls of the answer that is being dealt with.
    in_response: u32,
    /// The model wanted more tool calls than the run may make.
    refused_for_good: bool,
    /// When the tool calls of the last minute were admitted; kept only where that is limited.
    recent: VecDeque<Timestamp>,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    /// Requests of providers' own tools that have no price.
    unpriced_requests: u64,
    /// Answers of models without a price.
    unpriced_answers: u32,
    /// Answers of which a count is an estimate.
    estimated_answers: u32,
    /// Time that is over, in milliseconds.
    spent_ms: u64,
    /// Since when time runs, beside that.
    running_since: Option<Timestamp>,
    /// The last that was heard of the time.
    last_seen: Option<Timestamp>,
}

/// What an answer used about, for what its provider does not report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenEstimate {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
}

impl Ledger {
    /// Time runs from now on: at the start, when a person has answered, and when a stored run is taken
    /// up. After a crash the time since the last thing that was counted is not the run's.
    pub fn start(&mut self, now: Timestamp) {
        if let (Some(since), Some(seen)) = (self.running_since, self.last_seen) {
            self.spent_ms = self.spent_ms.saturating_add(ms_between(since, seen));
        }
        self.running_since = Some(now);
        self.last_seen = Some(now);
    }

    /// Time does not run until [`Ledger::start`]: the run waits for a person or is stored.
    pub fn pause(&mut self, now: Timestamp) {
        if let Some(since) = self.running_since.take() {
            self.spent_ms = self.spent_ms.saturating_add(ms_between(since, now));
        }
        self.last_seen = Some(now);
    }

    /// Time goes on. Without it, what a crash loses of the time is all since [`Ledger::start`].
    pub fn heard(&mut self, now: Timestamp) {
        self.last_seen = Some(now);
    }

    /// A call of the model begins.
    pub fn begin_step(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }

    /// The call of the model that had begun was lost and is made again.
    pub fn undo_step(&mut self) {
        self.steps = self.steps.saturating_sub(1);
    }

    /// The model answered, and its tool calls are dealt with next.
    pub fn begin_response(&mut self) {
        self.in_response = 0;
    }

    /// Whether `model` may be asked once more. Of several limits that are reached it names the first, in
    /// the order of [`Limits`].
    pub fn check_before_model_call(
        &self,
        limits: &Limits,
        model: &ModelId,
        pricing: Option<&Pricing>,
        now: Timestamp,
    ) -> Result<(), LimitHit> {
        if self.steps >= limits.max_steps {
            return Err(LimitHit::Steps {
                max: limits.max_steps,
            });
        }
        if let Some(max) = limits.max_tool_calls
            && self.refused_for_good
        {
            return Err(LimitHit::ToolCalls { max });
        }
        self.check_tokens(limits)?;
        if let Some(max_usd) = limits.max_cost_usd {
            // What was spent on a model without a price may be anything.
            let is_priced = pricing.is_some_and(Pricing::is_proper) && self.unpriced_answers == 0;
            if !is_priced {
                return Err(LimitHit::PriceUnknown {
                    model: model.clone(),
                });
            }
            // Nothing may be spent under a limit that is no number.
            if max_usd.is_nan() || self.cost_usd >= max_usd {
                return Err(LimitHit::Cost {
                    used_usd: self.cost_usd,
                    max_usd,
                });
            }
        }
        if let Some(max) = limits.max_wall_time {
            let (used_ms, max_ms) = (self.elapsed_ms(now), milliseconds(max));
            if used_ms >= max_ms {
                return Err(LimitHit::WallTime { used_ms, max_ms });
            }
        }
        Ok(())
    }

    fn check_tokens(&self, limits: &Limits) -> Result<(), LimitHit> {
        let reached = |used: u64, max: Option<u64>| max.filter(|max| used >= *max);
        let (input, output) = (self.input_tokens, self.output_tokens);
        let total = input.saturating_add(output);
        if let Some(max) = reached(input, limits.max_input_tokens) {
            return Err(LimitHit::InputTokens { used: input, max });
        }
        if let Some(max) = reached(output, limits.max_output_tokens) {
            return Err(LimitHit::OutputTokens { used: output, max });
        }
        if let Some(max) = reached(total, limits.max_total_tokens) {
            return Err(LimitHit::TotalTokens { used: total, max });
        }
        Ok(())
    }

    /// Whether one more tool call may run, and counts it if so. To be asked once for each call, in the
    /// order of the answer; not for another attempt at the same call.
    pub fn admit_call(&mut self, limits: &Limits, now: Timestamp) -> Result<(), LimitHit> {
        self.last_seen = Some(now);
        if let Some(max) = limits.max_tool_calls
            && self.tool_calls >= max
        {
            self.refused_for_good = true;
            return Err(LimitHit::ToolCalls { max });
        }
        if let Some(max) = limits.max_calls_per_response
            && self.in_response >= max
        {
            return Err(LimitHit::CallsPerResponse { max });
        }
        if let Some(max) = limits.max_calls_per_minute {
            // A clock that was set back must not close the door for longer than a minute.
            self.recent.retain(|then| {
                let age = now.duration_since(*then);
                age < MINUTE && !age.is_negative()
            });
            if self.recent.len() >= usize::try_from(max).unwrap_or(usize::MAX) {
                let oldest = self.recent.front().map_or(MINUTE, |oldest| {
                    MINUTE.saturating_sub(now.duration_since(*oldest))
                });
                return Err(LimitHit::CallsPerMinute {
                    max,
                    retry_after_ms: to_ms(oldest),
                });
            }
            self.recent.push_back(now);
        }
        self.tool_calls = self.tool_calls.saturating_add(1);
        self.in_response = self.in_response.saturating_add(1);
        Ok(())
    }

    /// What an answer used. `estimate` stands in for what the provider does not report, so that no limit
    /// is open because of that. `pricing` is the price of the model that gave it.
    pub fn record_usage(
        &mut self,
        usage: &Usage,
        estimate: TokenEstimate,
        pricing: Option<&Pricing>,
        now: Timestamp,
    ) {
        self.last_seen = Some(now);
        let mut usage = *usage;
        if usage.input_tokens.is_none() || usage.output_tokens.is_none() {
            self.estimated_answers = self.estimated_answers.saturating_add(1);
        }
        let input = *usage.input_tokens.get_or_insert(estimate.input);
        let output = *usage.output_tokens.get_or_insert(estimate.output);
        self.input_tokens = self.input_tokens.saturating_add(input);
        self.output_tokens = self.output_tokens.saturating_add(output);
        match pricing.filter(|pricing| pricing.is_proper()) {
            Some(pricing) => {
                let cost = pricing.cost(&usage);
                self.cost_usd += cost.usd;
                self.unpriced_requests = self
                    .unpriced_requests
                    .saturating_add(cost.unpriced_requests);
            }
            None => self.unpriced_answers = self.unpriced_answers.saturating_add(1),
        }
    }

    /// How much time is left; `None` without a limit.
    pub fn time_left(&self, limits: &Limits, now: Timestamp) -> Option<Duration> {
        let max = limits.max_wall_time?;
        Some(max.saturating_sub(Duration::from_millis(self.elapsed_ms(now))))
    }

    /// How many tokens the next answer may hold; `None` without a limit. What its prompt will use is not
    /// taken off.
    pub fn output_left(&self, limits: &Limits) -> Option<u64> {
        let output = limits
            .max_output_tokens
            .map(|max| max.saturating_sub(self.output_tokens));
        let total = limits.max_total_tokens.map(|max| {
            max.saturating_sub(self.input_tokens)
                .saturating_sub(self.output_tokens)
        });
        output.into_iter().chain(total).min()
    }

    /// Calls of the model.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Tool calls that were admitted.
    pub fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// Tokens of all prompts.
    pub fn input_tokens(&self) -> u64 {
        self.input_tokens
    }

    /// Tokens written.
    pub fn output_tokens(&self) -> u64 {
        self.output_tokens
    }

    /// What the answers of models with a price cost, in US dollars.
    pub fn cost_usd(&self) -> f64 {
        self.cost_usd
    }

    /// Whether [`Ledger::cost_usd`] is all there is to pay: every answer and every request of a
    /// provider's own tools had a price.
    pub fn is_cost_complete(&self) -> bool {
        self.unpriced_answers == 0 && self.unpriced_requests == 0
    }

    /// Requests of providers' own tools, such as web searches, that have no price and therefore are in no
    /// limit.
    pub fn unpriced_requests(&self) -> u64 {
        self.unpriced_requests
    }

    /// Whether a count of tokens is in part an estimate.
    pub fn has_estimates(&self) -> bool {
        self.estimated_answers > 0
    }

    /// How long the run has been at work, in milliseconds.
    pub fn elapsed_ms(&self, now: Timestamp) -> u64 {
        let running = self.running_since.map_or(0, |since| ms_between(since, now));
        self.spent_ms.saturating_add(running)
    }
}

/// Nothing if the clock was set back.
fn ms_between(start: Timestamp, end: Timestamp) -> u64 {
    to_ms(end.duration_since(start))
}

fn to_ms(span: SignedDuration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(0)
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

//! Summarizes the runs of one model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::{RunResult, is_zero};
use crate::scoring::{CallOutcome, ScoredCall, Verdict};

/// Numbers of tool calls by outcome and by verdict.
///
/// Each call has one outcome and one verdict: a successful call may be unnecessary. `successful`,
/// `failed`, `not_executed` and [invalid calls](Self::count_invalid_calls) add up to `calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallCounts {
    /// Number of all tool calls.
    pub calls: u64,
    /// Number of tool calls that returned a result without an error.
    pub successful: u64,
    /// Number of tool calls whose tool or MCP server failed.
    pub failed: u64,
    /// Number of tool calls with an unknown tool, with invalid arguments, or with valid arguments
    /// that differ from the expected ones. The latter also count as `successful`, `failed` or
    /// `not_executed`.
    pub hallucinated: u64,
    /// Number of tool calls that were not executed, for example because they were denied, skipped
    /// or over a limit.
    pub not_executed: u64,
    /// Number of tool calls that were not expected or whose result was already known.
    pub unnecessary: u64,
    /// Number of tool calls that used a forbidden tool.
    pub forbidden: u64,
    /// Number of tool calls with the right tool and arguments at the right position. A right call
    /// counts even if it was not executed.
    pub right: u64,
    /// Number of tool calls in a replay with an unknown verdict, because their arguments were
    /// redacted in the recording. They count neither in `right` nor in `judged`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Number of tool calls with a right or wrong verdict, plus the number of required calls that
    /// the model did not make. The counts of a single tool do not include calls that the model did
    /// not make.
    pub judged: u64,
}

impl CallCounts {
    fn add_call(&mut self, call: &ScoredCall) {
        self.calls += 1;
        match call.outcome {
            CallOutcome::Successful => self.successful += 1,
            CallOutcome::Failed => self.failed += 1,
            CallOutcome::NotExecuted => self.not_executed += 1,
            CallOutcome::Hallucinated => {}
        }
        let is_invented =
            call.outcome == CallOutcome::Hallucinated || call.verdict == Verdict::WrongInput;
        self.hallucinated += u64::from(is_invented);
        self.unnecessary += u64::from(call.verdict == Verdict::Unnecessary);
        self.forbidden += u64::from(call.verdict == Verdict::Forbidden);
        self.right += u64::from(call.verdict == Verdict::Right);
        self.unknown += u64::from(call.verdict == Verdict::Unknown);
        let is_judged = !matches!(call.verdict, Verdict::Unknown | Verdict::Unjudged);
        self.judged += u64::from(is_judged);
    }

    /// Returns the number of tool calls that were rejected, because the tool does not exist or the
    /// arguments are invalid.
    pub fn count_invalid_calls(&self) -> u64 {
        // The arithmetic saturates, because a report file may contain any numbers.
        let ended = self.successful.saturating_add(self.failed);
        let ended = ended.saturating_add(self.not_executed);
        self.calls.saturating_sub(ended)
    }

    /// Returns the share `right / judged`. Returns `None` if `judged` is 0, for example if no call
    /// was expected and none was made.
    ///
    /// Required calls that the model did not make count as wrong, even in turns that did not run. A
    /// call with wrong arguments or at the wrong position counts once as wrong, and not also as
    /// missing. A second attempt with the right arguments counts in addition.
    pub fn accuracy(&self) -> Option<f64> {
        compute_share(self.right, self.judged)
    }
}

/// Returns the share `part / whole`, or `None` if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
pub fn compute_share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The summary of all runs of one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSummary {
    /// The model whose runs are summarized.
    pub model: ModelId,
    /// Number of all runs of this model.
    pub runs: u64,
    /// Number of runs of this model that met all expectations.
    pub passed: u64,
    /// Number of runs that passed in a replay, although arguments of their calls were redacted in
    /// the recording. The original runs may have failed because of these arguments.
    #[serde(skip_serializing_if = "is_zero")]
    pub passed_unknown: u64,
    /// Numbers of the model's tool calls by outcome and verdict.
    pub counts: CallCounts,
    /// Number of [made-up values](super::TurnResult::made_up_values) in all answers. `None` if it
    /// is unknown for a turn, or without turns.
    pub made_up_values: Option<u64>,
    /// Number of turns of this model that ended, including failed turns.
    pub turns: u64,
    /// Median and 95th percentile of the turn durations in milliseconds, by the nearest-rank
    /// method. Concurrent runs may increase the durations. `None` without turns.
    pub turn_ms: Option<(u64, u64)>,
    /// Sum of the tokens that the provider reported for all turns.
    pub usage: Usage,
    /// Number of turns for which the provider did not report all token counts.
    pub unmetered_turns: u64,
    /// Total cost of all turns in US dollars. `None` if the cost of a turn is unknown, a turn
    /// stopped for an approval, or there are no turns.
    pub cost_usd: Option<f64>,
    /// Maps each kind of scenario to the number of its runs and the number of its passed runs.
    pub kinds: BTreeMap<String, (u64, u64)>,
    /// Summary of the calls of each tool, by the name `server/tool`. The name of a tool without a
    /// server is `tool`.
    pub tools: BTreeMap<String, ToolSummary>,
}

/// The summary of all calls of one tool by one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ToolSummary {
    /// Numbers of the tool's calls by outcome and verdict.
    pub counts: CallCounts,
    /// Median and 95th percentile of the durations of executed calls in milliseconds, by the
    /// nearest-rank method. `None` if no call was executed.
    pub call_ms: Option<(u64, u64)>,
}

impl ModelSummary {
    /// Summarizes all runs of one model in a report.
    pub(crate) fn from_runs<'a>(
        model: &ModelId,
        runs: impl Iterator<Item = &'a RunResult>,
    ) -> Self {
        let mut summary = Self {
            model: model.clone(),
            runs: 0,
            passed: 0,
            passed_unknown: 0,
            counts: CallCounts::default(),
            made_up_values: Some(0),
            turns: 0,
            turn_ms: None,
            usage: Usage::default(),
            unmetered_turns: 0,
            cost_usd: Some(0.0),
            kinds: BTreeMap::new(),
            tools: BTreeMap::new(),
        };
        let mut turn_durations = Vec::new();
        let mut call_durations: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for run in runs {
            summary.runs += 1;
            summary.passed += u64::from(run.passed);
            let mut calls = run.turns.iter().flat_map(|turn| &turn.score.calls);
            let has_unknown = calls.any(|call| call.verdict == Verdict::Unknown);
            summary.passed_unknown += u64::from(run.passed && has_unknown);
            summary.counts.judged += run.not_reached.len() as u64;
            let values = summary.made_up_values.zip(run.count_made_up_values());
            summary.made_up_values = values.map(|(sum, count)| sum + count);
            let kind = summary.kinds.entry(run.kind.clone()).or_default();
            kind.0 += 1;
            kind.1 += u64::from(run.passed);
            if run.unfinished_turn.is_some() {
                summary.cost_usd = None;
            }
            for turn in &run.turns {
                summary.turns += 1;
                turn_durations.push(turn.duration_ms);
                summary.usage.add_usage(turn.usage);
                summary.unmetered_turns += u64::from(turn.unmetered > 0);
                let both = summary.cost_usd.zip(turn.cost_usd);
                summary.cost_usd = both.map(|(sum, cost)| sum + cost);
                for call in &turn.score.calls {
                    summary.counts.add_call(call);
                    let name = match &call.server {
                        Some(server) => format!("{server}/{}", call.tool),
                        None => call.tool.clone(),
                    };
                    if call.outcome.is_executed() {
                        let durations = call_durations.entry(name.clone()).or_default();
                        durations.push(call.duration_ms);
                    }
                    summary.tools.entry(name).or_default().counts.add_call(call);
                }
                let score = &turn.score;
                let missing = score.missing.len().saturating_sub(score.attempted);
                summary.counts.judged += missing as u64;
            }
        }
        if summary.turns == 0 {
            summary.cost_usd = None;
            summary.made_up_values = None;
        }
        summary.turn_ms = median_and_percentile_95(turn_durations);
        for (name, durations) in call_durations {
            if let Some(tool) = summary.tools.get_mut(&name) {
                tool.call_ms = median_and_percentile_95(durations);
            }
        }
        summary
    }
}

/// Returns the median and the 95th percentile of the values, by the nearest-rank method. Returns
/// `None` if the list is empty.
fn median_and_percentile_95(mut values: Vec<u64>) -> Option<(u64, u64)> {
    values.sort_unstable();
    let percentile = |percent: usize| {
        let rank = (values.len() * percent).div_ceil(100);
        values.get(rank.saturating_sub(1)).copied()
    };
    percentile(50).zip(percentile(95))
}

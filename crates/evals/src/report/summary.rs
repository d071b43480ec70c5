//! Summaries of runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::{RunResult, is_zero};
use crate::scoring::{CallOutcome, ScoredCall, Verdict};

/// Numbers of calls by outcome and by verdict.
///
/// Each call has one outcome and one verdict: a successful call may be unnecessary. `successful`,
/// `failed`, `not_executed` and [`invalid`](Self::invalid) are outcomes and their sum is `calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallCounts {
    /// All calls.
    pub calls: u64,
    /// The tool returned a result.
    pub successful: u64,
    /// The tool or its server failed.
    pub failed: u64,
    /// Unknown tools, invalid arguments, and arguments that differ from those of an expected call.
    /// The latter calls are also in `successful` or `failed`.
    pub hallucinated: u64,
    /// Denied, skipped or over a limit.
    pub not_executed: u64,
    /// Not expected, or the result was already known.
    pub unnecessary: u64,
    /// Calls of forbidden tools.
    pub forbidden: u64,
    /// The right tool with the right arguments at the right position, executed or not.
    pub right: u64,
    /// In a replay: expected calls with redacted arguments. They are neither in `right` nor in
    /// `judged`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Calls with an expectation, and missing calls. `right` is a part of them. Missing calls do
    /// not count for a tool.
    pub judged: u64,
}

impl CallCounts {
    fn add(&mut self, call: &ScoredCall) {
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

    /// Returns the number of calls that were rejected because the tool does not exist or the
    /// arguments are invalid.
    pub fn invalid(&self) -> u64 {
        // The counts may come from a file with any numbers.
        let ended = self.successful.saturating_add(self.failed);
        let ended = ended.saturating_add(self.not_executed);
        self.calls.saturating_sub(ended)
    }

    /// Returns the share of right calls, or `None` without expected and made calls.
    ///
    /// A missing call is not right, also in a turn that did not run. A call with wrong arguments
    /// or at the wrong position counts once, not also as missing. A second attempt counts again.
    pub fn accuracy(&self) -> Option<f64> {
        share(self.right, self.judged)
    }

    /// Returns the share of hallucinated calls.
    pub fn hallucinated_share(&self) -> Option<f64> {
        share(self.hallucinated, self.calls)
    }

    /// Returns the share of unnecessary calls.
    pub fn unnecessary_share(&self) -> Option<f64> {
        share(self.unnecessary, self.calls)
    }
}

/// Returns `part / whole`, or `None` if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The summary of all runs of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSummary {
    /// The model.
    pub model: ModelId,
    /// Number of runs.
    pub runs: u64,
    /// Number of runs that met all expectations.
    pub passed: u64,
    /// In a replay: passed runs with calls whose verdict is unknown. They may have failed when they
    /// were recorded.
    #[serde(skip_serializing_if = "is_zero")]
    pub passed_unknown: u64,
    /// All calls.
    pub counts: CallCounts,
    /// Number of finished turns.
    pub turns: u64,
    /// Median and 95th percentile of the duration of a turn in milliseconds (nearest rank). Includes
    /// the effect of concurrent runs. `None` without a turn.
    pub turn_ms: Option<(u64, u64)>,
    /// Reported tokens of all turns.
    pub usage: Usage,
    /// Number of turns whose tokens were not reported completely.
    pub unmetered_turns: u64,
    /// Cost in US dollars, if the cost of every turn is known.
    pub cost_usd: Option<f64>,
    /// Number of runs and of passed runs by kind of scenario.
    pub kinds: BTreeMap<String, (u64, u64)>,
    /// Calls by `server/tool`.
    pub tools: BTreeMap<String, ToolSummary>,
}

/// The summary of all calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ToolSummary {
    /// The calls.
    pub counts: CallCounts,
    /// Median and 95th percentile of the duration of executed calls, as
    /// [`ModelSummary::turn_ms`].
    pub call_ms: Option<(u64, u64)>,
}

impl ModelSummary {
    /// Summarizes runs of one model.
    pub(crate) fn of<'a>(model: &ModelId, runs: impl Iterator<Item = &'a RunResult>) -> Self {
        let mut summary = Self {
            model: model.clone(),
            runs: 0,
            passed: 0,
            passed_unknown: 0,
            counts: CallCounts::default(),
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
            let kind = summary.kinds.entry(run.kind.clone()).or_default();
            kind.0 += 1;
            kind.1 += u64::from(run.passed);
            if run.unfinished_turn.is_some() {
                summary.cost_usd = None;
            }
            for turn in &run.turns {
                summary.turns += 1;
                turn_durations.push(turn.duration_ms);
                summary.usage.add(turn.usage);
                summary.unmetered_turns += u64::from(turn.unmetered > 0);
                let both = summary.cost_usd.zip(turn.cost_usd);
                summary.cost_usd = both.map(|(sum, cost)| sum + cost);
                for call in &turn.score.calls {
                    summary.counts.add(call);
                    let name = match &call.server {
                        Some(server) => format!("{server}/{}", call.tool),
                        None => call.tool.clone(),
                    };
                    if call.outcome.is_executed() {
                        let durations = call_durations.entry(name.clone()).or_default();
                        durations.push(call.duration_ms);
                    }
                    summary.tools.entry(name).or_default().counts.add(call);
                }
                let score = &turn.score;
                let missing = score.missing.len().saturating_sub(score.attempted);
                summary.counts.judged += missing as u64;
            }
        }
        if summary.turns == 0 {
            summary.cost_usd = None;
        }
        summary.turn_ms = percentiles(turn_durations);
        for (name, durations) in call_durations {
            if let Some(tool) = summary.tools.get_mut(&name) {
                tool.call_ms = percentiles(durations);
            }
        }
        summary
    }
}

/// Returns the median and the 95th percentile by the nearest rank.
fn percentiles(mut values: Vec<u64>) -> Option<(u64, u64)> {
    values.sort_unstable();
    let percentile = |percent: usize| {
        let rank = (values.len() * percent).div_ceil(100);
        values.get(rank.saturating_sub(1)).copied()
    };
    percentile(50).zip(percentile(95))
}

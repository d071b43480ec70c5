//! What runs add up to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};

use super::{RunResult, is_zero};
use crate::scoring::{CallEnd, JudgedCall, Worth};

/// How many calls ended how and were worth what.
///
/// A call has one end and one worth, which are counted apart: `successful`, `failed`, `not_executed` and
/// [`invalid`](Self::invalid) are all calls by their end; the other counts are by their worth, and a call that
/// succeeded may well be unnecessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// All that were made.
    pub calls: u64,
    /// The tool did its work.
    pub successful: u64,
    /// The tool or its server failed.
    pub failed: u64,
    /// Tools that do not exist, arguments that do not fit the tool, and arguments that fit and were made up: where
    /// the call was expected with others. The last of these ran, and are in `successful` or `failed` too.
    pub hallucinated: u64,
    /// Denied, skipped or over a limit.
    pub not_executed: u64,
    /// Nobody expected them, or their result was there already.
    pub unnecessary: u64,
    /// Of tools that must not be called.
    pub forbidden: u64,
    /// The right tool with the right arguments at the right place. Where it did not run, it is in `not_executed` too.
    pub right: u64,
    /// In a replay: expected calls of which it cannot be told whether their arguments are right, since a secret was struck
    /// out of them. In neither `right` nor `judged`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Calls about which something was expected, made or not: what `right` is a share of. Of a tool, those that
    /// were made: a call that is missing is nobody's.
    pub judged: u64,
}

impl Counts {
    fn take(&mut self, call: &JudgedCall) {
        self.calls += 1;
        match call.end {
            CallEnd::Successful => self.successful += 1,
            CallEnd::Failed => self.failed += 1,
            CallEnd::NotExecuted => self.not_executed += 1,
            CallEnd::Hallucinated => {}
        }
        let is_made_up = call.end == CallEnd::Hallucinated || call.worth == Worth::WrongInput;
        self.hallucinated += u64::from(is_made_up);
        self.unnecessary += u64::from(call.worth == Worth::Unnecessary);
        self.forbidden += u64::from(call.worth == Worth::Forbidden);
        self.right += u64::from(call.worth == Worth::Right);
        self.unknown += u64::from(call.worth == Worth::Unknown);
        self.judged += u64::from(!matches!(call.worth, Worth::Unknown | Worth::Unjudged));
    }

    /// Calls that were turned away before they ran, since there is no such tool or its arguments do not fit: the
    /// hallucinated ones without those that ran.
    pub fn invalid(&self) -> u64 {
        // Of a report that somebody else wrote, they may be anything.
        let ended = self.successful.saturating_add(self.failed);
        let ended = ended.saturating_add(self.not_executed);
        self.calls.saturating_sub(ended)
    }

    /// The share of calls that were right: the right tool, the right arguments, the right order. A call that
    /// is missing counts as one that is not, also where its turn was never reached. One that was made with other
    /// arguments, with such as the tool refuses, or at another place counts once. A second attempt counts by itself.
    /// `None` if nothing was expected and nothing done.
    pub fn accuracy(&self) -> Option<f64> {
        share(self.right, self.judged)
    }

    /// The share of calls with which the tool did its work.
    pub fn successful_share(&self) -> Option<f64> {
        share(self.successful, self.calls)
    }

    /// The share of calls in which the tool or its server failed.
    pub fn failed_share(&self) -> Option<f64> {
        share(self.failed, self.calls)
    }

    /// The share of calls that were made up.
    pub fn hallucinated_share(&self) -> Option<f64> {
        share(self.hallucinated, self.calls)
    }

    /// The share of calls that were not needed.
    pub fn unnecessary_share(&self) -> Option<f64> {
        share(self.unnecessary, self.calls)
    }
}

/// `part` of `whole` as a number from 0 to 1; `None` of nothing.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share, of counts far below 2^52"
)]
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// What a model's runs add up to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSummary {
    /// The model.
    pub model: ModelId,
    /// Its runs.
    pub runs: u64,
    /// Those that did all that was expected.
    pub passed: u64,
    /// Of these, in a replay: those with a call of which it is not known whether it was right. Without the secrets that
    /// were struck out nobody can tell whether they passed then.
    #[serde(skip_serializing_if = "is_zero")]
    pub passed_unknown: u64,
    /// Its calls.
    pub counts: Counts,
    /// Its turns, as far as they were reached and ended.
    pub turns: u64,
    /// Milliseconds of a turn, from the question to the end of the answer, its tools included: half took no longer
    /// than the first, 19 of 20 no longer than the second (nearest rank). `None` without a turn. What runs that were
    /// made at once cost each other is in it.
    pub turn_ms: Option<(u64, u64)>,
    /// Tokens of all turns, as far as providers told them: see `unmetered_turns`.
    pub usage: Usage,
    /// Turns of whose tokens some or all are not in `usage`, because the provider did not tell.
    pub unmetered_turns: u64,
    /// US dollars, if the cost of every turn is known.
    pub cost_usd: Option<f64>,
    /// By kind of scenario: runs, and those that passed.
    pub kinds: BTreeMap<String, (u64, u64)>,
    /// By tool, as `server/tool`: its calls, and their time.
    pub tools: BTreeMap<String, ToolSummary>,
}

/// What the calls of a tool add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ToolSummary {
    /// Its calls.
    pub counts: Counts,
    /// Milliseconds of the calls that ran, as [`ModelSummary::turn_ms`].
    pub call_ms: Option<(u64, u64)>,
}

impl ModelSummary {
    /// What these runs add up to, all of which are to be of this model.
    pub(crate) fn of<'a>(model: &ModelId, runs: impl Iterator<Item = &'a RunResult>) -> Self {
        let mut summary = Self {
            model: model.clone(),
            runs: 0,
            passed: 0,
            passed_unknown: 0,
            counts: Counts::default(),
            turns: 0,
            turn_ms: None,
            usage: Usage::default(),
            unmetered_turns: 0,
            cost_usd: Some(0.0),
            kinds: BTreeMap::new(),
            tools: BTreeMap::new(),
        };
        let mut turn_times = Vec::new();
        let mut call_times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for run in runs {
            summary.runs += 1;
            summary.passed += u64::from(run.passed);
            let mut calls = run.turns.iter().flat_map(|turn| &turn.judgement.calls);
            let has_unknown = calls.any(|call| call.worth == Worth::Unknown);
            summary.passed_unknown += u64::from(run.passed && has_unknown);
            summary.counts.judged += run.not_reached.len() as u64;
            let kind = summary.kinds.entry(run.kind.clone()).or_default();
            kind.0 += 1;
            kind.1 += u64::from(run.passed);
            if run.broken_off.is_some() {
                // What it had used by then is told by nobody.
                summary.cost_usd = None;
            }
            for turn in &run.turns {
                summary.turns += 1;
                turn_times.push(turn.duration_ms);
                summary.usage.add(turn.usage);
                summary.unmetered_turns += u64::from(turn.unmetered > 0);
                let both = summary.cost_usd.zip(turn.cost_usd);
                summary.cost_usd = both.map(|(sum, cost)| sum + cost);
                for call in &turn.judgement.calls {
                    summary.counts.take(call);
                    let name = match &call.server {
                        Some(server) => format!("{server}/{}", call.tool),
                        None => call.tool.clone(),
                    };
                    if call.end != CallEnd::Hallucinated && call.end != CallEnd::NotExecuted {
                        let times = call_times.entry(name.clone()).or_default();
                        times.push(call.duration_ms);
                    }
                    summary.tools.entry(name).or_default().counts.take(call);
                }
                let judgement = &turn.judgement;
                let missing = judgement.missing.len().saturating_sub(judgement.attempted);
                summary.counts.judged += missing as u64;
            }
        }
        if summary.turns == 0 {
            summary.cost_usd = None;
        }
        summary.turn_ms = times(turn_times);
        for (name, list) in call_times {
            if let Some(tool) = summary.tools.get_mut(&name) {
                tool.call_ms = times(list);
            }
        }
        summary
    }
}

/// The median and what 95 of 100 do not exceed (by the nearest rank).
fn times(mut list: Vec<u64>) -> Option<(u64, u64)> {
    list.sort_unstable();
    let at = |hundredths: usize| {
        let rank = (list.len() * hundredths).div_ceil(100);
        list.get(rank.saturating_sub(1)).copied()
    };
    at(50).zip(at(95))
}

//! What came out: every run, and what they add up to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};
use switchboard_orchestration::Outcome;

use crate::{
    judge::{CallEnd, JudgedCall, Judgement, Worth},
    suite::Thresholds,
};

/// The form of a report that this program writes.
pub const VERSION: u32 = 1;

/// Everything that came out of a suite, as it is written to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// The suite's title.
    pub title: String,
    /// Who made it, such as `switchboard 0.1.0`.
    pub program: String,
    /// When it was made (RFC 3339, UTC).
    pub made: String,
    /// What was to be reached.
    pub thresholds: Thresholds,
    /// Every run, in the order of the suite.
    pub runs: Vec<RunResult>,
}

/// One conversation with one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// Its kind.
    pub kind: String,
    /// The model that was asked.
    pub model: ModelId,
    /// From 1.
    pub repetition: u32,
    /// Everything that was expected was done, and nothing forbidden.
    pub passed: bool,
    /// Why it could not be run at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The turns that were run.
    pub turns: Vec<TurnResult>,
    /// Calls that were expected in the turns that were not, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<String>,
}

/// One question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnResult {
    /// What was said.
    pub said: String,
    /// The answer as text.
    pub answer: String,
    /// How the run ended.
    pub outcome: Outcome,
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is wrong, one sentence each; the turn is as expected if there is none.
    pub faults: Vec<String>,
    /// The calls.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Calls of the model.
    pub steps: u32,
    /// Tokens.
    pub usage: Usage,
    /// What it cost in US dollars, if the prices are known.
    pub cost_usd: Option<f64>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// How many calls ended how and were worth what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// All that were made.
    pub calls: u64,
    /// The tool did its work.
    pub successful: u64,
    /// The tool or its server failed.
    pub failed: u64,
    /// Tools or arguments that do not exist, and arguments that were made up.
    pub hallucinated: u64,
    /// Denied, skipped or over a limit.
    pub not_executed: u64,
    /// Nobody expected them, or their result was there already.
    pub unnecessary: u64,
    /// Of tools that must not be called.
    pub forbidden: u64,
    /// The right tool with the right arguments at the right place.
    pub right: u64,
    /// Calls about which something was expected, made or not: what `right` is a share of.
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
        self.judged += u64::from(call.worth != Worth::Unjudged);
    }

    /// The share of calls that were right: the right tool, the right arguments, the right order. A call that
    /// is missing counts as one that is not. `None` if nothing was expected and nothing done.
    pub fn accuracy(&self) -> Option<f64> {
        share(self.right, self.judged)
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
    /// Its calls.
    pub counts: Counts,
    /// Milliseconds of a turn: half took no longer than the first, 19 of 20 no longer than the second.
    pub turn_ms: Option<(u64, u64)>,
    /// Tokens of all turns.
    pub usage: Usage,
    /// US dollars, if the price of every turn is known.
    pub cost_usd: Option<f64>,
    /// By kind of scenario: runs, and those that passed.
    pub kinds: BTreeMap<String, (u64, u64)>,
    /// By tool, as `server/tool`: its calls, and their time in milliseconds as [`turn_ms`](Self::turn_ms).
    pub tools: BTreeMap<String, ToolSummary>,
}

/// What the calls of a tool add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ToolSummary {
    /// Its calls.
    pub counts: Counts,
    /// Their time in milliseconds.
    pub call_ms: Option<(u64, u64)>,
}

impl Report {
    /// What it adds up to, by model, in the order in which they were asked.
    pub fn summary(&self) -> Vec<ModelSummary> {
        let mut models: Vec<&ModelId> = Vec::new();
        for run in &self.runs {
            if !models.contains(&&run.model) {
                models.push(&run.model);
            }
        }
        models
            .into_iter()
            .map(|model| self.of_model(model))
            .collect()
    }

    fn of_model(&self, model: &ModelId) -> ModelSummary {
        let mut summary = ModelSummary {
            model: model.clone(),
            runs: 0,
            passed: 0,
            counts: Counts::default(),
            turn_ms: None,
            usage: Usage::default(),
            cost_usd: Some(0.0),
            kinds: BTreeMap::new(),
            tools: BTreeMap::new(),
        };
        let mut turn_times = Vec::new();
        let mut call_times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| run.model == *model) {
            summary.runs += 1;
            summary.passed += u64::from(run.passed);
            summary.counts.judged += run.not_reached.len() as u64;
            let kind = summary.kinds.entry(run.kind.clone()).or_default();
            kind.0 += 1;
            kind.1 += u64::from(run.passed);
            for turn in &run.turns {
                turn_times.push(turn.duration_ms);
                summary.usage.add(turn.usage);
                summary.cost_usd = summary
                    .cost_usd
                    .zip(turn.cost_usd)
                    .map(|(sum, cost)| sum + cost);
                for call in &turn.judgement.calls {
                    summary.counts.take(call);
                    let name = match &call.server {
                        Some(server) => format!("{server}/{}", call.tool),
                        None => call.tool.clone(),
                    };
                    summary
                        .tools
                        .entry(name.clone())
                        .or_default()
                        .counts
                        .take(call);
                    if call.end != CallEnd::Hallucinated && call.end != CallEnd::NotExecuted {
                        call_times.entry(name).or_default().push(call.duration_ms);
                    }
                }
                let missing = turn
                    .judgement
                    .missing
                    .len()
                    .saturating_sub(turn.judgement.attempted);
                summary.counts.judged += missing as u64;
            }
        }
        summary.turn_ms = times(turn_times);
        for (name, list) in call_times {
            if let Some(tool) = summary.tools.get_mut(&name) {
                tool.call_ms = times(list);
            }
        }
        summary
    }

    /// What was to be reached and was not, one sentence each: for every model, each threshold; and whatever could
    /// not be run at all.
    pub fn missed(&self) -> Vec<String> {
        let mut missed: Vec<String> = Vec::new();
        for run in &self.runs {
            if let Some(error) = &run.error {
                missed.push(format!(
                    "{}: `{}` could not be run: {error}",
                    run.model, run.scenario
                ));
            }
        }
        let Thresholds {
            passed,
            accuracy,
            hallucinated,
            unnecessary,
        } = self.thresholds;
        for it in self.summary() {
            let least = [
                ("passed", passed, share(it.passed, it.runs)),
                ("accuracy", accuracy, it.counts.accuracy()),
            ];
            for (name, least, found) in least {
                if let (Some(least), Some(found)) = (least, found)
                    && found < least
                {
                    missed.push(format!(
                        "{}: {name} is {found:.3}, at least {least} is asked for",
                        it.model
                    ));
                }
            }
            let most = [
                ("hallucinated", hallucinated, it.counts.hallucinated_share()),
                ("unnecessary", unnecessary, it.counts.unnecessary_share()),
            ];
            for (name, most, found) in most {
                if let (Some(most), Some(found)) = (most, found)
                    && found > most
                {
                    missed.push(format!(
                        "{}: {name} is {found:.3}, at most {most} is allowed",
                        it.model
                    ));
                }
            }
        }
        missed
    }
}

/// The median and what 95 of 100 do not exceed (by the nearest rank).
fn times(mut list: Vec<u64>) -> Option<(u64, u64)> {
    list.sort_unstable();
    let at = |hundredths: usize| {
        list.get((list.len() * hundredths).div_ceil(100).saturating_sub(1))
            .copied()
    };
    at(50).zip(at(95))
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

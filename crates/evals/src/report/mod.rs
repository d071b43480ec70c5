//! What came out: every run, and what they add up to.
//!
//! The figures in the words of those who ask for them:
//!
//! | asked for | where it is |
//! |---|---|
//! | calls, successful, failed | [`Counts::calls`], [`successful`](Counts::successful), [`failed`](Counts::failed) |
//! | hallucinated: invalid or invented arguments | [`Counts::hallucinated`]; [`Counts::invalid`] are those that never ran |
//! | unnecessary | [`Counts::unnecessary`]; what must not be called is counted apart ([`Counts::forbidden`]) |
//! | accuracy: right tool, right arguments, right order | [`Counts::accuracy`] |
//! | latency | [`ModelSummary::turn_ms`], [`ToolSummary::call_ms`] |
//! | tokens, cost | [`ModelSummary::usage`], [`ModelSummary::cost_usd`] |
//! | success rate | [`ModelSummary::passed`] of [`ModelSummary::runs`] |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};
use switchboard_orchestration::Outcome;

use crate::{
    scoring::Judgement,
    suite::{Suite, Thresholds},
};
use transcript::Transcript;

pub mod comparison;
pub mod metric;
pub mod page;
mod summary;
pub mod transcript;
mod transcript_builder;

pub use summary::{Counts, ModelSummary, ToolSummary, share};
pub(crate) use transcript_builder::Scribe;

/// The form of a report that this program writes. It grows when an older program would misread a newer report; a
/// field more is no reason.
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
    /// Runs that were planned and not made, because somebody stopped the evaluation. 0 if it is finished.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Every run, in the order of the suite.
    pub runs: Vec<RunResult>,
}

/// What was run of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// What came out, in the order of the suite.
    pub runs: Vec<RunResult>,
    /// How many more were planned and not made, because it was stopped.
    pub not_run: u64,
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
    /// The recipe that was followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// From 1.
    pub repetition: u32,
    /// Everything that was expected was done, and nothing forbidden.
    pub passed: bool,
    /// Why it could not be run, or not to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The turns that were run.
    pub turns: Vec<TurnResult>,
    /// The turn in which it stopped without an end, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_off: Option<BrokenOff>,
    /// Calls that were expected in the turns that were not run, or that did not end, for people.
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
    /// Tokens, as far as the provider told them.
    pub usage: Usage,
    /// Calls of the model whose tokens are not in `usage`, or not all of them: the provider did not tell, or the
    /// answer broke off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmetered: u32,
    /// What it cost in US dollars; `None` if a price is not known, or not all tokens of a model that is not free.
    pub cost_usd: Option<f64>,
    /// How long it took from the question to the end of the answer, in milliseconds.
    pub duration_ms: u64,
    /// Its whole course.
    #[serde(default, skip_serializing_if = "Transcript::is_empty")]
    pub transcript: Transcript,
}

/// A turn that has no end: it waits for somebody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BrokenOff {
    /// What was said.
    pub said: String,
    /// Its course until there.
    #[serde(default)]
    pub transcript: Transcript,
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A newer program wrote it.
    #[error(
        "the report is of version {found}, and this program reads up to version {VERSION}: take a newer switchboard"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
    /// It is no report.
    #[error("this is no report of an evaluation: {reason}")]
    Shape {
        /// What is wrong, with its place.
        reason: String,
    },
}

impl Report {
    /// What came out of a suite. `program` is who made it, `made` when (RFC 3339, UTC).
    pub fn new(
        suite: &Suite,
        program: impl Into<String>,
        made: impl Into<String>,
        ran: Ran,
    ) -> Self {
        Self {
            version: VERSION,
            title: suite.title.clone(),
            program: program.into(),
            made: made.into(),
            thresholds: suite.thresholds,
            not_run: ran.not_run,
            runs: ran.runs,
        }
    }

    /// Reads a report from its JSON. Fields that are not known are left out.
    ///
    /// ```
    /// use switchboard_evals::report::{Report, ReportError};
    ///
    /// let newer = Report::read(r#"{"version": 1000, "of": "what is to come"}"#);
    /// assert!(matches!(newer, Err(ReportError::Newer { found: 1000 })));
    /// ```
    pub fn read(text: &str) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        let shape = |fault: serde_json::Error| ReportError::Shape {
            reason: fault.to_string(),
        };
        // The version first: the rest may have any form.
        let Head { version: found } = serde_json::from_str(text).map_err(shape)?;
        if found > u64::from(VERSION) {
            return Err(ReportError::Newer { found });
        }
        serde_json::from_str(text).map_err(shape)
    }

    /// Its JSON, as a file of its own: indented, with a new line at its end.
    pub fn to_json(&self) -> String {
        // Only maps with keys that are no texts and failing writers are errors, and there are none of these.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Whether somebody stopped the evaluation before all runs were made.
    pub fn is_unfinished(&self) -> bool {
        self.not_run > 0
    }

    /// The models, in the order in which they were asked.
    pub fn models(&self) -> Vec<&ModelId> {
        let mut models: Vec<&ModelId> = Vec::new();
        for run in &self.runs {
            if !models.contains(&&run.model) {
                models.push(&run.model);
            }
        }
        models
    }

    /// What it adds up to, by model, in the order in which they were asked.
    pub fn summary(&self) -> Vec<ModelSummary> {
        let of = |model| ModelSummary::of(model, self.runs.iter().filter(|it| it.model == *model));
        self.models().into_iter().map(of).collect()
    }

    /// What was to be reached and was not, one sentence each: runs that were not made or could not be, and for
    /// every model each threshold.
    ///
    /// A threshold is not held by default:
    /// - `accuracy` is missed if no call was expected and none made: a suite of which this is right asks for `passed`.
    /// - `hallucinated` and `unnecessary` are missed if no call was made though some were expected. Where none was
    ///   expected and none made, as in a suite in which tools are of no use, they are held.
    pub fn missed(&self) -> Vec<String> {
        let mut missed: Vec<String> = Vec::new();
        if self.runs.is_empty() {
            missed.push("no run was made".to_owned());
        }
        if self.is_unfinished() {
            missed.push(format!(
                "the evaluation was stopped: {} of {} runs were not made",
                self.not_run,
                self.not_run.saturating_add(self.runs.len() as u64),
            ));
        }
        missed.extend(self.not_runnable());
        for it in self.summary() {
            self.missed_by(&it, &mut missed);
        }
        missed
    }

    /// Runs with an error, those of one model with the same one together.
    fn not_runnable(&self) -> Vec<String> {
        let mut order = Vec::new();
        let mut found: BTreeMap<(String, &str), (&str, usize)> = BTreeMap::new();
        for run in &self.runs {
            let Some(error) = run.error.as_deref() else {
                continue;
            };
            let key = (run.model.to_string(), error);
            let entry = found.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                (run.scenario.as_str(), 0)
            });
            entry.1 += 1;
        }
        let told = order.into_iter().filter_map(|key| {
            let (first, count) = *found.get(&key)?;
            let (model, error) = key;
            let more = match count {
                1 => String::new(),
                many => format!(" and {} more", many - 1),
            };
            Some(format!(
                "{model}: `{first}`{more} could not be run: {error}"
            ))
        });
        told.collect()
    }

    fn missed_by(&self, it: &ModelSummary, missed: &mut Vec<String>) {
        let Thresholds {
            passed,
            accuracy,
            hallucinated,
            unnecessary,
        } = self.thresholds;
        let model = &it.model;
        let least = [
            ("passed", passed, share(it.passed, it.runs)),
            ("accuracy", accuracy, it.counts.accuracy()),
        ];
        for (name, least, found) in least {
            match (least, found) {
                (Some(least), Some(found)) if found < least => missed.push(format!(
                    "{model}: {name} is {found:.3}, at least {least} is asked for"
                )),
                (Some(least), None) => {
                    let why = match it.counts.unknown {
                        0 => "no call was expected and none made",
                        _ => {
                            "secrets were struck out of all calls that were expected when they were recorded"
                        }
                    };
                    missed.push(format!(
                        "{model}: {name} is not known, since {why}; at least {least} is asked for"
                    ));
                }
                _ => {}
            }
        }
        let most = [
            ("hallucinated", hallucinated, it.counts.hallucinated_share()),
            ("unnecessary", unnecessary, it.counts.unnecessary_share()),
        ];
        for (name, most, found) in most {
            match (most, found) {
                (Some(most), Some(found)) if found > most => missed.push(format!(
                    "{model}: {name} is {found:.3}, at most {most} is allowed"
                )),
                (Some(most), None) if it.counts.judged > 0 => missed.push(format!(
                    "{model}: {name} is not known, since none of the {} calls that were expected was made; at most {most} is allowed",
                    it.counts.judged
                )),
                _ => {}
            }
        }
    }
}

/// Whether a number need not be written.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

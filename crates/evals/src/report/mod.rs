//! The results of a suite: every run, and summaries by model.
//!
//! | question | source |
//! |---|---|
//! | calls, successful, failed | [`CallCounts`] |
//! | hallucinated: invalid or invented arguments | [`CallCounts::hallucinated`] |
//! | unnecessary and forbidden calls | [`CallCounts::unnecessary`], [`CallCounts::forbidden`] |
//! | accuracy: right tool, arguments and order | [`CallCounts::accuracy`] |
//! | made-up values in answers | [`TurnResult::made_up_values`] |
//! | duration | [`ModelSummary::turn_ms`], [`ToolSummary::call_ms`] |
//! | tokens, cost | [`ModelSummary::usage`], [`ModelSummary::cost_usd`] |
//! | success rate | [`ModelSummary::passed`] of [`ModelSummary::runs`] |

pub mod comparison;
pub mod metric;
pub mod page;
mod summary;
pub mod transcript;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use switchboard_domain::{ModelId, Usage};
use switchboard_orchestration::Outcome;

use crate::{
    scoring::TurnScore,
    suite::{Suite, Thresholds},
};
use metric::Metric;
use transcript::Transcript;

pub use summary::{CallCounts, ModelSummary, ToolSummary, compute_share};
pub(crate) use transcript::TranscriptBuilder;

/// Version of the report format that this program writes and reads. A change that only adds fields
/// keeps this version.
pub const VERSION: u32 = 1;

/// Value of the JSON field `format`, which marks a file as a report.
const FORMAT: &str = "switchboard-evaluation";

/// The results of a suite's finished runs, from which [`Report::new`] creates a report.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteRuns {
    /// Results of the finished runs, ordered by model, then by scenario as in the suite, then by
    /// repetition.
    pub runs: Vec<RunResult>,
    /// Number of planned runs that were not made, because the evaluation was stopped.
    pub not_run: u64,
}

/// The report of an evaluation: the results of a suite, as stored in a JSON file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Identifier of the file format, always `switchboard-evaluation`.
    pub format: String,
    /// Version of the file format. This program writes [`VERSION`].
    pub version: u32,
    /// Title of the evaluated suite.
    pub title: String,
    /// Name and version of the program that created the report, such as `switchboard 0.1.0`.
    pub program: String,
    /// Time at which the report was created (RFC 3339, UTC).
    pub created_at: String,
    /// Thresholds of the suite or the command line that the results must meet.
    pub thresholds: Thresholds,
    /// Whether the models had no tools, see [`Suite::remove_tools`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub no_tools: bool,
    /// Number of planned runs that were not made, because the evaluation was stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Results of the finished runs, ordered by model, then by scenario as in the suite, then by
    /// repetition.
    pub runs: Vec<RunResult>,
}

/// The result of one run: a conversation of one scenario with one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Name of the scenario on which the conversation was based.
    pub scenario: String,
    /// Kind of situation that the scenario tests. Reports group results by kind.
    pub kind: String,
    /// The model whose answers were evaluated in this run.
    pub model: ModelId,
    /// Name of the recipe that configured the agent. `None` if no recipe was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// Number of this repetition of the scenario, starting at 1.
    pub repetition: u32,
    /// Whether the model met all expectations of the scenario in this run.
    pub passed: bool,
    /// Error that the model did not cause and that prevented or stopped the run, such as a network
    /// failure. `None` if there was no such error, even if the run failed for another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Results of the turns that ended, including failed turns, in the order of the conversation.
    pub turns: Vec<TurnResult>,
    /// Turn that stopped because a tool call needs an approval. `None` if the run did not stop for
    /// an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_turn: Option<UnfinishedTurn>,
    /// Required calls of the turns that the run did not reach or did not finish, each as text.
    /// These turns have no result in `turns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<String>,
}

impl RunResult {
    /// Returns the number of made-up values in all answers. `None` if it is unknown for a turn.
    pub(crate) fn count_made_up_values(&self) -> Option<u64> {
        let turns = self.turns.iter();
        turns
            .map(|turn| Some(turn.made_up_values.as_ref()?.len() as u64))
            .sum()
    }
}

/// The result of one turn: a user message and the answer of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnResult {
    /// Text of the user message that began the turn.
    pub message: String,
    /// Text of the model's final answer.
    pub answer: String,
    /// How the agent's run for this turn ended, such as completed or failed.
    pub outcome: Outcome,
    /// Error of an agent run that did not complete. `None` if the agent run completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// One sentence for each expectation of the turn that was not met.
    pub faults: Vec<String>,
    /// Values in the answer that are neither in the conversation, including system instructions,
    /// nor in a tool result. A value is an e-mail address, or a word with at least two digits, such
    /// as a number, a date or an identifier. Each value is listed once, and at most 100 are listed.
    /// `None` in the report of an earlier program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_up_values: Option<Vec<String>>,
    /// Tool calls of the turn with their verdicts. In JSON, the fields of the score are fields of
    /// the turn itself.
    #[serde(flatten)]
    pub score: TurnScore,
    /// Number of model calls in this turn.
    pub steps: u32,
    /// Tokens that the provider reported for the responses of this turn.
    pub usage: Usage,
    /// Number of responses in this turn for which the provider did not report all token counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmetered: u32,
    /// Cost of the turn in US dollars. `None` if a price or token count is unknown.
    pub cost_usd: Option<f64>,
    /// Duration from the user message to the end of the answer, in milliseconds.
    pub duration_ms: u64,
    /// Events of the turn in their order, for display in the report.
    #[serde(default, skip_serializing_if = "Transcript::is_empty")]
    pub transcript: Transcript,
}

/// A turn that stopped because a tool call needs an approval, which nobody can give during an
/// evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnfinishedTurn {
    /// Text of the user message that began the stopped turn.
    pub message: String,
    /// Events of the turn until the run stopped, for display in the report.
    #[serde(default)]
    pub transcript: Transcript,
}

/// An error while reading a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A newer program wrote the report in a format version that this program cannot read.
    #[error(
        "the report has version {found}, but this program reads version {VERSION}: update the \
         program"
    )]
    UnknownVersion {
        /// Format version that the report file contains.
        found: u64,
    },
    /// The text is not JSON, its `format` is not that of a report, or its fields are not those of a
    /// report.
    #[error("the file is not an evaluation report: {reason}")]
    Invalid {
        /// Description of the problem. For invalid JSON or an invalid field, it contains the line
        /// and column.
        reason: String,
    },
}

impl Report {
    /// Creates a report from results. `created_at` is its creation time (RFC 3339, UTC).
    pub fn new(
        suite: &Suite,
        program: impl Into<String>,
        created_at: impl Into<String>,
        runs: SuiteRuns,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            title: suite.title.clone(),
            program: program.into(),
            created_at: created_at.into(),
            thresholds: suite.thresholds,
            no_tools: suite.no_tools,
            not_run: runs.not_run,
            runs: runs.runs,
        }
    }

    /// Parses the JSON of a report. Unknown fields are ignored.
    ///
    /// ```
    /// use switchboard_evals::report::{Report, ReportError};
    ///
    /// let newer = r#"{"format": "switchboard-evaluation", "version": 1000}"#;
    /// let newer = Report::parse_report(newer);
    /// assert!(matches!(newer, Err(ReportError::UnknownVersion { found: 1000 })));
    /// ```
    pub fn parse_report(text: &str) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        struct ReportHeader {
            format: Option<String>,
            version: u64,
        }
        let invalid = |error: serde_json::Error| ReportError::Invalid {
            reason: error.to_string(),
        };
        let header: ReportHeader = serde_json::from_str(text).map_err(invalid)?;
        if header.format.as_deref() != Some(FORMAT) {
            let reason = format!(
                "`format` must be `{FORMAT}` (commit f008d49 is the last one that reads reports of \
                 the earlier format)"
            );
            return Err(ReportError::Invalid { reason });
        }
        if header.version != u64::from(VERSION) {
            let found = header.version;
            return Err(ReportError::UnknownVersion { found });
        }
        serde_json::from_str(text).map_err(invalid)
    }

    /// Returns whether the evaluation was stopped before all planned runs were made.
    pub fn is_unfinished(&self) -> bool {
        self.not_run > 0
    }

    /// Returns the ids of the models in the report, in the order of their first runs.
    pub fn model_ids(&self) -> Vec<&ModelId> {
        let mut models: Vec<&ModelId> = Vec::new();
        for run in &self.runs {
            if !models.contains(&&run.model) {
                models.push(&run.model);
            }
        }
        models
    }

    /// Returns a summary for each model, in the order of the models' first runs.
    pub fn summarize_models(&self) -> Vec<ModelSummary> {
        let of = |model| {
            ModelSummary::from_runs(model, self.runs.iter().filter(|it| it.model == *model))
        };
        self.model_ids().into_iter().map(of).collect()
    }

    /// Returns one sentence for each unmet requirement: planned runs that were not made, runs with
    /// an error that the model did not cause, and the missed thresholds of each model.
    ///
    /// An unknown value of `passed` or `accuracy` misses its threshold. `accuracy` is unknown if no
    /// call was judged, for example because no call was expected and none was made; such a suite
    /// needs the threshold `passed`. `hallucinated` and `unnecessary` are unknown if no call was
    /// made. They then miss their thresholds only if calls were expected.
    pub fn list_unmet_requirements(&self) -> Vec<String> {
        let mut missed: Vec<String> = Vec::new();
        if self.runs.is_empty() {
            missed.push("no runs were executed".to_owned());
        }
        if self.is_unfinished() {
            missed.push(format!(
                "the evaluation was stopped: {} of {} runs were not executed",
                self.not_run,
                self.not_run.saturating_add(self.runs.len() as u64),
            ));
        }
        missed.extend(self.describe_failed_runs());
        for it in self.summarize_models() {
            self.add_missed_thresholds(&it, &mut missed);
        }
        missed
    }

    /// Returns one sentence for each pair of model and error message. It names the first scenario
    /// that failed with this error, and the number of further runs.
    fn describe_failed_runs(&self) -> Vec<String> {
        // Maps model and error message to the first scenario with this error and the number of runs
        // with this error.
        let mut failed: IndexMap<(String, &str), (&str, usize)> = IndexMap::new();
        for run in &self.runs {
            if let Some(error) = &run.error {
                let group = failed.entry((run.model.to_string(), error.as_str()));
                group.or_insert((&run.scenario, 0)).1 += 1;
            }
        }
        let sentences = failed.into_iter().map(|((model, error), (first, count))| {
            let more = match count {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            format!("{model}: `{first}`{more} failed: {error}")
        });
        sentences.collect()
    }

    fn add_missed_thresholds(&self, summary: &ModelSummary, missed: &mut Vec<String>) {
        let (model, counts, limits) = (&summary.model, &summary.counts, &self.thresholds);
        let minimum = [
            (Metric::Passed, "passed", limits.passed),
            (Metric::Accuracy, "accuracy", limits.accuracy),
        ];
        for (metric, name, limit) in minimum {
            let Some(limit) = limit else { continue };
            let requirement = format!("but must be at least {limit}");
            match metric.value_in_summary(summary) {
                Some(value) if value >= limit => {}
                Some(value) => missed.push(format!("{model}: {name} is {value:.3}, {requirement}")),
                None => {
                    let cause = match (counts.unknown, counts.calls) {
                        (0, 0) => "no call was expected, and none was made",
                        (0, _) => "none of the calls was judged",
                        _ => "the arguments of all expected calls were redacted in the recording",
                    };
                    missed.push(format!(
                        "{model}: {name} is unknown, {requirement}: {cause}"
                    ));
                }
            }
        }
        let maximum = [
            (Metric::Hallucinated, "hallucinated", limits.hallucinated),
            (Metric::Unnecessary, "unnecessary", limits.unnecessary),
        ];
        for (metric, name, limit) in maximum {
            let Some(limit) = limit else { continue };
            let requirement = format!("but must be at most {limit}");
            match metric.value_in_summary(summary) {
                Some(value) if value > limit => {
                    missed.push(format!("{model}: {name} is {value:.3}, {requirement}"));
                }
                None if counts.judged > 0 => missed.push(format!(
                    "{model}: {name} is unknown, {requirement}: none of the {} expected calls was \
                     made",
                    counts.judged
                )),
                _ => {}
            }
        }
    }
}

/// Returns whether a number is zero, so that JSON omits its field.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

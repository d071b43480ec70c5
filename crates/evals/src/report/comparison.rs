//! Compares a report with an earlier report.

use std::cmp::Ordering;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use switchboard_domain::ModelId;

use super::{
    Report,
    metric::{Metric, UNKNOWN},
    summary::ModelSummary,
};

/// The differences between the results of two reports.
///
/// Scenarios are matched by name. All repetitions of a scenario count together: 2 of 3 passed runs
/// are better than 1 of 3. With few repetitions, a difference may be random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportComparison {
    /// Comparisons of the models that occur in both reports, in the order of the later report.
    pub models: Vec<ModelComparison>,
    /// Models that occur only in the earlier report, so that they cannot be compared.
    pub only_earlier: Vec<ModelId>,
    /// Models that occur only in the later report, so that they cannot be compared.
    pub only_later: Vec<ModelId>,
}

/// The results of one model in the earlier and in the later report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelComparison {
    /// The model whose results are compared.
    pub model: ModelId,
    /// Whether one report has scenarios of the model that the other report lacks. If so, the
    /// metrics cover only the common scenarios.
    pub partial: bool,
    /// The values of each metric of the model in both reports.
    pub metrics: Vec<MetricChange>,
    /// One change for each scenario of the model: first the scenarios of the later report, then
    /// those that only the earlier report has.
    pub scenarios: Vec<ScenarioChange>,
}

/// The values of one metric of a model in the earlier and in the later report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MetricChange {
    /// The metric whose values are compared.
    pub metric: Metric,
    /// Value of the metric in the earlier report. `None` if it is unknown.
    pub earlier: Option<f64>,
    /// Value of the metric in the later report. `None` if it is unknown.
    pub later: Option<f64>,
    /// Whether the metric improved. A change of the call count, the share of successful calls, a
    /// duration, tokens or cost is [`Change::Changed`], and never better or worse.
    pub change: Change,
}

/// The runs of one scenario in the earlier and in the later report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioChange {
    /// Name of the scenario whose runs are compared.
    pub scenario: String,
    /// Kind of situation that the scenario tests, such as `entity missing`.
    pub kind: String,
    /// Number of runs and of passed runs in the earlier report. `None` if only the later report has
    /// the scenario.
    pub earlier: Option<PassCount>,
    /// Number of runs and of passed runs in the later report. `None` if only the earlier report has
    /// the scenario.
    pub later: Option<PassCount>,
    /// Whether the share of passed runs became larger ([`Change::Better`]) or smaller, or whether
    /// only one report has the scenario ([`Change::New`], [`Change::Gone`]).
    pub change: Change,
}

/// Number of runs of a scenario in one report, and how many of them passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PassCount {
    /// Number of all runs of the scenario in the report.
    pub runs: u64,
    /// Number of runs of the scenario that met all expectations.
    pub passed: u64,
}

/// Kind of change from the earlier to the later report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// The later report has the better value.
    Better,
    /// The later report has the worse value.
    Worse,
    /// Both reports have the same value.
    Same,
    /// The values differ but neither is better, or the value of one report is unknown.
    Changed,
    /// The scenario is only in the later report.
    New,
    /// The scenario is only in the earlier report.
    Gone,
}

impl Change {
    /// Returns the name of the kind of change in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

impl ReportComparison {
    /// Compares two reports of the same suite, or of suites with common scenarios.
    pub fn compare_reports(earlier: &Report, later: &Report) -> Self {
        let (before, now) = (earlier.model_ids(), later.model_ids());
        let lacking = |these: &[&ModelId], others: &[&ModelId]| {
            let lacking = these.iter().filter(|it| !others.contains(it));
            lacking.map(|it| (*it).clone()).collect()
        };
        let shared = now.iter().filter(|it| before.contains(it));
        Self {
            models: shared
                .map(|model| ModelComparison::compare_model(model, earlier, later))
                .collect(),
            only_earlier: lacking(&before, &now),
            only_later: lacking(&now, &before),
        }
    }

    /// Returns whether no model has a scenario in both reports, so that nothing can be compared.
    pub fn is_empty(&self) -> bool {
        let mut models = self.models.iter();
        !models.any(ModelComparison::has_common_scenarios)
    }

    /// Returns one sentence for each result that is worse in the later report. These are scenarios
    /// with a smaller share of passed runs, smaller shares of passed runs or right calls of a
    /// model, larger shares of failed, hallucinated, unnecessary or forbidden calls, and more
    /// made-up values. Ignores all other metrics, and scenarios that only one report has.
    pub fn list_regressions(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for it in &self.models {
            let model = &it.model;
            let metrics = it.metrics.iter().filter(|it| it.change == Change::Worse);
            sentences.extend(metrics.map(|it| {
                let (before, now) = (it.format_earlier_result(), it.format_later_result());
                let name = it.metric.display_name().to_lowercase();
                format!("{model}: {name}: {before} before, {now} now")
            }));
            let scenarios = it.scenarios.iter().filter(|it| it.change == Change::Worse);
            sentences.extend(scenarios.map(|it| {
                let (before, now) = (it.format_earlier_result(), it.format_later_result());
                let scenario = &it.scenario;
                format!("{model}: `{scenario}` passed {before} before, {now} now")
            }));
        }
        sentences
    }
}

impl ModelComparison {
    /// Returns whether both reports have a scenario of this model in common.
    pub fn has_common_scenarios(&self) -> bool {
        self.scenarios
            .iter()
            .any(ScenarioChange::is_in_both_reports)
    }

    fn compare_model(model: &ModelId, earlier: &Report, later: &Report) -> Self {
        let mut scenarios: IndexMap<&str, ScenarioChange> = IndexMap::new();
        for (report, is_later) in [(later, true), (earlier, false)] {
            for run in report.runs.iter().filter(|run| run.model == *model) {
                let scenario = scenarios.entry(&run.scenario);
                let scenario = scenario.or_insert_with(|| ScenarioChange {
                    scenario: run.scenario.clone(),
                    kind: run.kind.clone(),
                    earlier: None,
                    later: None,
                    change: Change::Same,
                });
                let count = if is_later {
                    &mut scenario.later
                } else {
                    &mut scenario.earlier
                };
                let count = count.get_or_insert_default();
                count.runs += 1;
                count.passed += u64::from(run.passed);
            }
        }
        for it in scenarios.values_mut() {
            it.change = match (it.earlier, it.later) {
                // The shares are compared by cross-multiplication, which has no rounding errors.
                (Some(was), Some(is)) => {
                    match (is.passed * was.runs).cmp(&(was.passed * is.runs)) {
                        Ordering::Greater => Change::Better,
                        Ordering::Less => Change::Worse,
                        Ordering::Equal => Change::Same,
                    }
                }
                (None, _) => Change::New,
                (_, None) => Change::Gone,
            };
        }
        let summarize = |report: &Report| {
            let runs = report.runs.iter().filter(|run| {
                run.model == *model && scenarios[run.scenario.as_str()].is_in_both_reports()
            });
            ModelSummary::from_runs(model, runs)
        };
        let (was, is) = (summarize(earlier), summarize(later));
        let change = |metric: Metric| {
            let (was, is) = (metric.value_in_summary(&was), metric.value_in_summary(&is));
            MetricChange::compare_metric(metric, was, is)
        };
        Self {
            model: model.clone(),
            partial: !scenarios.values().all(ScenarioChange::is_in_both_reports),
            metrics: Metric::ALL.into_iter().map(change).collect(),
            scenarios: scenarios.into_values().collect(),
        }
    }
}

impl MetricChange {
    fn compare_metric(metric: Metric, earlier: Option<f64>, later: Option<f64>) -> Self {
        let change = match (earlier.zip(later), metric.is_larger_better()) {
            _ if earlier == later => Change::Same,
            (Some((was, is)), Some(larger)) if (is > was) == larger => Change::Better,
            (Some(_), Some(_)) => Change::Worse,
            _ => Change::Changed,
        };
        Self {
            metric,
            earlier,
            later,
            change,
        }
    }

    /// Returns the value of the metric in the earlier report as text. An unknown value is `–`.
    pub fn format_earlier_result(&self) -> String {
        self.metric.format_optional_value(self.earlier)
    }

    /// Returns the value of the metric in the later report as text. An unknown value is `–`.
    pub fn format_later_result(&self) -> String {
        self.metric.format_optional_value(self.later)
    }

    /// Returns the difference between both values with its sign, or `–` if a value is unknown.
    pub fn format_result_difference(&self) -> String {
        match self.earlier.zip(self.later) {
            Some((was, is)) => self.metric.format_difference(is - was),
            None => UNKNOWN.to_owned(),
        }
    }
}

impl ScenarioChange {
    fn is_in_both_reports(&self) -> bool {
        self.earlier.is_some() && self.later.is_some()
    }

    /// Returns the scenario's passed runs in the earlier report as text, such as `2 of 3`. Returns
    /// `–` if the earlier report has no runs of the scenario.
    pub fn format_earlier_result(&self) -> String {
        format_pass_count(self.earlier)
    }

    /// Returns the scenario's passed runs in the later report as text, such as `2 of 3`. Returns
    /// `–` if the later report has no runs of the scenario.
    pub fn format_later_result(&self) -> String {
        format_pass_count(self.later)
    }
}

fn format_pass_count(count: Option<PassCount>) -> String {
    match count {
        Some(PassCount { runs, passed }) => format!("{passed} of {runs}"),
        None => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;

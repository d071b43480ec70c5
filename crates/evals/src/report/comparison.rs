//! Comparison with an earlier report.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use switchboard_domain::ModelId;

use super::{
    Report,
    metric::{Direction, Metric},
    summary::ModelSummary,
};

/// The differences between two reports.
///
/// Scenarios are matched by name. The repetitions of a scenario count together: 2 of 3 passed runs
/// are better than 1 of 3. With few repetitions, a difference may be random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The models that occur in both reports, in the order of the later report.
    pub models: Vec<ModelComparison>,
    /// The models that occur only in the earlier report.
    pub only_earlier: Vec<ModelId>,
    /// The models that occur only in the later report.
    pub only_later: Vec<ModelId>,
}

/// The results of one model in two reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelComparison {
    /// The compared model.
    pub model: ModelId,
    /// Whether one report has additional scenarios for the model. The metrics then cover only the
    /// common scenarios.
    pub partial: bool,
    /// Each metric of the model with its values in both reports.
    pub metrics: Vec<MetricChange>,
    /// The scenarios of the later report, then the scenarios that only the earlier report has.
    pub scenarios: Vec<ScenarioChange>,
}

/// The values of one metric in two reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MetricChange {
    /// The compared metric.
    pub metric: Metric,
    /// Value of the metric in the earlier report. `None` if it is unknown.
    pub earlier: Option<f64>,
    /// Value of the metric in the later report. `None` if it is unknown.
    pub later: Option<f64>,
    /// Whether the metric improved. Time, tokens and cost are never better or worse, because they
    /// depend on more than the model.
    pub change: Change,
}

/// The runs of one scenario in two reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioChange {
    /// Name of the scenario.
    pub scenario: String,
    /// Kind of the scenario, such as `entity missing`.
    pub kind: String,
    /// Runs of the scenario in the earlier report. `None` for a new scenario.
    pub earlier: Option<PassCount>,
    /// Runs of the scenario in the later report. `None` for a removed scenario.
    pub later: Option<PassCount>,
    /// Whether the scenario passes more or less often.
    pub change: Change,
}

/// Numbers of runs and of passed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PassCount {
    /// Number of all runs of the scenario.
    pub runs: u64,
    /// Number of runs that met all expectations.
    pub passed: u64,
}

/// The kind of a difference between two reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// The later report is better.
    Better,
    /// The later report is worse.
    Worse,
    /// Both reports have the same value.
    Same,
    /// The values differ but neither is better, or one value is unknown.
    Changed,
    /// The item is only in the later report.
    New,
    /// The item is only in the earlier report.
    Gone,
}

impl Change {
    /// Returns the name of the change, as in JSON.
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

impl Comparison {
    /// Compares two reports of the same suite, or of suites with common scenarios.
    pub fn of(earlier: &Report, later: &Report) -> Self {
        let (before, now) = (earlier.models(), later.models());
        let lacking = |these: &[&ModelId], others: &[&ModelId]| {
            let lacking = these.iter().filter(|it| !others.contains(it));
            lacking.map(|it| (*it).clone()).collect()
        };
        let shared = now.iter().filter(|it| before.contains(it));
        Self {
            models: shared
                .map(|model| ModelComparison::of(model, earlier, later))
                .collect(),
            only_earlier: lacking(&before, &now),
            only_later: lacking(&now, &before),
        }
    }

    /// Returns whether the reports have no scenario of a model in common.
    pub fn is_empty(&self) -> bool {
        !self.models.iter().any(ModelComparison::has_both)
    }

    /// Returns whether the later report is worse: a scenario passes less often, or a share of
    /// passed runs, of right calls, or of failed, hallucinated, unnecessary or forbidden calls is
    /// worse. Ignores time, tokens, cost, and scenarios of only one report.
    pub fn is_worse(&self) -> bool {
        self.models.iter().any(|model| {
            let metrics = model.metrics.iter().map(|it| it.change);
            let scenarios = model.scenarios.iter().map(|it| it.change);
            metrics.chain(scenarios).any(|it| it == Change::Worse)
        })
    }

    /// Returns one sentence for each metric or scenario that is worse in the later report.
    pub fn worse(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for ModelComparison {
            model,
            metrics,
            scenarios,
            ..
        } in &self.models
        {
            for it in metrics.iter().filter(|it| it.change == Change::Worse) {
                sentences.push(format!(
                    "{model}: {}: {} before, {} now",
                    it.metric.title().to_lowercase(),
                    it.earlier_text(),
                    it.later_text()
                ));
            }
            for it in scenarios.iter().filter(|it| it.change == Change::Worse) {
                sentences.push(format!(
                    "{model}: `{}` passed {} before, {} now",
                    it.scenario,
                    it.earlier_text(),
                    it.later_text()
                ));
            }
        }
        sentences
    }
}

impl ModelComparison {
    /// Returns whether the reports have a scenario of this model in common.
    pub fn has_both(&self) -> bool {
        let mut scenarios = self.scenarios.iter();
        scenarios.any(|it| it.earlier.is_some() && it.later.is_some())
    }

    fn of(model: &ModelId, earlier: &Report, later: &Report) -> Self {
        let (before, now) = (
            collect_scenarios(model, earlier),
            collect_scenarios(model, later),
        );
        let mut changes = Vec::new();
        for (name, (kind, count)) in &now {
            let earlier = before.get(name).map(|(_, count)| *count);
            changes.push(ScenarioChange::of(name, kind, earlier, Some(*count)));
        }
        let is_gone = |name: &&str| !now.contains_key(name);
        for (name, (kind, count)) in before.iter().filter(|(name, _)| is_gone(name)) {
            changes.push(ScenarioChange::of(name, kind, Some(*count), None));
        }
        let of_both = |report: &Report| {
            let runs = report.runs.iter().filter(|run| {
                let name = run.scenario.as_str();
                run.model == *model && before.contains_key(name) && now.contains_key(name)
            });
            ModelSummary::from_runs(model, runs)
        };
        let (was, is) = (of_both(earlier), of_both(later));
        let change = |metric: Metric| MetricChange::of(metric, metric.of(&was), metric.of(&is));
        Self {
            model: model.clone(),
            partial: before.len() != now.len() || before.keys().any(is_gone),
            metrics: Metric::ALL.into_iter().map(change).collect(),
            scenarios: changes,
        }
    }
}

/// Returns the scenarios of a model with their kinds and runs, in the order of their first runs.
fn collect_scenarios<'a>(
    model: &ModelId,
    report: &'a Report,
) -> IndexMap<&'a str, (&'a str, PassCount)> {
    let mut scenarios: IndexMap<&str, (&str, PassCount)> = IndexMap::new();
    for run in report.runs.iter().filter(|run| run.model == *model) {
        let scenario = scenarios.entry(run.scenario.as_str());
        let (_, count) = scenario.or_insert((run.kind.as_str(), PassCount::default()));
        count.runs += 1;
        count.passed += u64::from(run.passed);
    }
    scenarios
}

impl MetricChange {
    fn of(metric: Metric, earlier: Option<f64>, later: Option<f64>) -> Self {
        let change = match (earlier, later) {
            (None, None) => Change::Same,
            #[expect(clippy::float_cmp, reason = "equal counts give equal shares")]
            (Some(was), Some(is)) if was == is => Change::Same,
            (Some(was), Some(is)) => match metric.direction() {
                Direction::Neutral => Change::Changed,
                Direction::HigherIsBetter if is > was => Change::Better,
                Direction::LowerIsBetter if is < was => Change::Better,
                Direction::HigherIsBetter | Direction::LowerIsBetter => Change::Worse,
            },
            _ => Change::Changed,
        };
        Self {
            metric,
            earlier,
            later,
            change,
        }
    }

    /// Returns the earlier value as text, or `–` if it is unknown.
    pub fn earlier_text(&self) -> String {
        self.text(self.earlier)
    }

    /// Returns the later value as text, or `–` if it is unknown.
    pub fn later_text(&self) -> String {
        self.text(self.later)
    }

    /// Returns the difference with its sign, or `–` if it is unknown.
    pub fn difference_text(&self) -> String {
        match self.earlier.zip(self.later) {
            Some((was, is)) => self.metric.format_difference(is - was),
            None => UNKNOWN.to_owned(),
        }
    }

    fn text(&self, value: Option<f64>) -> String {
        value.map_or_else(|| UNKNOWN.to_owned(), |value| self.metric.text(value))
    }
}

/// The text for a value that is unknown.
pub(crate) const UNKNOWN: &str = "–";

impl ScenarioChange {
    fn of(name: &str, kind: &str, earlier: Option<PassCount>, later: Option<PassCount>) -> Self {
        let change = match (earlier, later) {
            (Some(was), Some(is)) => {
                // Cross-multiplication compares the two shares exactly, without a division.
                match (is.passed * was.runs).cmp(&(was.passed * is.runs)) {
                    std::cmp::Ordering::Greater => Change::Better,
                    std::cmp::Ordering::Less => Change::Worse,
                    std::cmp::Ordering::Equal => Change::Same,
                }
            }
            (None, Some(_)) => Change::New,
            (_, None) => Change::Gone,
        };
        Self {
            scenario: name.to_owned(),
            kind: kind.to_owned(),
            earlier,
            later,
            change,
        }
    }

    /// Returns whether the runs of the scenario differ between the reports.
    pub fn is_changed(&self) -> bool {
        self.change != Change::Same
    }

    /// Returns the passed runs of the earlier report as text, such as `2 of 3`, or `–` if there are
    /// none.
    pub fn earlier_text(&self) -> String {
        format_pass_count(self.earlier)
    }

    /// Returns the passed runs of the later report as text, such as `2 of 3`, or `–` if there are
    /// none.
    pub fn later_text(&self) -> String {
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

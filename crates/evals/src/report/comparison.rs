//! What is better and what is worse than it was in an earlier report.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use switchboard_domain::ModelId;

use super::{
    Report, RunResult,
    metric::{Figure, Growth},
    summary::ModelSummary,
};

/// What two reports have to say of the same models and scenarios.
///
/// Scenarios are the same by their name. Of each, all repetitions are taken together: 2 of 3 runs is better than
/// 1 of 3. With few repetitions such a difference may be chance, and nothing here says that it is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Models of both reports, in the order of the later one.
    pub models: Vec<ModelComparison>,
    /// Models of the earlier report only.
    pub only_earlier: Vec<ModelId>,
    /// Models of the later report only.
    pub only_later: Vec<ModelId>,
}

/// A model in two reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelComparison {
    /// The model.
    pub model: ModelId,
    /// Whether one report has scenarios that the other has not: the figures are of those that both have.
    pub partial: bool,
    /// Its figures, side by side.
    pub figures: Vec<FigureChange>,
    /// Its scenarios: those of the later report in its order, then those that are gone.
    pub scenarios: Vec<ScenarioChange>,
}

/// A figure and what it was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FigureChange {
    /// Which.
    pub figure: Figure,
    /// What it was.
    pub earlier: Option<f64>,
    /// What it is.
    pub later: Option<f64>,
    /// What there is in the difference. Time, tokens and costs are never better or worse: they depend on more than
    /// the model.
    pub change: Change,
}

/// A scenario and how it went before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioChange {
    /// Its name.
    pub scenario: String,
    /// Its kind.
    pub kind: String,
    /// How it went; `None` if it is new.
    pub earlier: Option<Tally>,
    /// How it goes; `None` if it is gone.
    pub later: Option<Tally>,
    /// What there is in the difference.
    pub change: Change,
}

/// How often a scenario was run, and how often it passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How often it was run.
    pub runs: u64,
    /// How often it passed.
    pub passed: u64,
}

/// What there is in a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// There is none.
    Same,
    /// It is another, neither better nor worse; or one of the two is not known.
    Changed,
    /// It was not there before.
    New,
    /// It is not there any more.
    Gone,
}

impl Change {
    /// Its name in JSON, which is a word for people too.
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
    /// Compares two reports, of the same suite or of two that share scenarios.
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

    /// Whether the reports have no scenario of a model in common: nothing is compared then.
    pub fn is_empty(&self) -> bool {
        !self.models.iter().any(ModelComparison::has_both)
    }

    /// Whether a model passes a scenario less often than before, or its share of passed runs, its accuracy, or its
    /// share of failed, hallucinated, unnecessary or forbidden calls got worse. Time, tokens and costs do not matter
    /// here, nor what only one of the reports has.
    pub fn is_worse(&self) -> bool {
        self.models.iter().any(|model| {
            let figures = model.figures.iter().map(|it| it.change);
            let scenarios = model.scenarios.iter().map(|it| it.change);
            figures.chain(scenarios).any(|it| it == Change::Worse)
        })
    }

    /// All for which [`is_worse`](Self::is_worse) is true, one sentence each.
    pub fn worse(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for ModelComparison {
            model,
            figures,
            scenarios,
            ..
        } in &self.models
        {
            for it in figures.iter().filter(|it| it.change == Change::Worse) {
                sentences.push(format!(
                    "{model}: {}: {} before, {} now",
                    it.figure.title().to_lowercase(),
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
    /// Whether the reports have a scenario of it in common, of which the figures are.
    pub fn has_both(&self) -> bool {
        let mut scenarios = self.scenarios.iter();
        scenarios.any(|it| it.earlier.is_some() && it.later.is_some())
    }

    fn of(model: &ModelId, earlier: &Report, later: &Report) -> Self {
        let (before, now) = (Pooled::of(model, earlier), Pooled::of(model, later));
        let mut scenarios = Vec::new();
        for (name, kind, tally) in now.in_order() {
            scenarios.push(ScenarioChange::of(
                name,
                kind,
                before.tally(name),
                Some(tally),
            ));
        }
        for (name, kind, tally) in before.in_order() {
            if now.tally(name).is_none() {
                scenarios.push(ScenarioChange::of(name, kind, Some(tally), None));
            }
        }
        let of_both = |report: &Report| {
            let runs = report.runs.iter().filter(|run| {
                run.model == *model
                    && before.tally(&run.scenario).is_some()
                    && now.tally(&run.scenario).is_some()
            });
            ModelSummary::of(model, runs)
        };
        let (was, is) = (of_both(earlier), of_both(later));
        let figure = |figure: Figure| FigureChange::of(figure, figure.of(&was), figure.of(&is));
        Self {
            model: model.clone(),
            partial: before.names() != now.names(),
            figures: Figure::ALL.into_iter().map(figure).collect(),
            scenarios,
        }
    }
}

/// The scenarios of a model, with all repetitions together.
struct Pooled<'a> {
    order: Vec<&'a RunResult>,
    tallies: BTreeMap<&'a str, Tally>,
}

impl<'a> Pooled<'a> {
    fn of(model: &ModelId, report: &'a Report) -> Self {
        let (mut order, mut tallies) = (Vec::new(), BTreeMap::<&str, Tally>::new());
        for run in report.runs.iter().filter(|run| run.model == *model) {
            let tally = tallies.entry(&run.scenario).or_insert_with(|| {
                order.push(run);
                Tally::default()
            });
            tally.runs += 1;
            tally.passed += u64::from(run.passed);
        }
        Self { order, tallies }
    }

    fn in_order(&self) -> impl Iterator<Item = (&'a str, &'a str, Tally)> {
        self.order.iter().filter_map(|run| {
            let (name, kind) = (run.scenario.as_str(), run.kind.as_str());
            Some((name, kind, self.tally(name)?))
        })
    }

    fn tally(&self, name: &str) -> Option<Tally> {
        self.tallies.get(name).copied()
    }

    fn names(&self) -> BTreeSet<&str> {
        self.tallies.keys().copied().collect()
    }
}

impl FigureChange {
    fn of(figure: Figure, earlier: Option<f64>, later: Option<f64>) -> Self {
        let change = match (earlier, later) {
            (None, None) => Change::Same,
            #[expect(clippy::float_cmp, reason = "the same counts give the same share")]
            (Some(was), Some(is)) if was == is => Change::Same,
            (Some(was), Some(is)) => match figure.growth() {
                Growth::Neither => Change::Changed,
                Growth::Good if is > was => Change::Better,
                Growth::Bad if is < was => Change::Better,
                Growth::Good | Growth::Bad => Change::Worse,
            },
            _ => Change::Changed,
        };
        Self {
            figure,
            earlier,
            later,
            change,
        }
    }

    /// What it was, in words; `–` if that is not known.
    pub fn earlier_text(&self) -> String {
        self.text(self.earlier)
    }

    /// What it is, in words; `–` if that is not known.
    pub fn later_text(&self) -> String {
        self.text(self.later)
    }

    /// The difference in words, with its sign; `–` if it is not known.
    pub fn difference_text(&self) -> String {
        match self.earlier.zip(self.later) {
            Some((was, is)) => self.figure.difference(is - was),
            None => UNKNOWN.to_owned(),
        }
    }

    fn text(&self, value: Option<f64>) -> String {
        value.map_or_else(|| UNKNOWN.to_owned(), |value| self.figure.text(value))
    }
}

/// What stands where nothing is known.
pub(crate) const UNKNOWN: &str = "–";

impl ScenarioChange {
    fn of(name: &str, kind: &str, earlier: Option<Tally>, later: Option<Tally>) -> Self {
        let change = match (earlier, later) {
            (Some(was), Some(is)) => {
                // The shares, without dividing.
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

    /// How it went, in words: `2 of 3`; `–` if it was not there.
    pub fn earlier_text(&self) -> String {
        in_words(self.earlier)
    }

    /// How it goes, in words: `2 of 3`; `–` if it is not there.
    pub fn later_text(&self) -> String {
        in_words(self.later)
    }
}

fn in_words(tally: Option<Tally>) -> String {
    match tally {
        Some(Tally { runs, passed }) => format!("{passed} of {runs}"),
        None => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;

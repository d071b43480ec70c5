//! Formats the comparison of a report with an earlier one for the terminal.

use std::fmt::Write as _;

use switchboard_evals::report::comparison::{Change, ModelComparison, ReportComparison};

use super::tables::{align_columns, printable_model_name};
use crate::terminal::{BAD, GOOD, STRONG, to_one_line};

/// Maximum number of changed scenarios that the tables list for each model.
const MAX_SCENARIOS: usize = 40;

/// Formats the comparison of two reports as tables.
pub(crate) fn format_comparison(comparison: &ReportComparison) -> String {
    let mut text = String::new();
    for model in &comparison.models {
        let name = printable_model_name(&model.model);
        let _ = writeln!(text, "\n{STRONG}{name} before and now{STRONG:#}");
        if model.partial {
            text.push_str("of the scenarios that both reports have\n");
        }
        text.push_str(&format_metric_changes(model));
        text.push_str(&format_scenario_changes(model));
    }
    for (models, when) in [
        (&comparison.only_earlier, "earlier"),
        (&comparison.only_later, "later"),
    ] {
        if !models.is_empty() {
            let names: Vec<String> = models.iter().map(printable_model_name).collect();
            let _ = writeln!(text, "\nonly in the {when} report: {}", names.join(", "));
        }
    }
    if comparison.is_empty() {
        text.push_str("\nthe reports share no scenario of the same model\n");
    }
    text
}

fn format_metric_changes(model: &ModelComparison) -> String {
    let header = ["", "before", "now", "difference", ""];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for it in &model.metrics {
        let word = match it.change {
            Change::Better | Change::Worse => it.change.as_str(),
            _ => "",
        };
        rows.push(vec![
            it.metric.display_name().to_owned(),
            it.format_earlier_result(),
            it.format_later_result(),
            it.format_result_difference(),
            word.to_owned(),
        ]);
    }
    align_columns(&rows)
}

fn format_scenario_changes(model: &ModelComparison) -> String {
    let mut text = String::new();
    let mut shown = 0;
    for change in [Change::Worse, Change::Better, Change::New, Change::Gone] {
        for it in model.scenarios.iter().filter(|it| it.change == change) {
            shown += 1;
            if shown > MAX_SCENARIOS {
                continue;
            }
            let style = match change {
                Change::Worse => BAD,
                Change::Better => GOOD,
                _ => anstyle::Style::new(),
            };
            let _ = writeln!(
                text,
                "{style}{}{style:#} {}: {} before, {} now",
                change.as_str(),
                to_one_line(&it.scenario, 80),
                it.format_earlier_result(),
                it.format_later_result()
            );
        }
    }
    if shown > MAX_SCENARIOS {
        let _ = writeln!(text, "and {} more", shown - MAX_SCENARIOS);
    }
    text
}

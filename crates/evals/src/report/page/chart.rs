//! Bar charts.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    super::{ModelSummary, metric::format_duration, share},
    table::kind_display_name,
};

/// Maximum number of rows of a chart. The tables of the page contain all rows.
const MAX_ROWS: usize = 120;

/// A chart with horizontal bars.
#[derive(Serialize)]
pub(super) struct Chart {
    title: &'static str,
    rows: Vec<ChartRow>,
    /// CSS class and label of each color.
    legend: &'static [(&'static str, &'static str)],
    hidden_rows: usize,
}

#[derive(Serialize)]
struct ChartRow {
    label: String,
    value: String,
    pieces: Vec<BarSegment>,
}

/// A colored segment of a bar. Its size is a percentage of the chart width.
#[derive(Serialize)]
struct BarSegment {
    class: &'static str,
    x: String,
    width: String,
}

impl Chart {
    fn new(
        title: &'static str,
        mut rows: Vec<ChartRow>,
        legend: &'static [(&'static str, &'static str)],
    ) -> Self {
        let hidden_rows = rows.len().saturating_sub(MAX_ROWS);
        rows.truncate(MAX_ROWS);
        Self {
            title,
            rows,
            legend,
            hidden_rows,
        }
    }
}

impl ChartRow {
    /// Creates a chart row from the shares of its segments. A bar never exceeds the chart width,
    /// even if the report contains impossible numbers.
    fn new(label: String, value: String, shares: &[(&'static str, Option<f64>)]) -> Self {
        let mut pieces = Vec::new();
        let mut x = 0.0_f64;
        for (class, share) in shares {
            let width = share.unwrap_or(0.0).clamp(0.0, 1.0 - x);
            if width > 0.0 {
                pieces.push(BarSegment {
                    class,
                    x: format!("{:.2}%", x * 100.0),
                    width: format!("{:.2}%", width * 100.0),
                });
                x += width;
            }
        }
        Self {
            label,
            value,
            pieces,
        }
    }
}

/// Creates the charts of a report from the summaries of its models.
pub(super) fn create_charts(summary: &[ModelSummary]) -> [Chart; 3] {
    [
        passed_runs_chart(summary),
        call_outcomes_chart(summary),
        turn_durations_chart(summary),
    ]
}

/// Creates the chart of passed runs, by kind of scenario and model.
fn passed_runs_chart(summary: &[ModelSummary]) -> Chart {
    let kinds: BTreeSet<&String> = summary.iter().flat_map(|it| it.kinds.keys()).collect();
    let mut rows = Vec::new();
    for kind in kinds {
        for model in summary {
            let Some((runs, passed)) = model.kinds.get(kind).copied() else {
                continue;
            };
            let label = match summary {
                [_] => kind_display_name(kind).to_owned(),
                _ => format!("{}: {}", kind_display_name(kind), model.model),
            };
            let value = format!("{passed} of {runs}");
            rows.push(ChartRow::new(
                label,
                value,
                &[("f-main", share(passed, runs))],
            ));
        }
    }
    Chart::new("Runs that passed, by kind", rows, &[])
}

/// Creates the chart of tool call outcomes, by model.
fn call_outcomes_chart(summary: &[ModelSummary]) -> Chart {
    let row = |model: &ModelSummary| {
        let counts = &model.counts;
        let outcomes = [
            ("f-good", counts.successful, "successful"),
            ("f-bad", counts.failed, "failed"),
            ("f-warn", counts.invalid(), "invalid"),
            ("f-none", counts.not_executed, "not executed"),
        ];
        let texts = outcomes.iter().filter(|(_, count, _)| *count > 0);
        let texts: Vec<String> = texts
            .map(|(_, count, name)| format!("{count} {name}"))
            .collect();
        let value = if texts.is_empty() {
            "no call".to_owned()
        } else {
            texts.join(", ")
        };
        let shares = outcomes.map(|(class, count, _)| (class, share(count, counts.calls)));
        ChartRow::new(model.model.to_string(), value, &shares)
    };
    let legend = &[
        ("f-good", "successful"),
        ("f-bad", "failed: the tool or its server"),
        (
            "f-warn",
            "invalid: unknown tool, or arguments that violate its schema",
        ),
        ("f-none", "not executed: denied, skipped or over a limit"),
    ];
    Chart::new(
        "Outcomes of calls",
        summary.iter().map(row).collect(),
        legend,
    )
}

/// Creates the chart of turn durations, by model.
fn turn_durations_chart(summary: &[ModelSummary]) -> Chart {
    let durations = summary.iter().filter_map(|model| model.turn_ms);
    let longest = durations.map(|(_, slow)| slow).max().unwrap_or(0).max(1);
    let row = |model: &ModelSummary| {
        let label = model.model.to_string();
        let Some((median, slow)) = model.turn_ms else {
            return ChartRow::new(label, "no turn".to_owned(), &[]);
        };
        let value = format!(
            "{}, 95 % within {}",
            format_duration(median),
            format_duration(slow)
        );
        let shares = [
            ("f-main", share(median, longest)),
            ("f-soft", share(slow.saturating_sub(median), longest)),
        ];
        ChartRow::new(label, value, &shares)
    };
    let legend = &[
        ("f-main", "half of the turns"),
        ("f-soft", "95 of 100 turns"),
    ];
    Chart::new(
        "Duration of a turn",
        summary.iter().map(row).collect(),
        legend,
    )
}

//! Tables of metrics.

use std::collections::BTreeSet;

use serde::Serialize;

use super::super::{
    CallCounts, ModelSummary, Report,
    comparison::{Change, ModelComparison, UNKNOWN},
    metric::{Metric, format_duration, group_thousands},
    share,
};

/// Maximum number of rows of a table, because models may invent any number of names.
const MAX_ROWS: usize = 1_000;

#[derive(Serialize)]
pub(super) struct Table {
    caption: String,
    header: Vec<TableCell>,
    rows: Vec<Vec<TableCell>>,
    hidden_rows: usize,
}

#[derive(Serialize)]
struct TableCell {
    text: String,
    /// CSS class of the table cell.
    class: &'static str,
    /// Number of the run that the cell links to, if it links to one.
    run: Option<usize>,
}

fn create_cell(text: impl Into<String>, class: &'static str) -> TableCell {
    TableCell {
        text: text.into(),
        class,
        run: None,
    }
}

impl Table {
    fn new(
        caption: impl Into<String>,
        header: Vec<TableCell>,
        mut rows: Vec<Vec<TableCell>>,
    ) -> Self {
        let hidden_rows = rows.len().saturating_sub(MAX_ROWS);
        rows.truncate(MAX_ROWS);
        Self {
            caption: caption.into(),
            header,
            rows,
            hidden_rows,
        }
    }
}

fn header_cells(first: &str, summary: &[ModelSummary]) -> Vec<TableCell> {
    let models = summary.iter();
    let models = models.map(|model| create_cell(model.model.to_string(), "model"));
    std::iter::once(create_cell(first, "name"))
        .chain(models)
        .collect()
}

/// Creates the table of the metrics of each model.
pub(super) fn model_metrics_table(summary: &[ModelSummary]) -> Table {
    let row = |name: &str, value: &dyn Fn(&ModelSummary) -> String| {
        let values = summary.iter().map(|model| create_cell(value(model), ""));
        std::iter::once(create_cell(name, ""))
            .chain(values)
            .collect()
    };
    let mut rows: Vec<Vec<TableCell>> = Vec::new();
    if !summary.is_empty() {
        rows.push(row("Runs", &|model| match model.passed_unknown {
            0 => format_count(model.runs),
            some => format!(
                "{}, {} not known",
                format_count(model.runs),
                format_count(some)
            ),
        }));
        rows.extend(Metric::ALL.map(|metric| {
            let text = |model: &ModelSummary| metric.of(model).map(|it| metric.text(it));
            row(metric.title(), &|model| text_or_unknown(text(model)))
        }));
    }
    Table::new(
        "Metrics of each model",
        header_cells("Metric", summary),
        rows,
    )
}

/// Creates the table of passed runs, by kind of scenario and model.
pub(super) fn scenario_kinds_table(summary: &[ModelSummary]) -> Table {
    let kinds: BTreeSet<&String> = summary.iter().flat_map(|it| it.kinds.keys()).collect();
    let row = |kind: &String| {
        let values = summary.iter().map(|model| {
            let counts = model.kinds.get(kind);
            let text = counts.map(|(runs, passed)| format_share(*passed, *runs));
            create_cell(text_or_unknown(text), "")
        });
        let name = create_cell(kind_display_name(kind), "");
        std::iter::once(name).chain(values).collect()
    };
    let rows = kinds.into_iter().map(row).collect();
    let caption = "Runs that passed, by kind of scenario";
    Table::new(caption, header_cells("Kind", summary), rows)
}

/// Creates the table of the calls of each tool.
pub(super) fn tool_calls_table(summary: &[ModelSummary]) -> Table {
    let names: BTreeSet<&String> = summary.iter().flat_map(|it| it.tools.keys()).collect();
    let mut rows = Vec::new();
    for name in names {
        for model in summary {
            let Some(tool) = model.tools.get(name) else {
                continue;
            };
            let mut row = vec![
                create_cell(name, ""),
                create_cell(model.model.to_string(), "name"),
            ];
            row.extend(format_call_counts(&tool.counts).map(|text| create_cell(text, "")));
            let durations = [tool.call_ms.map(|it| it.0), tool.call_ms.map(|it| it.1)];
            row.extend(
                durations.map(|ms| create_cell(text_or_unknown(ms.map(format_duration)), "")),
            );
            rows.push(row);
        }
    }
    let mut header = vec![create_cell("Tool", "name"), create_cell("Model", "name")];
    let columns = [
        "Calls",
        "Successful",
        "Failed",
        "Hallucinated",
        "Unnecessary",
        "Forbidden",
        "Right",
        "Median",
        "95 % within",
    ];
    header.extend(columns.map(|name| create_cell(name, "")));
    Table::new("Calls of each tool", header, rows)
}

fn format_call_counts(counts: &CallCounts) -> [String; 7] {
    let right = match counts.judged {
        0 => UNKNOWN.to_owned(),
        judged => format!("{} of {}", format_count(counts.right), format_count(judged)),
    };
    [
        format_count(counts.calls),
        format_count(counts.successful),
        format_count(counts.failed),
        format_count(counts.hallucinated),
        format_count(counts.unnecessary),
        format_count(counts.forbidden),
        right,
    ]
}

/// Creates the tables of a model's metrics in two reports and of its changed scenarios.
pub(super) fn comparison_tables(model: &ModelComparison, later: &Report) -> Vec<Table> {
    let metric_header = ["Metric", "Before", "Now", "Difference", "Change"];
    let metrics = model.metrics.iter().map(|it| {
        vec![
            create_cell(it.metric.title(), ""),
            create_cell(it.earlier_text(), ""),
            create_cell(it.later_text(), ""),
            create_cell(it.difference_text(), ""),
            change_cell(it.change),
        ]
    });
    let scenario_header = ["Scenario", "Passed before", "Passed now", "Change"];
    let scenarios = model
        .scenarios
        .iter()
        .filter(|it| it.change != Change::Same);
    let scenarios: Vec<_> = scenarios
        .map(|it| {
            let failed = later.runs.iter().position(|run| {
                run.model == model.model && run.scenario == it.scenario && !run.passed
            });
            let run = failed.filter(|_| it.change == Change::Worse);
            let name = TableCell {
                run: run.map(|position| position + 1),
                ..create_cell(&it.scenario, "")
            };
            vec![
                name,
                create_cell(it.earlier_text(), ""),
                create_cell(it.later_text(), ""),
                change_cell(it.change),
            ]
        })
        .collect();
    let mut tables = vec![Table::new(
        format!("Metrics before and now: {}", model.model),
        column_cells(&metric_header),
        metrics.collect(),
    )];
    if !scenarios.is_empty() {
        let caption = format!("Changed scenarios: {}", model.model);
        tables.push(Table::new(
            caption,
            column_cells(&scenario_header),
            scenarios,
        ));
    }
    tables
}

fn column_cells(names: &[&str]) -> Vec<TableCell> {
    let names = names.iter().enumerate();
    names
        .map(|(at, name)| create_cell(*name, if at == 0 { "name" } else { "" }))
        .collect()
}

fn change_cell(change: Change) -> TableCell {
    match change {
        Change::Better => create_cell("▲ better", "good"),
        Change::Worse => create_cell("▼ worse", "bad"),
        other => create_cell(other.as_str(), "muted"),
    }
}

/// Returns the display name of a kind of scenario.
pub(super) fn kind_display_name(kind: &str) -> &str {
    match kind.trim() {
        "" => "(none)",
        kind => kind,
    }
}

fn format_count(number: u64) -> String {
    group_thousands(&number.to_string())
}

fn format_share(part: u64, whole: u64) -> String {
    match share(part, whole) {
        Some(share) => format!("{} ({})", format_count(part), Metric::Passed.text(share)),
        None => format_count(part),
    }
}

fn text_or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

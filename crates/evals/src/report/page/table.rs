//! Tables of metrics.

use std::collections::BTreeSet;

use serde::Serialize;

use super::super::{
    CallCounts, ModelSummary, Report,
    comparison::{Change, ModelComparison, UNKNOWN},
    metric::{Metric, duration, grouped},
    share,
};

/// Maximum number of rows of a table, because models may invent any number of names.
const MAX_ROWS: usize = 1_000;

#[derive(Serialize)]
pub(super) struct Table {
    caption: String,
    header: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    hidden_rows: usize,
}

#[derive(Serialize)]
struct Cell {
    text: String,
    /// CSS class of the table cell.
    class: &'static str,
    /// Number of the run that the cell links to, if it links to one.
    run: Option<usize>,
}

fn cell(text: impl Into<String>, class: &'static str) -> Cell {
    Cell {
        text: text.into(),
        class,
        run: None,
    }
}

impl Table {
    fn new(caption: impl Into<String>, header: Vec<Cell>, mut rows: Vec<Vec<Cell>>) -> Self {
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

fn header(first: &str, summary: &[ModelSummary]) -> Vec<Cell> {
    let models = summary.iter();
    let models = models.map(|model| cell(model.model.to_string(), "model"));
    std::iter::once(cell(first, "name")).chain(models).collect()
}

/// Creates the table of the metrics of each model.
pub(super) fn models(summary: &[ModelSummary]) -> Table {
    let row = |name: &str, value: &dyn Fn(&ModelSummary) -> String| {
        let values = summary.iter().map(|model| cell(value(model), ""));
        std::iter::once(cell(name, "")).chain(values).collect()
    };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    if !summary.is_empty() {
        rows.push(row("Runs", &|model| match model.passed_unknown {
            0 => count(model.runs),
            some => format!("{}, {} not known", count(model.runs), count(some)),
        }));
        rows.extend(Metric::ALL.map(|metric| {
            let text = |model: &ModelSummary| metric.of(model).map(|it| metric.text(it));
            row(metric.title(), &|model| or_unknown(text(model)))
        }));
    }
    Table::new("Metrics of each model", header("Metric", summary), rows)
}

/// Creates the table of passed runs, by kind of scenario and model.
pub(super) fn kinds(summary: &[ModelSummary]) -> Table {
    let kinds: BTreeSet<&String> = summary.iter().flat_map(|it| it.kinds.keys()).collect();
    let row = |kind: &String| {
        let values = summary.iter().map(|model| {
            let counts = model.kinds.get(kind);
            let text = counts.map(|(runs, passed)| part(*passed, *runs));
            cell(or_unknown(text), "")
        });
        let name = cell(kind_name(kind), "");
        std::iter::once(name).chain(values).collect()
    };
    let rows = kinds.into_iter().map(row).collect();
    let caption = "Runs that passed, by kind of scenario";
    Table::new(caption, header("Kind", summary), rows)
}

/// Creates the table of the calls of each tool.
pub(super) fn tools(summary: &[ModelSummary]) -> Table {
    let names: BTreeSet<&String> = summary.iter().flat_map(|it| it.tools.keys()).collect();
    let mut rows = Vec::new();
    for name in names {
        for model in summary {
            let Some(tool) = model.tools.get(name) else {
                continue;
            };
            let mut row = vec![cell(name, ""), cell(model.model.to_string(), "name")];
            row.extend(counts(&tool.counts).map(|text| cell(text, "")));
            let durations = [tool.call_ms.map(|it| it.0), tool.call_ms.map(|it| it.1)];
            row.extend(durations.map(|ms| cell(or_unknown(ms.map(duration)), "")));
            rows.push(row);
        }
    }
    let mut header = vec![cell("Tool", "name"), cell("Model", "name")];
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
    header.extend(columns.map(|name| cell(name, "")));
    Table::new("Calls of each tool", header, rows)
}

fn counts(counts: &CallCounts) -> [String; 7] {
    let right = match counts.judged {
        0 => UNKNOWN.to_owned(),
        judged => format!("{} of {}", count(counts.right), count(judged)),
    };
    [
        count(counts.calls),
        count(counts.successful),
        count(counts.failed),
        count(counts.hallucinated),
        count(counts.unnecessary),
        count(counts.forbidden),
        right,
    ]
}

/// Creates the tables of a model's metrics in two reports and of its changed scenarios.
pub(super) fn changes(model: &ModelComparison, later: &Report) -> Vec<Table> {
    let metric_header = ["Metric", "Before", "Now", "Difference", "Change"];
    let metrics = model.metrics.iter().map(|it| {
        vec![
            cell(it.metric.title(), ""),
            cell(it.earlier_text(), ""),
            cell(it.later_text(), ""),
            cell(it.difference_text(), ""),
            change(it.change),
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
            let name = Cell {
                run: run.map(|position| position + 1),
                ..cell(&it.scenario, "")
            };
            vec![
                name,
                cell(it.earlier_text(), ""),
                cell(it.later_text(), ""),
                change(it.change),
            ]
        })
        .collect();
    let mut tables = vec![Table::new(
        format!("Metrics before and now: {}", model.model),
        columns(&metric_header),
        metrics.collect(),
    )];
    if !scenarios.is_empty() {
        let caption = format!("Changed scenarios: {}", model.model);
        tables.push(Table::new(caption, columns(&scenario_header), scenarios));
    }
    tables
}

fn columns(names: &[&str]) -> Vec<Cell> {
    let names = names.iter().enumerate();
    names
        .map(|(at, name)| cell(*name, if at == 0 { "name" } else { "" }))
        .collect()
}

fn change(change: Change) -> Cell {
    match change {
        Change::Better => cell("▲ better", "good"),
        Change::Worse => cell("▼ worse", "bad"),
        other => cell(other.as_str(), "muted"),
    }
}

/// Returns the display name of a kind of scenario.
pub(super) fn kind_name(kind: &str) -> &str {
    match kind.trim() {
        "" => "(none)",
        kind => kind,
    }
}

fn count(number: u64) -> String {
    grouped(&number.to_string())
}

fn part(part: u64, whole: u64) -> String {
    match share(part, whole) {
        Some(share) => format!("{} ({})", count(part), Metric::Passed.text(share)),
        None => count(part),
    }
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

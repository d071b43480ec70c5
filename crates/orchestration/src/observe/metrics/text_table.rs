//! Text table of the metrics.

use std::fmt::Write as _;

use super::{Histogram, MetricsSnapshot, ModelMetrics, ToolCallCounts, ToolMetrics};

const TOOL_HEAD: [&str; 10] = [
    "tool", "calls", "ok", "failed", "halluc.", "not run", "unneeded", "accuracy", "p50", "p95",
];
const MODEL_HEAD: [&str; 9] = [
    "model",
    "requests",
    "failed",
    "tokens in",
    "tokens out",
    "cost",
    "tool accuracy",
    "p50",
    "p95",
];

impl MetricsSnapshot {
    /// Formats the counts as a text table: first the tools, then the models.
    ///
    /// The table is empty if nothing was counted. Control characters in names are replaced by `?`.
    pub fn to_text_table(&self) -> String {
        let tools = align_columns(TOOL_HEAD, self.tools.iter().map(format_tool_row));
        let models = align_columns(MODEL_HEAD, self.models.iter().map(format_model_row));
        let tables = [tools, models].into_iter().filter(|it| !it.is_empty());
        tables.collect::<Vec<_>>().join("\n")
    }
}

fn format_tool_row(tool: &ToolMetrics) -> [String; 10] {
    let name = match &tool.server {
        Some(server) => format!("{server} / {}", tool.tool),
        None => tool.tool.clone(),
    };
    let calls = &tool.calls;
    [
        name,
        calls.total.to_string(),
        calls.successful.to_string(),
        calls.failed.to_string(),
        calls.hallucinated.to_string(),
        calls.not_executed.to_string(),
        calls.unnecessary.to_string(),
        format_accuracy(calls),
        format_quantile(&tool.latency, 0.5),
        format_quantile(&tool.latency, 0.95),
    ]
}

fn format_model_row(model: &ModelMetrics) -> [String; 9] {
    let cost = match (model.unpriced > 0, model.cost_usd) {
        (true, 0.0) => "?".to_owned(),
        (true, usd) => format!("> ${usd:.4}"),
        (false, usd) => format!("${usd:.4}"),
    };
    [
        model.model.to_string(),
        model.requests.total.to_string(),
        model.requests.failed.to_string(),
        model.tokens.input.to_string(),
        model.tokens.output.to_string(),
        cost,
        format_accuracy(&model.tool_calls),
        format_quantile(&model.latency, 0.5),
        format_quantile(&model.latency, 0.95),
    ]
}

fn format_accuracy(calls: &ToolCallCounts) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    calls.accuracy().map_or_else(|| "-".to_owned(), percent)
}

fn format_quantile(latency: &Histogram, share: f64) -> String {
    let quantile = latency.quantile_ms(share);
    quantile.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"))
}

/// Formats rows as a table with the first column aligned to the left and the others to the right.
/// Returns an empty string if there are no rows.
fn align_columns<const N: usize>(
    head: [&str; N],
    rows: impl ExactSizeIterator<Item = [String; N]>,
) -> String {
    if rows.len() == 0 {
        return String::new();
    }
    let replace = |c: char| if c.is_control() { '?' } else { c };
    let mut all = vec![head.map(str::to_owned)];
    all.extend(rows.map(|row| row.map(|cell| cell.chars().map(replace).collect())));
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &all {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(widths).skip(1) {
            // Writing to a string cannot fail.
            let _ = write!(line, "  {cell:>width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

//! A text table of the counts.

use super::{CallCounts, Histogram, Snapshot};

impl Snapshot {
    /// Returns the counts as a text table with fixed columns: tools, then models. The table is
    /// empty without counts. Control characters in names are replaced by `?`.
    pub fn table(&self) -> String {
        let mut text = String::new();
        if !self.tools.is_empty() {
            let rows = self.tools.iter().map(|tool| {
                let name = match &tool.server {
                    Some(server) => format!("{server} / {}", tool.tool),
                    None => tool.tool.clone(),
                };
                let mut row = vec![name];
                row.extend(counts(&tool.calls));
                row.extend(times(&tool.latency));
                row
            });
            let head = [
                "tool", "calls", "ok", "failed", "halluc.", "not run", "unneeded", "accuracy",
                "p50", "p95",
            ];
            aligned(&mut text, &head, rows);
        }
        if !self.models.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            let rows = self.models.iter().map(|model| {
                let cost = if model.unpriced > 0 && model.cost_usd == 0.0 {
                    "?".to_owned()
                } else if model.unpriced > 0 {
                    format!("> ${:.4}", model.cost_usd)
                } else {
                    format!("${:.4}", model.cost_usd)
                };
                let mut row = vec![
                    model.model.to_string(),
                    model.requests.total.to_string(),
                    model.requests.failed.to_string(),
                    model.tokens.input.to_string(),
                    model.tokens.output.to_string(),
                    cost,
                    percent(&model.tool_calls),
                ];
                row.extend(times(&model.latency));
                row
            });
            let head = [
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
            aligned(&mut text, &head, rows);
        }
        text
    }
}

fn counts(calls: &CallCounts) -> [String; 7] {
    [
        calls.total.to_string(),
        calls.successful.to_string(),
        calls.failed.to_string(),
        calls.hallucinated.to_string(),
        calls.not_executed.to_string(),
        calls.unnecessary.to_string(),
        percent(calls),
    ]
}

fn percent(calls: &CallCounts) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    calls.accuracy().map_or_else(|| "-".to_owned(), percent)
}

fn times(latency: &Histogram) -> [String; 2] {
    let shown = |share| {
        let quantile = latency.quantile_ms(share);
        quantile.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"))
    };
    [shown(0.5), shown(0.95)]
}

/// Aligns the first column to the left and the others to the right.
fn aligned(text: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let head = head.iter().map(|&cell| cell.to_owned()).collect();
    let mut all: Vec<Vec<String>> = vec![head];
    all.extend(rows.map(|row| {
        row.iter()
            .map(|cell| without_control_characters(cell))
            .collect()
    }));
    let columns = all.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = all.iter().filter_map(|row: &Vec<String>| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in &all {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        let cells: Vec<String> = cells.collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
}

fn without_control_characters(cell: &str) -> String {
    cell.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

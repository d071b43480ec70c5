//! Formats the report of an evaluation as tables for the terminal.

use std::{collections::BTreeMap, fmt::Write as _};

use switchboard_domain::ModelId;
use switchboard_evals::{
    report::{CallCounts, ModelSummary, Report, RunResult},
    scoring::Verdict,
};
use unicode_width::UnicodeWidthStr as _;

use crate::terminal::{BAD, FAINT, GOOD, STRONG, to_one_line};

/// Maximum number of failed runs that the report lists at the terminal.
const MAX_FAILED_RUNS: usize = 25;

/// Maximum length of one fault message in characters. Longer messages are cut.
const MAX_FAULT_WIDTH: usize = 400;

/// Formats a report as tables by model, tool and kind of scenario, and lists the failed runs.
pub(crate) fn format_report(report: &Report) -> String {
    let summary = report.summarize_models();
    let mut text = String::new();
    if !report.title.is_empty() {
        let title = to_one_line(&report.title, 100);
        let _ = writeln!(text, "{STRONG}{title}{STRONG:#}\n");
    }
    text.push_str(&format_model_table(&summary));
    text.push_str(&format_tool_tables(&summary));
    text.push_str(&format_scenario_kind_table(&summary));
    match summary.iter().map(|it| it.counts.unknown).sum() {
        0_u64 => {}
        1 => text.push_str("\nnot known: 1 call with redacted arguments\n"),
        count => {
            let _ = writeln!(text, "\nnot known: {count} calls with redacted arguments");
        }
    }
    if report.no_tools {
        text.push_str("\nwithout tools: expectations about calls were not checked\n");
    }
    text.push_str(&format_failed_runs(report));
    if report.is_unfinished() {
        let _ = writeln!(
            text,
            "\n{BAD}unfinished:{BAD:#} {} of {} runs were not executed",
            report.not_run,
            report.not_run.saturating_add(report.runs.len() as u64)
        );
    }
    text
}

/// Column titles for the cells of [`format_call_counts`] and [`format_duration_cells`].
const COLUMNS: [&str; 8] = [
    "calls",
    "successful",
    "failed",
    "hallucinated",
    "unnecessary",
    "accuracy",
    "p50",
    "p95",
];

/// Returns the header row of a table: the titles `first`, then [`COLUMNS`], then `last`.
fn build_table_header(first: &[&str], last: &[&str]) -> Vec<String> {
    let titles = [first, &COLUMNS, last].concat();
    titles.into_iter().map(str::to_owned).collect()
}

fn format_model_table(summary: &[ModelSummary]) -> String {
    let header = build_table_header(
        &["model", "runs", "passed"],
        &["made-up values", "tokens", "cost"],
    );
    let mut rows = vec![header];
    for it in summary {
        let passed = match it.passed_unknown {
            0 => it.passed.to_string(),
            some => format!("{} ({some} not known)", it.passed),
        };
        let mut row = vec![printable_model_name(&it.model), it.runs.to_string(), passed];
        row.extend(format_call_counts(&it.counts));
        row.extend(format_duration_cells(it.turn_ms));
        let made_up = it.made_up_values.map(|count| count.to_string());
        row.push(made_up.unwrap_or_else(unknown_value_cell));
        row.push(format_tokens(it));
        let cost = it.cost_usd.map(|usd| format!("${usd:.4}"));
        row.push(cost.unwrap_or_else(unknown_value_cell));
        rows.push(row);
    }
    align_columns(&rows)
}

/// Returns the table cell that replaces an unknown number.
fn unknown_value_cell() -> String {
    "–".to_owned()
}

fn format_tool_tables(summary: &[ModelSummary]) -> String {
    let mut text = String::new();
    for it in summary.iter().filter(|it| !it.tools.is_empty()) {
        let mut rows = vec![build_table_header(&["tool"], &[])];
        if summary.len() > 1 {
            rows[0][0] = format!("tool of {}", printable_model_name(&it.model));
        }
        for (name, tool) in &it.tools {
            let mut row = vec![to_one_line(name, 60)];
            row.extend(format_call_counts(&tool.counts));
            row.extend(format_duration_cells(tool.call_ms));
            rows.push(row);
        }
        text.push('\n');
        text.push_str(&align_columns(&rows));
    }
    text
}

/// Formats the pass rates by kind of scenario, with one column per model.
fn format_scenario_kind_table(summary: &[ModelSummary]) -> String {
    let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (column, it) in summary.iter().enumerate() {
        for (kind, (runs, passed)) in &it.kinds {
            let cells = kinds.entry(kind).or_default();
            cells.resize_with(column, unknown_value_cell);
            cells.push(format!("{passed} of {runs}"));
        }
    }
    if kinds.keys().all(|kind| kind.is_empty()) {
        return String::new();
    }
    let mut rows = vec![vec!["kind".to_owned()]];
    rows[0].extend(summary.iter().map(|it| match summary {
        [_] => "passed".to_owned(),
        _ => printable_model_name(&it.model),
    }));
    for (kind, mut cells) in kinds {
        cells.resize_with(summary.len(), unknown_value_cell);
        let name = if kind.is_empty() { "(none)" } else { kind };
        let mut row = vec![to_one_line(name, 40)];
        row.append(&mut cells);
        rows.push(row);
    }
    format!("\n{}", align_columns(&rows))
}

fn format_failed_runs(report: &Report) -> String {
    let failed: Vec<&RunResult> = report.runs.iter().filter(|run| !run.passed).collect();
    if failed.is_empty() {
        return match report.runs.as_slice() {
            [] => String::new(),
            [_] => format!("\n{GOOD}the run passed{GOOD:#}\n"),
            runs => format!("\n{GOOD}all {} runs passed{GOOD:#}\n", runs.len()),
        };
    }
    let mut text = format!("\n{STRONG}failed runs{STRONG:#}\n");
    for run in failed.iter().take(MAX_FAILED_RUNS) {
        let mut about = printable_model_name(&run.model);
        if run.repetition > 1 {
            let _ = write!(about, ", repetition {}", run.repetition);
        }
        let scenario = to_one_line(&run.scenario, 80);
        let _ = writeln!(text, "{BAD}×{BAD:#} {scenario} {FAINT}({about}){FAINT:#}");
        for fault in list_run_faults(run) {
            let _ = writeln!(text, "    {}", to_one_line(&fault, MAX_FAULT_WIDTH));
        }
    }
    if failed.len() > MAX_FAILED_RUNS {
        let more = failed.len() - MAX_FAILED_RUNS;
        let _ = writeln!(text, "and {more} more; --html or --json lists all of them");
    }
    text
}

/// Lists the faults of a run as messages. If the run has several turns, the message of a turn
/// begins with the number of the turn.
fn list_run_faults(run: &RunResult) -> Vec<String> {
    let mut faults: Vec<String> = run.error.iter().cloned().collect();
    let is_long = run.turns.len() > 1;
    for (at, turn) in run.turns.iter().enumerate() {
        // If an expected call is missing, the wrong calls of the turn are listed too, because the
        // model may have made one of them instead.
        let instead = turn.score.calls.iter().filter_map(|call| {
            let is_near = matches!(
                call.verdict,
                Verdict::WrongInput | Verdict::WrongOrder | Verdict::Hallucinated
            );
            let why = call.reason.as_ref().filter(|_| is_near)?;
            Some(format!("`{}` was called, but {why}", call.tool))
        });
        let instead = instead.filter(|_| !turn.score.missing.is_empty());
        faults.extend(turn.faults.iter().cloned().chain(instead).map(|fault| {
            if is_long {
                format!("turn {}: {fault}", at + 1)
            } else {
                fault
            }
        }));
    }
    let missing = run.not_reached.iter();
    faults.extend(missing.map(|call| format!("not reached: {call}")));
    faults
}

/// Returns the table cells for counts of calls and their accuracy, in the order of [`COLUMNS`].
fn format_call_counts(counts: &CallCounts) -> [String; 6] {
    let accuracy = counts.accuracy();
    [
        counts.calls.to_string(),
        counts.successful.to_string(),
        counts.failed.to_string(),
        counts.hallucinated.to_string(),
        counts.unnecessary.to_string(),
        accuracy.map_or_else(unknown_value_cell, format_percent),
    ]
}

/// Returns a model name for the terminal: on one line and without control characters.
pub(crate) fn printable_model_name(model: &ModelId) -> String {
    to_one_line(&model.to_string(), 80)
}

pub(super) fn format_percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn format_duration_cells(ms: Option<(u64, u64)>) -> [String; 2] {
    match ms {
        Some((half, most)) => [format_duration(half), format_duration(most)],
        None => [unknown_value_cell(), unknown_value_cell()],
    }
}

fn format_duration(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    let tenths = ms / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// Formats input and output tokens. The mark `≥` means that some turns reported no tokens.
fn format_tokens(of: &ModelSummary) -> String {
    let (Some(input), Some(output)) = (of.usage.input_tokens, of.usage.output_tokens) else {
        return unknown_value_cell();
    };
    let mark = if of.unmetered_turns > 0 { "≥ " } else { "" };
    format!("{mark}{input} + {output}")
}

/// Formats table rows with aligned columns. The first row is the header. The first column is
/// left-aligned, other columns are right-aligned.
pub(super) fn align_columns(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let room = " ".repeat(width.saturating_sub(cell.width()));
            if column == 0 {
                line.extend([cell, room.as_str()]);
            } else {
                line.extend(["  ", room.as_str(), cell]);
            }
        }
        let line = line.trim_end();
        let _ = if number == 0 {
            writeln!(text, "{STRONG}{line}{STRONG:#}")
        } else {
            writeln!(text, "{line}")
        };
    }
    text
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;

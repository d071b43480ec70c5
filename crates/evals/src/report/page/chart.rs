//! Charts, drawn as SVG.
//!
//! All are bars in rows: a line of words, and a bar of the chart's whole width below it. Widths are in percent and
//! letters in pixels, so that a chart fits a phone and a sheet alike. What a chart shows is told as its label, for who
//! does not see it, and stands in the tables.

use std::collections::BTreeSet;

use super::markup::Markup;
use crate::{
    report::metric::seconds,
    report::{ModelSummary, share},
};

/// Rows that a chart shows; the tables have all.
const ROWS: usize = 120;

/// Characters of a label, which has to leave room for the value beside it.
const LABEL: usize = 28;

/// Characters of a value that stands beside its label.
const VALUE: usize = 12;

/// Pixels of a heading.
const HEADING: usize = 26;

/// A line of words with a bar.
struct Row {
    label: String,
    value: String,
    /// Its pieces from the left: the class, and the share of the whole width.
    pieces: Vec<(&'static str, f64)>,
}

impl Row {
    /// Whether its value has a line of its own, below the bar.
    fn is_long(&self) -> bool {
        self.value.chars().count() > VALUE
    }

    /// Pixels.
    fn height(&self) -> usize {
        if self.is_long() { 54 } else { 36 }
    }
}

/// Rows under a heading; an empty one is not shown.
struct Group {
    heading: String,
    rows: Vec<Row>,
}

/// The runs that passed, by kind and model.
pub(super) fn passed(page: &mut Markup, summary: &[ModelSummary]) {
    let kinds: BTreeSet<&str> = summary
        .iter()
        .flat_map(|it| it.kinds.keys().map(String::as_str))
        .collect();
    let row = |label: String, (runs, passed): (u64, u64)| Row {
        label,
        value: format!("{passed} of {runs}"),
        pieces: vec![("f-main", share(passed, runs).unwrap_or(0.0))],
    };
    let groups = if let [only] = summary {
        // The kinds are the rows, where there is one model.
        let of_kind =
            |(kind, found): (&String, &(u64, u64))| row(kind_in_words(kind).to_owned(), *found);
        let rows = only.kinds.iter().map(of_kind).collect();
        let heading = only.model.to_string();
        vec![Group { heading, rows }]
    } else {
        let of_kind = |kind: &str| {
            let models = summary
                .iter()
                .filter_map(|it| Some((it, *it.kinds.get(kind)?)));
            Group {
                heading: kind_in_words(kind).to_owned(),
                rows: models
                    .map(|(it, found)| row(it.model.to_string(), found))
                    .collect(),
            }
        };
        kinds.into_iter().map(of_kind).collect()
    };
    bars(page, "Runs that passed, by kind", &groups, &[]);
}

/// How calls ended, by model.
pub(super) fn calls(page: &mut Markup, summary: &[ModelSummary]) {
    let row = |it: &ModelSummary| {
        let counts = &it.counts;
        let pieces = [
            ("f-good", counts.successful),
            ("f-bad", counts.failed),
            ("f-warn", counts.invalid()),
            ("f-none", counts.not_executed),
        ];
        let words = ["successful", "failed", "invalid", "not executed"];
        let told: Vec<String> = pieces
            .iter()
            .zip(words)
            .filter(|((_, count), _)| *count > 0)
            .map(|((_, count), word)| format!("{count} {word}"))
            .collect();
        Row {
            label: it.model.to_string(),
            value: if told.is_empty() {
                "no call".to_owned()
            } else {
                told.join(", ")
            },
            pieces: pieces
                .into_iter()
                .map(|(class, count)| (class, share(count, counts.calls).unwrap_or(0.0)))
                .collect(),
        }
    };
    let legend = [
        ("f-good", "successful"),
        ("f-bad", "failed: the tool or its server"),
        (
            "f-warn",
            "invalid: no such tool, or arguments that do not fit",
        ),
        ("f-none", "not executed: denied, skipped or over a limit"),
    ];
    bars(
        page,
        "How calls ended",
        &of_models(summary.iter().map(row)),
        &legend,
    );
}

/// How long turns took, by model.
pub(super) fn latency(page: &mut Markup, summary: &[ModelSummary]) {
    let longest = summary
        .iter()
        .filter_map(|it| it.turn_ms)
        .map(|(_, slow)| slow)
        .max();
    let longest = longest.unwrap_or(0).max(1);
    let row = |it: &ModelSummary| {
        let (median, slow) = it.turn_ms.unwrap_or_default();
        let of_all = |ms: u64| share(ms, longest).unwrap_or(0.0);
        let words = |ms: u64| seconds(share(ms, 1).unwrap_or(0.0));
        Row {
            label: it.model.to_string(),
            value: match it.turn_ms {
                Some(_) => format!("{}, 95 % within {}", words(median), words(slow)),
                None => "no turn".to_owned(),
            },
            pieces: vec![
                ("f-main", of_all(median)),
                ("f-soft", of_all(slow - median.min(slow))),
            ],
        }
    };
    let legend = [
        ("f-main", "half of the turns"),
        ("f-soft", "95 of 100 turns"),
    ];
    bars(
        page,
        "Time of a turn",
        &of_models(summary.iter().map(row)),
        &legend,
    );
}

fn of_models(rows: impl Iterator<Item = Row>) -> Vec<Group> {
    let heading = String::new();
    let rows = rows.collect();
    vec![Group { heading, rows }]
}

pub(super) fn kind_in_words(kind: &str) -> &str {
    match kind.trim() {
        "" => "of no kind",
        kind => kind,
    }
}

fn bars(
    page: &mut Markup,
    title: &'static str,
    groups: &[Group],
    legend: &[(&'static str, &'static str)],
) {
    let total: usize = groups.iter().map(|group| group.rows.len()).sum();
    page.raw("<figure>\n<figcaption>")
        .raw(title)
        .raw("</figcaption>\n<svg role=\"img\" height=\"");
    let mut left = ROWS;
    let mut height = 0;
    let mut shown: Vec<(&Group, &[Row])> = Vec::new();
    for group in groups {
        let rows = &group.rows[..group.rows.len().min(left)];
        left -= rows.len();
        if !rows.is_empty() {
            height += HEADING * usize::from(!group.heading.is_empty());
            height += rows.iter().map(Row::height).sum::<usize>();
            shown.push((group, rows));
        }
    }
    page.show(height)
        .raw("\" aria-label=\"")
        .raw(title)
        .raw(".");
    for (group, rows) in &shown {
        if !group.heading.is_empty() {
            page.raw(" ").name(&group.heading).raw(":");
        }
        for row in *rows {
            page.raw(" ")
                .name(&row.label)
                .raw(", ")
                .show(&row.value)
                .raw(".");
        }
    }
    page.raw("\">\n");
    let mut y = 0;
    for (group, rows) in &shown {
        if !group.heading.is_empty() {
            page.raw("<text class=\"group\" x=\"0\" y=\"")
                .show(y + 16)
                .raw("\">");
            short(page, &group.heading);
            page.raw("</text>\n");
            y += HEADING;
        }
        for row in *rows {
            bar(page, row, y);
            y += row.height();
        }
    }
    page.raw("</svg>\n");
    if total > ROWS {
        page.raw("<p class=\"muted\">")
            .many((total - ROWS) as u64, "more row is", "more rows are")
            .raw(" in the tables.</p>\n");
    }
    if !legend.is_empty() {
        page.raw("<ul class=\"legend\">\n");
        for (class, words) in legend {
            page.raw("<li><svg aria-hidden=\"true\"><rect class=\"")
                .raw(class);
            page.raw("\" width=\"100%\" height=\"100%\" rx=\"2\"/></svg>")
                .raw(words)
                .raw("</li>\n");
        }
        page.raw("</ul>\n");
    }
    page.raw("</figure>\n");
}

fn bar(page: &mut Markup, row: &Row, y: usize) {
    page.raw("<text x=\"0\" y=\"").show(y + 14).raw("\">");
    short(page, &row.label);
    page.raw("</text>\n<text class=\"value\" ");
    if row.is_long() {
        page.raw("x=\"0\" y=\"").show(y + 42);
    } else {
        page.raw("x=\"100%\" text-anchor=\"end\" y=\"").show(y + 14);
    }
    page.raw("\">")
        .show(&row.value)
        .raw("</text>\n<rect class=\"track\" x=\"0\" y=\"")
        .show(y + 19);
    page.raw("\" width=\"100%\" height=\"7\" rx=\"2\"/>\n");
    let mut from = 0.0_f64;
    for (class, width) in &row.pieces {
        // Whatever a report says, a bar stays within its track.
        let width = width.clamp(0.0, 1.0 - from);
        if width <= 0.0 {
            continue;
        }
        page.raw("<rect class=\"")
            .raw(class)
            .raw("\" x=\"")
            .show(format_args!("{:.2}%", from * 100.0));
        page.raw("\" y=\"")
            .show(y + 19)
            .raw("\" width=\"")
            .show(format_args!("{:.2}%", width * 100.0));
        page.raw("\" height=\"7\" rx=\"2\"/>\n");
        from += width;
    }
}

/// A label that leaves room beside it.
fn short(page: &mut Markup, label: &str) {
    match label.char_indices().nth(LABEL) {
        Some((end, _)) => page.name(&label[..end]).raw("…"),
        None => page.name(label),
    };
}

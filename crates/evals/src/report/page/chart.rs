//! Computes the bars of the charts on the report page.

use serde::Serialize;

use super::{
    super::{ModelSummary, compute_share, metric::format_duration},
    scenario_kind_name,
};

/// A horizontal bar of a chart: its label, its value as text and its colored segments.
#[derive(Serialize)]
pub(super) struct ChartBar {
    label: String,
    value: String,
    segments: Vec<BarSegment>,
}

/// A colored segment of a chart's bar. Its position and width are percentages of the chart width.
#[derive(Serialize)]
struct BarSegment {
    class: &'static str,
    x: String,
    width: String,
}

impl ChartBar {
    /// Creates a bar from the CSS classes of its segments and their shares of the chart width (0 to
    /// 1). Segments that exceed the width are cut, because a report file may contain impossible
    /// numbers.
    fn new(label: String, value: String, shares: &[(&'static str, Option<f64>)]) -> Self {
        let mut segments = Vec::new();
        let mut x = 0.0_f64;
        for (class, share) in shares {
            let width = share.unwrap_or(0.0).clamp(0.0, 1.0 - x);
            if width > 0.0 {
                segments.push(BarSegment {
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
            segments,
        }
    }
}

/// Returns one bar for each kind of scenario and each model with runs of this kind. The bar shows
/// the share of passed runs.
pub(super) fn passed_run_bars(summary: &[ModelSummary], kinds: &[&String]) -> Vec<ChartBar> {
    let bars = kinds.iter().flat_map(|kind| {
        let models = summary.iter().filter_map(|model| {
            let (runs, passed) = *model.kinds.get(*kind)?;
            let label = match summary {
                [_] => scenario_kind_name(kind).to_owned(),
                _ => format!("{}: {}", scenario_kind_name(kind), model.model),
            };
            let shares = [("f-main", compute_share(passed, runs))];
            Some(ChartBar::new(label, format!("{passed} of {runs}"), &shares))
        });
        models.collect::<Vec<_>>()
    });
    bars.collect()
}

/// Returns the bar that divides a model's tool calls by their outcomes.
pub(super) fn call_outcome_bar(model: &ModelSummary) -> ChartBar {
    let counts = &model.counts;
    let outcomes = [
        ("f-good", counts.successful, "successful"),
        ("f-bad", counts.failed, "failed"),
        ("f-warn", counts.count_invalid_calls(), "invalid"),
        ("f-none", counts.not_executed, "not executed"),
    ];
    let texts = outcomes.iter().filter(|(_, count, _)| *count > 0);
    let texts: Vec<String> = texts
        .map(|(_, count, name)| format!("{count} {name}"))
        .collect();
    let value = match texts.as_slice() {
        [] => "no calls".to_owned(),
        texts => texts.join(", "),
    };
    let shares = outcomes.map(|(class, count, _)| (class, compute_share(count, counts.calls)));
    ChartBar::new(model.model.to_string(), value, &shares)
}

/// Returns one bar for each model, which shows the median and the 95th percentile of its turn
/// durations. The largest 95th percentile has the full chart width.
pub(super) fn turn_duration_bars(summary: &[ModelSummary]) -> Vec<ChartBar> {
    let durations = summary.iter().filter_map(|model| model.turn_ms);
    let longest = durations.map(|(_, slow)| slow).max().unwrap_or(0).max(1);
    let bar = |model: &ModelSummary| {
        let label = model.model.to_string();
        let Some((median, slow)) = model.turn_ms else {
            return ChartBar::new(label, "no turns".to_owned(), &[]);
        };
        let (text, slow_text) = (format_duration(median), format_duration(slow));
        let rest = slow.saturating_sub(median);
        let shares = [
            ("f-main", compute_share(median, longest)),
            ("f-soft", compute_share(rest, longest)),
        ];
        ChartBar::new(label, format!("{text}, p95 {slow_text}"), &shares)
    };
    summary.iter().map(bar).collect()
}

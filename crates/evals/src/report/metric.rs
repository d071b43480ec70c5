//! Metrics of a model: shares, medians, and averages per run.

use serde::{Deserialize, Serialize};

use super::summary::{ModelSummary, compute_share};

/// Text that reports show for an unknown value.
pub(super) const UNKNOWN: &str = "–";

/// A metric that summarizes all runs of one model in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Metric {
    /// Share of the runs that met all expectations.
    Passed,
    /// Share of right calls among the calls that were expected or made.
    Accuracy,
    /// Average number of tool calls per run.
    Calls,
    /// Share of the tool calls that returned a result without an error.
    Successful,
    /// Share of the tool calls whose tool or MCP server failed.
    Failed,
    /// Share of the tool calls with an unknown tool, or with invalid or wrong arguments.
    Hallucinated,
    /// Share of the tool calls that were not expected or whose result was already known.
    Unnecessary,
    /// Share of the tool calls that used a forbidden tool.
    Forbidden,
    /// Average number of made-up values in the answers of a run. Unknown in reports of earlier
    /// programs.
    MadeUpValues,
    /// Median of the durations of all turns, in milliseconds.
    MedianTurn,
    /// 95th percentile of the durations of all turns, in milliseconds.
    SlowTurn,
    /// Average number of input tokens per run. Unknown if the provider did not report the token
    /// counts of every response.
    InputTokens,
    /// Average number of output tokens per run. Unknown if the provider did not report the token
    /// counts of every response.
    OutputTokens,
    /// Average cost per run in US dollars. Unknown if a price or a token count is unknown.
    Cost,
}

impl Metric {
    /// All metrics in the order of the reports.
    pub const ALL: [Self; 14] = [
        Self::Passed,
        Self::Accuracy,
        Self::Calls,
        Self::Successful,
        Self::Failed,
        Self::Hallucinated,
        Self::Unnecessary,
        Self::Forbidden,
        Self::MadeUpValues,
        Self::MedianTurn,
        Self::SlowTurn,
        Self::InputTokens,
        Self::OutputTokens,
        Self::Cost,
    ];

    /// Returns the name under which reports show the metric, such as `Calls per run`.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Accuracy => "Accuracy",
            Self::Calls => "Calls per run",
            Self::Successful => "Successful calls",
            Self::Failed => "Failed calls",
            Self::Hallucinated => "Hallucinated calls",
            Self::Unnecessary => "Unnecessary calls",
            Self::Forbidden => "Forbidden calls",
            Self::MadeUpValues => "Made-up values per run",
            Self::MedianTurn => "Turn time, median",
            Self::SlowTurn => "Turn time, p95",
            Self::InputTokens => "Input tokens per run",
            Self::OutputTokens => "Output tokens per run",
            Self::Cost => "Cost per run",
        }
    }

    /// Returns the value of this metric in a model's summary. Returns `None` if the value is
    /// unknown, or undefined without runs, turns or calls.
    pub fn value_in_summary(self, summary: &ModelSummary) -> Option<f64> {
        let counts = &summary.counts;
        let of_calls = |count: u64| compute_share(count, counts.calls);
        let tokens = |count: Option<u64>| {
            let is_complete = summary.unmetered_turns == 0;
            compute_share(count.filter(|_| is_complete)?, summary.runs)
        };
        match self {
            Self::Passed => compute_share(summary.passed, summary.runs),
            Self::Accuracy => counts.accuracy(),
            Self::Calls => compute_share(counts.calls, summary.runs),
            Self::Successful => of_calls(counts.successful),
            Self::Failed => of_calls(counts.failed),
            Self::Hallucinated => of_calls(counts.hallucinated),
            Self::Unnecessary => of_calls(counts.unnecessary),
            Self::Forbidden => of_calls(counts.forbidden),
            Self::MadeUpValues => compute_share(summary.made_up_values?, summary.runs),
            Self::MedianTurn => compute_share(summary.turn_ms?.0, 1),
            Self::SlowTurn => compute_share(summary.turn_ms?.1, 1),
            Self::InputTokens => tokens(summary.usage.input_tokens),
            Self::OutputTokens => tokens(summary.usage.output_tokens),
            Self::Cost => Some(summary.cost_usd? * compute_share(1, summary.runs)?),
        }
    }

    /// Returns whether a larger value of the metric is better. Returns `None` for a metric without
    /// a better direction: call count, share of successful calls, durations, tokens and cost.
    pub(super) fn is_larger_better(self) -> Option<bool> {
        match self {
            Self::Passed | Self::Accuracy => Some(true),
            Self::Failed
            | Self::Hallucinated
            | Self::Unnecessary
            | Self::Forbidden
            | Self::MadeUpValues => Some(false),
            _ => None,
        }
    }

    /// Returns the value of this metric in a model's summary as text. An unknown value is `–`.
    pub(crate) fn format_in_summary(self, summary: &ModelSummary) -> String {
        self.format_optional_value(self.value_in_summary(summary))
    }

    pub(super) fn format_optional_value(self, value: Option<f64>) -> String {
        value.map_or_else(|| UNKNOWN.to_owned(), |value| self.format_value(value))
    }

    /// Formats a value with the unit of this metric, such as `93.3%`, `1.24 s`, `1,234` or
    /// `$12.00`. A share is given as 0 to 1, and a duration in milliseconds.
    pub fn format_value(self, value: f64) -> String {
        match self {
            Self::Calls | Self::MadeUpValues => format!("{value:.2}"),
            Self::MedianTurn | Self::SlowTurn => format_milliseconds(value),
            Self::InputTokens | Self::OutputTokens => {
                add_thousands_separators(&format!("{value:.0}"))
            }
            Self::Cost => format_dollars(value),
            _ => format!("{:.1}%", value * 100.0),
        }
    }

    /// Formats a difference with its sign and the unit of this metric, such as `+3.1 points` or
    /// `−200 ms`. The text of a difference that rounds to zero is `0`.
    pub(crate) fn format_difference(self, by: f64) -> String {
        let text = self.format_value(by.abs());
        let size = match text.strip_suffix("%") {
            Some(points) => format!("{points} points"),
            None => text,
        };
        let is_zero = !size.bytes().any(|it| (b'1'..=b'9').contains(&it));
        match is_zero {
            true => "0".to_owned(),
            false if by < 0.0 => format!("−{size}"),
            false => format!("+{size}"),
        }
    }
}

/// Formats a whole number of milliseconds: `12 ms`, `1.24 s`, `2 min 5 s`.
pub(crate) fn format_duration(ms: u64) -> String {
    format_milliseconds(compute_share(ms, 1).unwrap_or(0.0))
}

/// Formats a fractional number of milliseconds: `12 ms`, `1.24 s`, `2 min 5 s`.
pub(crate) fn format_milliseconds(ms: f64) -> String {
    if ms < 1_000.0 {
        format!("{ms:.0} ms")
    } else if ms < 60_000.0 {
        format!("{:.2} s", ms / 1_000.0)
    } else {
        let seconds = (ms / 1_000.0).round();
        let (minutes, seconds) = ((seconds / 60.0).floor(), seconds % 60.0);
        format!("{minutes:.0} min {seconds:.0} s")
    }
}

/// Formats an amount in US dollars, such as `$12.00`. Amounts below $1 have four decimal places,
/// amounts below $0.01 have six, and amounts below $0.000001 have scientific notation.
pub(crate) fn format_dollars(sum: f64) -> String {
    match sum {
        0.0 => "$0".to_owned(),
        _ if sum.abs() < 0.000_001 => format!("${sum:.1e}"),
        _ if sum.abs() < 0.01 => format!("${sum:.6}"),
        _ if sum.abs() < 1.0 => format!("${sum:.4}"),
        _ => format!("${sum:.2}"),
    }
}

/// Inserts thousands separators into the digits of a whole number: `1234567` becomes `1,234,567`.
pub(crate) fn add_thousands_separators(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        assert_eq!(Metric::Passed.format_value(0.933_333), "93.3%");
        assert_eq!(Metric::Calls.format_value(1.5), "1.50");
        assert_eq!(Metric::MedianTurn.format_value(12.0), "12 ms");
        assert_eq!(Metric::SlowTurn.format_value(1_240.0), "1.24 s");
        assert_eq!(Metric::SlowTurn.format_value(125_000.0), "2 min 5 s");
        assert_eq!(Metric::SlowTurn.format_value(119_700.0), "2 min 0 s");
        assert_eq!(Metric::InputTokens.format_value(1_234_567.4), "1,234,567");
        assert_eq!(Metric::InputTokens.format_value(123.0), "123");
        let costs =
            [0.0, 0.000_000_12, 0.001_2, 0.12, 12.0].map(|it| Metric::Cost.format_value(it));
        assert_eq!(costs, ["$0", "$1.2e-7", "$0.001200", "$0.1200", "$12.00"]);
    }

    #[test]
    fn differences_have_a_sign_unless_they_are_zero() {
        assert_eq!(Metric::Passed.format_difference(0.031), "+3.1 points");
        assert_eq!(Metric::Passed.format_difference(-0.1), "−10.0 points");
        assert_eq!(Metric::MedianTurn.format_difference(-200.0), "−200 ms");
        assert_eq!(Metric::MedianTurn.format_difference(0.2), "0");
        assert_eq!(Metric::Cost.format_difference(0.0), "0");
    }
}

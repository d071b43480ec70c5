//! Figures of a model that can be held against others, whatever the number of runs.

use serde::{Deserialize, Serialize};

use super::summary::{ModelSummary, share};

/// A figure. None depends on how many runs there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Figure {
    /// Share of runs that did all that was expected.
    Passed,
    /// Share of expected and unexpected calls that were right.
    Accuracy,
    /// Calls for each run.
    Calls,
    /// Share of calls with which the tool did its work.
    Successful,
    /// Share of calls in which the tool or its server failed.
    Failed,
    /// Share of calls with invalid or invented arguments, or of tools that do not exist.
    Hallucinated,
    /// Share of calls that nobody expected, or whose result was there already.
    Unnecessary,
    /// Share of calls of tools that must not be called.
    Forbidden,
    /// Milliseconds that half of the turns did not exceed.
    MedianTurn,
    /// Milliseconds that 95 of 100 turns did not exceed.
    SlowTurn,
    /// Tokens of all prompts, for each run; only if all were told.
    InputTokens,
    /// Tokens that the model wrote, for each run; only if all were told.
    OutputTokens,
    /// US dollars for each run; only if all is known.
    Cost,
}

/// What is in it when a figure grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Good,
    Bad,
    /// It depends: on the machine, the prices, the taste.
    Neither,
}

impl Figure {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::Passed,
        Self::Accuracy,
        Self::Calls,
        Self::Successful,
        Self::Failed,
        Self::Hallucinated,
        Self::Unnecessary,
        Self::Forbidden,
        Self::MedianTurn,
        Self::SlowTurn,
        Self::InputTokens,
        Self::OutputTokens,
        Self::Cost,
    ];

    /// Its name, for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Accuracy => "Accuracy",
            Self::Calls => "Calls per run",
            Self::Successful => "Successful calls",
            Self::Failed => "Failed calls",
            Self::Hallucinated => "Hallucinated calls",
            Self::Unnecessary => "Unnecessary calls",
            Self::Forbidden => "Forbidden calls",
            Self::MedianTurn => "Turn, median",
            Self::SlowTurn => "Turn, 95 % within",
            Self::InputTokens => "Input tokens per run",
            Self::OutputTokens => "Output tokens per run",
            Self::Cost => "Cost per run",
        }
    }

    /// Its value; `None` if there is nothing that it could be taken of, or too little is known.
    pub fn of(self, it: &ModelSummary) -> Option<f64> {
        let counts = &it.counts;
        let tokens = |count: Option<u64>| {
            let all = (it.unmetered_turns == 0).then_some(count).flatten();
            all.and_then(|count| share(count, it.runs))
        };
        let times = |pick: fn((u64, u64)) -> u64| it.turn_ms.and_then(|both| share(pick(both), 1));
        match self {
            Self::Passed => share(it.passed, it.runs),
            Self::Accuracy => counts.accuracy(),
            Self::Calls => share(counts.calls, it.runs),
            Self::Successful => counts.successful_share(),
            Self::Failed => counts.failed_share(),
            Self::Hallucinated => counts.hallucinated_share(),
            Self::Unnecessary => counts.unnecessary_share(),
            Self::Forbidden => share(counts.forbidden, counts.calls),
            Self::MedianTurn => times(|(median, _)| median),
            Self::SlowTurn => times(|(_, slow)| slow),
            Self::InputTokens => tokens(it.usage.input_tokens),
            Self::OutputTokens => tokens(it.usage.output_tokens),
            Self::Cost => it
                .cost_usd
                .zip(share(1, it.runs))
                .map(|(sum, each)| sum * each),
        }
    }

    pub(crate) fn growth(self) -> Growth {
        match self {
            Self::Passed | Self::Accuracy => Growth::Good,
            Self::Failed | Self::Hallucinated | Self::Unnecessary | Self::Forbidden => Growth::Bad,
            // A call more or less that succeeds is judged by the others.
            Self::Calls
            | Self::Successful
            | Self::MedianTurn
            | Self::SlowTurn
            | Self::InputTokens
            | Self::OutputTokens
            | Self::Cost => Growth::Neither,
        }
    }

    /// A value in words: `93.3 %`, `1.24 s`, `1,234`, `$0.0012`.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Passed
            | Self::Accuracy
            | Self::Successful
            | Self::Failed
            | Self::Hallucinated
            | Self::Unnecessary
            | Self::Forbidden => format!("{:.1} %", value * 100.0),
            Self::Calls => format!("{value:.2}"),
            Self::MedianTurn | Self::SlowTurn => seconds(value),
            Self::InputTokens | Self::OutputTokens => grouped(&format!("{value:.0}")),
            Self::Cost => dollars(value),
        }
    }

    /// A difference in words, with its sign: `+3.1 points`, `−0.20 s`.
    pub(crate) fn difference(self, by: f64) -> String {
        // Shares differ by points: `1 %` would be one of what it was.
        let size = match self.text(by.abs()).strip_suffix(" %") {
            Some(points) => format!("{points} points"),
            None => self.text(by.abs()),
        };
        let is_nothing = !size.bytes().any(|it| (b'1'..=b'9').contains(&it));
        match is_nothing {
            true => "0".to_owned(),
            false if by < 0.0 => format!("−{size}"),
            false => format!("+{size}"),
        }
    }
}

/// A time in milliseconds: `12 ms`, `1.24 s`, `2 min 5 s`.
pub(crate) fn seconds(ms: f64) -> String {
    if ms < 1_000.0 {
        format!("{ms:.0} ms")
    } else if ms < 60_000.0 {
        format!("{:.2} s", ms / 1_000.0)
    } else {
        let whole = (ms / 1_000.0).round();
        format!("{:.0} min {:.0} s", (whole / 60.0).floor(), whole % 60.0)
    }
}

/// US dollars: two digits after the point, or as many as show something of a small sum.
pub(crate) fn dollars(sum: f64) -> String {
    match sum {
        0.0 => "$0".to_owned(),
        _ if sum.abs() < 0.000_001 => format!("${sum:.1e}"),
        _ if sum.abs() < 0.01 => format!("${sum:.6}"),
        _ if sum.abs() < 1.0 => format!("${sum:.4}"),
        _ => format!("${sum:.2}"),
    }
}

/// The digits of a whole number in threes.
pub(crate) fn grouped(digits: &str) -> String {
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
    fn values_are_told_in_the_unit_of_people() {
        assert_eq!(Figure::Passed.text(0.933_333), "93.3 %");
        assert_eq!(Figure::Calls.text(1.5), "1.50");
        assert_eq!(Figure::MedianTurn.text(12.0), "12 ms");
        assert_eq!(Figure::SlowTurn.text(1_240.0), "1.24 s");
        assert_eq!(Figure::SlowTurn.text(125_000.0), "2 min 5 s");
        assert_eq!(Figure::SlowTurn.text(119_700.0), "2 min 0 s");
        assert_eq!(Figure::InputTokens.text(1_234_567.4), "1,234,567");
        assert_eq!(Figure::InputTokens.text(123.0), "123");
        let costs = [0.0, 0.000_000_12, 0.001_2, 0.12, 12.0].map(|it| Figure::Cost.text(it));
        assert_eq!(costs, ["$0", "$1.2e-7", "$0.001200", "$0.1200", "$12.00"]);
    }

    #[test]
    fn differences_have_a_sign_unless_there_is_none() {
        assert_eq!(Figure::Passed.difference(0.031), "+3.1 points");
        assert_eq!(Figure::Passed.difference(-0.1), "−10.0 points");
        assert_eq!(Figure::MedianTurn.difference(-200.0), "−200 ms");
        assert_eq!(Figure::MedianTurn.difference(0.2), "0");
        assert_eq!(Figure::Cost.difference(0.0), "0");
    }
}

//! Rules by which the calls of a turn are scored.

use serde::Deserialize;

/// The rules by which the calls of a turn are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScoringRules {
    /// Scores all calls of the turn, with the input that the tools received. An additional call is
    /// a violation only if it is forbidden or if no call is expected.
    #[default]
    Switchboard,
    /// Scores by the rules of the [Berkeley Function Calling Leaderboard](crate::bfcl): the calls
    /// of the first response count, as the model wrote them. They must be exactly the expected
    /// calls, in any order.
    Bfcl,
}

//! The rules of scoring.

use serde::Deserialize;

/// The rules by which the calls of a turn are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScoringRules {
    /// All calls of the turn count, with the input that the tools received. An additional call is a
    /// fault only if it is forbidden or no call is expected.
    #[default]
    Switchboard,
    /// The rules of the [Berkeley Function Calling Leaderboard](crate::bfcl): the calls of the first
    /// response count, as the model wrote them. They must be exactly the expected ones, in any
    /// order.
    Bfcl,
}

//! Rules by which the tool calls of a turn are scored.

use serde::Deserialize;

/// Rules by which the tool calls of a turn are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScoringRules {
    /// All calls of the turn are scored, with the input that the tools received. A call that is not
    /// expected is a fault only if it is forbidden or if no call is expected.
    #[default]
    Switchboard,
    /// The rules of the [Berkeley Function Calling Leaderboard](crate::bfcl) apply: the calls of
    /// the first response count, as the model wrote them. They must be exactly the expected calls,
    /// in any order.
    Bfcl,
}

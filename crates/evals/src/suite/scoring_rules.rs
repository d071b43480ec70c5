//! By whose rules calls are judged.

use serde::{Deserialize, Serialize};

/// By whose rules the calls of a turn are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scoring {
    /// All calls of the turn count, with the input that the tools got. What is not expected does no harm unless it
    /// is forbidden or none is expected at all.
    #[default]
    Switchboard,
    /// As the [Berkeley Function Calling Leaderboard](crate::bfcl) scores: the calls of the model's first answer
    /// count, as it wrote them; they must be the expected ones in any order, and no more.
    Bfcl,
}

impl Scoring {
    /// Whether it is the one that need not be written down.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

//! What was changed in a tool's input, in words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Characters quoted of a value at most.
const QUOTED: usize = 40;

/// One small change that made an input usable. Repairs are shown to whoever watches the run and are
/// never silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// Where, as a JSON pointer into the input; empty for the whole of it.
    pub path: String,
    /// What was done, in words.
    pub what: String,
}

impl Repair {
    pub(super) fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            what: what.into(),
        }
    }

    pub(super) fn whole(what: impl Into<String>) -> Self {
        Self::new("", what)
    }
}

/// `/customer_id: the text "42" was read as a number`.
impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.what),
            path => write!(f, "{path}: {}", self.what),
        }
    }
}

/// The text in quotes, shortened, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTED).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

//! How a model is brought to answer in the form.

use std::fmt;

use serde::{Deserialize, Serialize};
use switchboard_domain::ModelCapabilities;

/// How a model is brought to answer in the form, from the firmest way to the loosest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatterMode {
    /// The provider holds the answer to the schema; no tool is needed.
    Native,
    /// The formatter is the only tool, and the tool choice names it.
    Named,
    /// The formatter is the only tool, and some tool is required.
    Required,
    /// The formatter is the only tool and the model is asked to use it; whether it did is checked.
    Auto,
}

impl FormatterMode {
    /// The modes to try with a model, in this order. What is not known of a model is tried where
    /// the next mode is a way out; the last one every model takes.
    pub(super) fn of(capabilities: &ModelCapabilities) -> Vec<Self> {
        let forced = capabilities.forced_tool_choice;
        let native = match capabilities.structured_output {
            // A server that does not know of formats may ignore one silently, which a forced tool
            // shows sooner; where no tool can be forced it is the better guess.
            None => forced == Some(false) || capabilities.tools == Some(false),
            Some(held) => held,
        };
        let mut modes = Vec::new();
        if native {
            modes.push(Self::Native);
        }
        if forced != Some(false) {
            modes.extend([Self::Named, Self::Required]);
        }
        modes.push(Self::Auto);
        modes
    }
}

impl fmt::Display for FormatterMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "the provider's structured output",
            Self::Named => "a tool choice that names the formatter",
            Self::Required => "a required tool, the formatter alone",
            Self::Auto => "the formatter alone, by asking for it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FormatterMode::{Auto, Named, Native, Required};

    #[test]
    fn the_modes_follow_what_the_model_can_do() {
        let (yes, no) = (Some(true), Some(false));
        for (structured_output, forced_tool_choice, expected) in [
            (yes, yes, &[Native, Named, Required, Auto][..]),
            (yes, no, &[Native, Auto]),
            (yes, None, &[Native, Named, Required, Auto]),
            (no, yes, &[Named, Required, Auto]),
            (no, no, &[Auto]),
            (None, yes, &[Named, Required, Auto]),
            (None, no, &[Native, Auto]),
            (None, None, &[Named, Required, Auto]),
        ] {
            let capabilities = ModelCapabilities {
                structured_output,
                forced_tool_choice,
                ..ModelCapabilities::default()
            };
            let modes = FormatterMode::of(&capabilities);
            assert_eq!(modes, expected, "{capabilities:?}");
            assert!(modes.is_sorted());
        }
    }
}

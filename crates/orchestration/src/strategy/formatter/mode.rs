//! Ways to make a model write the answer in the required format.

use std::fmt;

use serde::{Deserialize, Serialize};
use switchboard_domain::ModelCapabilities;

/// A way to make a model write the answer in the required format. The variants are ordered from the
/// strictest to the loosest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatterMode {
    /// The provider enforces the JSON Schema of the answer, without a tool.
    Native,
    /// The request declares one tool, whose input is the answer ([`TOOL`](super::TOOL)). The tool
    /// choice names this tool.
    Named,
    /// The request declares only the tool whose input is the answer, and the tool choice requires a
    /// tool call.
    Required,
    /// The request declares only the tool whose input is the answer. Only the prompt asks the model
    /// to call it.
    Auto,
}

impl FormatterMode {
    /// Returns the modes to try with a model, the strictest first.
    ///
    /// A forced tool choice is tried unless the model is known not to support it. The last mode is
    /// always [`FormatterMode::Auto`], which needs no support by the provider.
    pub(super) fn supported_modes(capabilities: &ModelCapabilities) -> Vec<Self> {
        let forced = capabilities.forced_tool_choice;
        let native = match capabilities.structured_output {
            // A server may silently ignore a response format that it does not support. If support
            // is unknown, a forced tool choice is therefore preferred.
            None => forced == Some(false) || capabilities.tools == Some(false),
            Some(is_supported) => is_supported,
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
            Self::Named => "a tool choice with the name of the formatter",
            Self::Required => "a required tool call",
            Self::Auto => "a prompt that requests the formatter",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FormatterMode::{Auto, Named, Native, Required};

    #[test]
    fn the_modes_follow_the_capabilities_of_the_model() {
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
            let modes = FormatterMode::supported_modes(&capabilities);
            assert_eq!(modes, expected, "{capabilities:?}");
            assert!(modes.is_sorted());
        }
    }
}

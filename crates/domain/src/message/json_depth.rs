//! Limits on the nesting of JSON in messages.

use serde_json::Value;

use super::{Part, ToolContent, ToolInput, ToolResult};
use crate::json_depth::{TooDeep, check_depth};

impl Part {
    /// Returns [`TooDeep`] if a JSON value in the part exceeds the limit of [`check_depth`]: the
    /// provider state, the input of a tool use, or the data of a tool result.
    pub fn check_depth(&self) -> Result<(), TooDeep> {
        if let Some(state) = self.provider_state() {
            check_depth(&state.data)?;
        }
        match self {
            Self::ToolUse(tool_use) => match &tool_use.input {
                ToolInput::Object(input) => check_depth(input.as_value()),
                ToolInput::Malformed { .. } => Ok(()),
            },
            Self::ToolResult(ToolResult {
                content,
                structured,
                ..
            }) => check_result_depth(content, structured.as_deref()),
            _ => Ok(()),
        }
    }
}

/// Returns [`TooDeep`] if the structured data or an unknown content block of a tool result exceeds
/// the limit of [`check_depth`].
pub(crate) fn check_result_depth(
    content: &[ToolContent],
    structured: Option<&Value>,
) -> Result<(), TooDeep> {
    let unknown = content.iter().filter_map(|part| match part {
        ToolContent::Unknown { value } => Some(value),
        _ => None,
    });
    unknown.chain(structured).try_for_each(check_depth)
}

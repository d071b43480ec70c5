//! Limits on the nesting of JSON in messages.

use serde_json::Value;

use super::{Part, ToolContent, ToolInput, ToolResult};
use crate::json_depth::{TooDeep, check_depth};

impl Part {
    /// Checks every JSON value in the part with [`check_depth`].
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

/// Checks every JSON value in a tool result with [`check_depth`].
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

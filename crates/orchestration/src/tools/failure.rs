//! Reasons why a tool use has no proper result.

use serde::{Deserialize, Serialize};
use switchboard_domain::ToolCallError;

/// The reason why a tool use has no proper result.
///
/// Reports, metrics and the audit log contain this reason. The model reads the text of the tool
/// result instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolFailure {
    /// The called tool does not exist.
    UnknownTool,
    /// The input is not a JSON object, or it is cut off.
    MalformedInput,
    /// The input does not match the tool's schema.
    InvalidInput,
    /// A person or a rule denied the call.
    Denied,
    /// The call needs an approval, and no person was available or answered in time.
    NotApproved,
    /// An earlier call of the same response was denied, or a guard stopped the later calls.
    Skipped,
    /// A limit on tool calls was reached.
    LimitReached,
    /// The model repeats an earlier call, whose result is returned again.
    Repeated,
    /// The response was refused, filtered or interrupted, so its calls do not run.
    Withheld,
    /// The server is not reachable. The call was not sent.
    Unavailable,
    /// The server rejected the call, so the tool did not run.
    Refused,
    /// The call timed out. Its effect is unknown.
    Timeout,
    /// The connection failed during the call. Its effect is unknown.
    Broken,
    /// The run could not be stored before a call that is not safe to repeat, so the call was not
    /// sent.
    NotStored,
    /// The program ended during the call. Its effect is unknown.
    Interrupted,
    /// The run was cancelled before or during the call.
    Cancelled,
    /// The tool ran and returned an error.
    ToolError,
    /// The output of the tool is unusable.
    InvalidOutput,
}

impl ToolFailure {
    /// Returns the serialized name of the failure, such as `unknown_tool`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::MalformedInput => "malformed_input",
            Self::InvalidInput => "invalid_input",
            Self::Denied => "denied",
            Self::NotApproved => "not_approved",
            Self::Skipped => "skipped",
            Self::LimitReached => "limit_reached",
            Self::Repeated => "repeated",
            Self::Withheld => "withheld",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::NotStored => "not_stored",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::ToolError => "tool_error",
            Self::InvalidOutput => "invalid_output",
        }
    }

    /// Returns whether the model called a tool that does not exist or wrote invalid arguments.
    pub fn is_hallucination(self) -> bool {
        matches!(
            self,
            Self::UnknownTool | Self::MalformedInput | Self::InvalidInput
        )
    }

    /// Returns whether it is certain that the tool did not run.
    pub fn did_not_run(self) -> bool {
        !matches!(
            self,
            Self::Timeout
                | Self::Broken
                | Self::Interrupted
                | Self::Cancelled
                | Self::ToolError
                | Self::InvalidOutput
        )
    }
}

impl From<&ToolCallError> for ToolFailure {
    fn from(error: &ToolCallError) -> Self {
        match error {
            ToolCallError::UnknownTool { .. } => Self::UnknownTool,
            ToolCallError::Unavailable { .. } => Self::Unavailable,
            ToolCallError::Timeout { .. } => Self::Timeout,
            ToolCallError::Refused { .. } => Self::Refused,
            ToolCallError::InvalidAnswer { .. } => Self::InvalidOutput,
            // Treats unknown errors like a broken connection, whose effect is unknown.
            _ => Self::Broken,
        }
    }
}

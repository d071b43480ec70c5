//! Reasons why a tool call has no usable result of its tool.

use serde::{Deserialize, Serialize};
use switchboard_domain::ToolCallError;

/// The reason why a tool call has no usable result of its own: the call was not executed, failed or
/// repeated an earlier call.
///
/// Reports, metrics and the audit log contain this reason. The model reads the text of the tool
/// result instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolFailure {
    /// The model called a tool that does not exist.
    UnknownTool,
    /// The tool input is not a JSON object, or it is cut off.
    MalformedInput,
    /// The tool input does not match the tool's input schema.
    InvalidInput,
    /// A person or an approval rule denied the call.
    Denied,
    /// The call needs an approval, and no person was available or answered in time.
    NotApproved,
    /// The call did not run, because an earlier call of the same response was denied, or because
    /// the result of an earlier call met the condition of a configured guard.
    Skipped,
    /// A limit of the run on tool calls was reached, so the call did not run.
    LimitReached,
    /// The model repeated an earlier call, so the earlier result was returned again.
    Repeated,
    /// The model response was refused, filtered, interrupted or too long for the context window, so
    /// its calls did not run.
    Withheld,
    /// The tool's server is not reachable, so the call was not sent.
    Unavailable,
    /// The server rejected the call, so the tool did not run.
    Refused,
    /// The call exceeded its time limit. Its effect is unknown.
    Timeout,
    /// The connection to the server failed during the call. Its effect is unknown.
    Broken,
    /// The run could not be stored before a call that is not safe to repeat, so the call was not
    /// sent.
    NotStored,
    /// The process of the run ended during the call. Its effect is unknown.
    Interrupted,
    /// The run was cancelled or reached its time limit before or during the call.
    Cancelled,
    /// The tool ran and returned an error.
    ToolError,
    /// The tool returned an output that cannot be used, such as invalid structured content.
    InvalidOutput,
}

impl ToolFailure {
    /// Returns the serialized name of this reason, such as `unknown_tool`.
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

    /// Returns whether the tool certainly did not run. Returns `false` if the tool ran or may have
    /// run.
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
            // Other errors count as a broken connection, because the effect of the call is unknown.
            _ => Self::Broken,
        }
    }
}

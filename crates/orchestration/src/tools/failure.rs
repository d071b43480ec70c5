//! Why a tool use has no proper result.

use serde::{Deserialize, Serialize};
use switchboard_domain::ToolCallError;

/// Why a tool use has no proper result, in a word that programs can count.
///
/// The model reads the text of the result; surfaces, metrics and the audit read this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolFailure {
    /// The model asked for a tool that does not exist.
    UnknownTool,
    /// The model wrote no JSON object, or one that was cut off.
    MalformedInput,
    /// The input does not fit the tool's schema.
    InvalidInput,
    /// A person or a rule said no.
    Denied,
    /// Approval was needed and nobody was there, or nobody answered in time.
    NotApproved,
    /// An earlier call of the same answer was declined or a guard stopped those after it.
    Skipped,
    /// A limit on tool calls was reached.
    LimitReached,
    /// The same call was made before; its earlier result stands in for it.
    Repeated,
    /// The answer that asked for it is not to be acted on: refused, filtered or broken off.
    Withheld,
    /// The server could not be reached; the call did not leave.
    Unavailable,
    /// The server turned the call away; the tool did not run.
    Refused,
    /// No answer in time; whether the tool did its work is not known.
    Timeout,
    /// The connection broke in the call; whether the tool did its work is not known.
    Broken,
    /// The run could not be stored before the call, which might then have been made twice; it did not leave.
    NotStored,
    /// The program ended in the call; whether the tool did its work is not known.
    Interrupted,
    /// The run was cancelled before or in the call.
    Cancelled,
    /// The tool ran and says that it failed.
    ToolError,
    /// The tool's answer cannot be used, or its structured result does not fit the schema that it declares.
    InvalidOutput,
}

impl ToolFailure {
    /// Its name in JSON.
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

    /// Whether the model invented something: a tool, or arguments that do not fit.
    pub fn is_hallucination(self) -> bool {
        matches!(
            self,
            Self::UnknownTool | Self::MalformedInput | Self::InvalidInput
        )
    }

    /// Whether the tool certainly did not run.
    pub fn did_not_run(self) -> bool {
        match self {
            Self::UnknownTool
            | Self::MalformedInput
            | Self::InvalidInput
            | Self::Denied
            | Self::NotApproved
            | Self::Skipped
            | Self::LimitReached
            | Self::Repeated
            | Self::Withheld
            | Self::Unavailable
            | Self::NotStored
            | Self::Refused => true,
            Self::Timeout
            | Self::Broken
            | Self::Interrupted
            | Self::Cancelled
            | Self::ToolError
            | Self::InvalidOutput => false,
        }
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
            // New kinds of the domain are taken for the worst until they have a word here.
            _ => Self::Broken,
        }
    }
}

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{JsonObject, ToolAnnotations, ToolOrigin, ToolUse};

/// Asks a person, or whoever decides in a person's stead, whether a tool may run.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Approver: Send + Sync {
    /// Waits for the decision. Dropping the future withdraws the question.
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision;
}

/// What is to be approved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The run that waits.
    pub run_id: String,
    /// The call with its input.
    pub tool_use: ToolUse,
    /// Where the tool lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// What the tool says about itself; untrusted.
    #[serde(default)]
    pub annotations: ToolAnnotations,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// It may run.
    Allow {
        /// The input to use instead of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<JsonObject>,
        /// For how long the answer holds.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// It may not run.
    Deny {
        /// Why, for the model to see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody is there to ask. The tool is not run, and the model is told so.
    NobodyThere,
}

/// For how long an approval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// Calls of this tool in this session.
    Session,
    /// Calls of this tool from now on.
    Always,
}

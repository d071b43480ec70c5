//! Inputs and outputs of a run: the steps for the driver and their results.

use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ApprovalRequest, ChatRequest, SharedObject, ToolAnnotations, ToolCallError, ToolOutput,
};

use crate::RunEventKind;

/// The next action of the driver.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Call the model: [`Run::begin_model_call`](crate::Run::begin_model_call), then the method
    /// that the purpose of the [`ModelCall`] names.
    CallModel,
    /// Request a decision about each of these: [`Run::apply_decision`](crate::Run::apply_decision).
    AskApproval(Vec<ApprovalRequest>),
    /// Call these tools, concurrently if possible. Call
    /// [`Run::tool_started`](crate::Run::tool_started) before each call and
    /// [`Run::tool_finished`](crate::Run::tool_finished) after it, in any order.
    CallTools(Vec<PlannedCall>),
    /// Nothing is left to do: [`Run::report`](crate::Run::report) returns the result.
    Done,
}

/// A tool call that may start.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall {
    /// Id of the tool use.
    pub id: String,
    /// The tool's name as declared.
    pub name: String,
    /// The server that offers the tool.
    pub server: Option<String>,
    /// The input, valid by the tool's schema.
    pub input: SharedObject,
    /// The tool's annotations.
    pub annotations: ToolAnnotations,
    /// Identical for every attempt of this call, also in another process.
    pub idempotency_key: String,
}

/// The outcome of one tool call, with all its attempts.
#[derive(Debug)]
pub struct ToolCallOutcome {
    /// The tool's output, or the reason why there is none.
    pub result: Result<ToolOutput, ToolCallError>,
    /// Number of attempts.
    pub attempts: u32,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Whether the result is an earlier one of an equal call and no tool ran.
    pub cached: bool,
}

impl ToolCallOutcome {
    /// Returns the outcome of a single attempt. `duration_ms` is in milliseconds.
    pub fn new(result: Result<ToolOutput, ToolCallError>, duration_ms: u64) -> Self {
        Self {
            result,
            attempts: 1,
            duration_ms,
            cached: false,
        }
    }
}

/// A request of a run to its model.
#[derive(Debug)]
pub struct ModelCall {
    /// The request. Boxed because it is large and passes through several futures.
    pub request: Box<ChatRequest>,
    /// The purpose, which decides where the response goes.
    pub purpose: CallPurpose,
    /// Events of the preparation.
    pub events: Vec<RunEventKind>,
}

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    /// The next response of the conversation:
    /// [`Run::model_answered`](crate::Run::model_answered) or
    /// [`Run::model_failed`](crate::Run::model_failed).
    #[default]
    Answer,
    /// A summary of older messages, which is not shown:
    /// [`Run::summary_finished`](crate::Run::summary_finished).
    Summary,
}

impl CallPurpose {
    /// Returns whether the call is for a response of the conversation.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
    pub(crate) fn is_answer(&self) -> bool {
        *self == Self::Answer
    }
}

/// A method that does not fit the state of the run. It is a defect of the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{method}` does not fit the run's state: {reason}")]
pub struct UnexpectedInput {
    /// The method.
    pub method: &'static str,
    /// The reason.
    pub reason: String,
}

impl UnexpectedInput {
    pub(super) fn new(method: &'static str, reason: impl Into<String>) -> Self {
        Self {
            method,
            reason: reason.into(),
        }
    }
}

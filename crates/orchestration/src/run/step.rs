//! Inputs and outputs of a run: the steps for the driver and their results.

use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ApprovalRequest, ChatRequest, SharedObject, ToolAnnotations, ToolCallError, ToolOutput,
};

use crate::RunEventKind;

/// The next action that a run requests from its driver.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunStep {
    /// Call the model: first [`Run::begin_model_call`](crate::Run::begin_model_call), then the
    /// method that the [`CallPurpose`] of the call names.
    CallModel,
    /// Obtain a decision about each approval request, and pass it to
    /// [`Run::apply_decision`](crate::Run::apply_decision).
    AskApproval(Vec<ApprovalRequest>),
    /// Execute these tool calls, concurrently if possible. Call
    /// [`Run::record_tool_start`](crate::Run::record_tool_start) before each tool call and
    /// [`Run::apply_tool_outcome`](crate::Run::apply_tool_outcome) after it, in any order.
    CallTools(Vec<PlannedCall>),
    /// The run is finished. [`Run::build_report`](crate::Run::build_report) returns its result.
    Done,
}

/// A tool call that is ready to start.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall {
    /// Id of the model's tool use.
    pub id: String,
    /// Name of the tool in the tool host's list.
    pub name: String,
    /// The server that offers the tool.
    pub server: Option<String>,
    /// The input for the tool, valid according to the tool's input schema.
    pub input: SharedObject,
    /// The annotations that the tool declares, such as read-only.
    pub annotations: ToolAnnotations,
    /// Idempotency key. It is identical for every attempt of this call, also in another process.
    pub idempotency_key: String,
}

/// The outcome of one tool call, including all its attempts.
#[derive(Debug)]
pub struct ToolCallOutcome {
    /// The tool's output, or the reason why there is none.
    pub result: Result<ToolOutput, ToolCallError>,
    /// Number of attempts to execute the call.
    pub attempts: u32,
    /// Duration of all attempts in milliseconds.
    pub duration_ms: u64,
    /// Whether the result comes from the cache, so that no tool ran.
    pub cached: bool,
}

impl ToolCallOutcome {
    /// Creates the outcome of a call with a single attempt. `duration_ms` is in milliseconds.
    pub fn new(result: Result<ToolOutput, ToolCallError>, duration_ms: u64) -> Self {
        Self {
            result,
            attempts: 1,
            duration_ms,
            cached: false,
        }
    }
}

/// A model call that the driver must execute.
#[derive(Debug)]
pub struct ModelCall {
    /// The request to the model. Boxed because it is large and passes through several futures.
    pub request: Box<ChatRequest>,
    /// The purpose of the call, which decides which method receives the response.
    pub purpose: CallPurpose,
    /// Events that arose while the request was prepared.
    pub events: Vec<RunEventKind>,
}

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    /// The next response of the conversation. Pass it to
    /// [`Run::apply_model_response`](crate::Run::apply_model_response) or
    /// [`Run::apply_model_failure`](crate::Run::apply_model_failure).
    #[default]
    Answer,
    /// A summary of older messages, which no user sees. Pass it to
    /// [`Run::apply_summary`](crate::Run::apply_summary).
    Summary,
}

impl CallPurpose {
    /// Returns whether the model call produces a response of the conversation.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
    pub(crate) fn is_answer_call(&self) -> bool {
        *self == Self::Answer
    }
}

/// An error about an input that does not fit the state of the run, which is a defect of the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an input does not fit the state of the run: {0}")]
pub struct UnexpectedInput(pub String);

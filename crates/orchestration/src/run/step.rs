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
    /// Call [`Run::begin_model_call`](crate::Run::begin_model_call), send the returned request to
    /// the model, and pass the response to the method that the documentation of its
    /// [`ModelCallPurpose`] names.
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

/// A tool call that the driver executes for the run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall {
    /// Id of the tool use with which the model requested the call.
    pub id: String,
    /// Name of the tool as its tool host lists it.
    pub name: String,
    /// Name of the server that offers the tool; `None` if no server does.
    pub server: Option<String>,
    /// The input for the tool, valid according to the tool's input schema.
    pub input: SharedObject,
    /// The annotations that the tool declares, such as read-only.
    pub annotations: ToolAnnotations,
    /// Idempotency key. It is identical for every attempt of this call, also in another process.
    pub idempotency_key: String,
}

/// The outcome of one tool call after all its attempts.
#[derive(Debug)]
pub struct ToolCallOutcome {
    /// The output of the tool, or the error that prevented an output.
    pub result: Result<ToolOutput, ToolCallError>,
    /// Number of attempts to execute the call.
    pub attempts: u32,
    /// Total duration of all attempts, in milliseconds.
    pub duration_ms: u64,
    /// Whether the result comes from the result cache, so that the tool did not run.
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

/// A model call that the run requests from its driver.
#[derive(Debug)]
pub struct ModelCall {
    /// The request to the model. Boxed because it is large and passes through several futures.
    pub request: Box<ChatRequest>,
    /// The purpose of the call. It decides which method of the run receives the response.
    pub purpose: ModelCallPurpose,
    /// Events that the driver publishes before the call, such as the trimming of the history.
    pub events: Vec<RunEventKind>,
}

/// The purpose of a model call: an answer or a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelCallPurpose {
    /// The call requests the next response of the conversation. Pass the response to
    /// [`Run::apply_model_response`](crate::Run::apply_model_response) or
    /// [`Run::apply_model_failure`](crate::Run::apply_model_failure).
    #[default]
    Answer,
    /// The call requests a summary of older messages, which no user sees. Pass the response to
    /// [`Run::apply_history_summary`](crate::Run::apply_history_summary).
    Summary,
}

impl ModelCallPurpose {
    /// Returns whether the model call produces the next response of the conversation; `false` for a
    /// summary.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
    pub(crate) fn is_answer_call(&self) -> bool {
        *self == Self::Answer
    }
}

/// An error about an input that does not fit the state of the run, which is a defect of the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the input does not match the state of the run: {0}")]
pub struct UnexpectedInput(pub String);

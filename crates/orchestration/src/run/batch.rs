//! The tool uses of one answer, each on its way to exactly one result.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ApprovalRequest, JsonObject, ToolAnnotations, ToolInput, ToolOrigin, ToolOutput, ToolResult,
    ToolUse,
};

use super::{PlannedCall, ToolAnswer};
use crate::ToolFailure;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingCall {
    pub(super) tool_use: ToolUse,
    pub(super) origin: Option<ToolOrigin>,
    #[serde(default)]
    pub(super) annotations: ToolAnnotations,
    pub(super) state: CallState,
    /// Where in the run's records this call stands.
    pub(super) record: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallState {
    /// Somebody has to say yes.
    Waiting { input: JsonObject },
    /// May start.
    Ready { input: JsonObject },
    /// The intent is recorded: from here on the tool may have done its work.
    Started { input: JsonObject },
    /// Has its result.
    Settled { result: ToolResult },
}

/// How a call ended: what the model reads and what is known about it.
#[derive(Debug)]
pub(super) struct CallEnd {
    pub(super) output: ToolOutput,
    pub(super) failure: Option<ToolFailure>,
    pub(super) attempts: u32,
    pub(super) duration_ms: u64,
    pub(super) cached: bool,
}

impl CallEnd {
    /// The tool gave no answer; the model is told why.
    pub(super) fn failed(failure: ToolFailure, message: impl Into<String>) -> Self {
        Self {
            output: ToolOutput {
                is_error: true,
                ..ToolOutput::text(message)
            },
            failure: Some(failure),
            attempts: 0,
            duration_ms: 0,
            cached: false,
        }
    }

    /// The same after `attempts` that took so long together.
    pub(super) fn after(mut self, attempts: u32, duration_ms: u64) -> Self {
        self.attempts = attempts;
        self.duration_ms = duration_ms;
        self
    }
}

impl From<ToolAnswer> for CallEnd {
    fn from(answer: ToolAnswer) -> Self {
        let (output, failure) = match answer.result {
            Ok(output) => {
                let failure = output.is_error.then_some(ToolFailure::ToolError);
                (output, failure)
            }
            Err(error) => {
                let end = Self::failed(ToolFailure::from(&error), error.to_string());
                (end.output, end.failure)
            }
        };
        Self {
            output,
            failure,
            attempts: answer.attempts,
            duration_ms: answer.duration_ms,
            cached: false,
        }
    }
}

impl PendingCall {
    pub(super) fn approval_request(&self, run_id: &str) -> ApprovalRequest {
        let mut request = ApprovalRequest::new(run_id, self.tool_use.clone());
        request.origin = self.origin.clone();
        request.annotations = self.annotations;
        request
    }

    pub(super) fn planned(&self, run_id: &str, step: u32) -> Option<PlannedCall> {
        let CallState::Ready { input } = &self.state else {
            return None;
        };
        Some(PlannedCall {
            id: self.tool_use.id.clone(),
            name: self.tool_use.name.clone(),
            input: input.clone(),
            annotations: self.annotations,
            idempotency_key: format!("{run_id}/{step}/{}", self.tool_use.id),
        })
    }
}

/// The input as a person sees it: the object, or the text that is none.
pub(super) fn shown(input: &ToolInput) -> Value {
    match input {
        ToolInput::Object(object) => Value::Object(object.clone()),
        ToolInput::Malformed { raw, .. } => Value::String(raw.clone()),
    }
}

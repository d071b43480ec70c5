//! The tool calls of one model response, each with exactly one result at the end.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_domain::{
    ApprovalRequest, SharedObject, ToolAnnotations, ToolInput, ToolOrigin, ToolOutput, ToolResult,
    ToolUse,
};

use crate::{
    SteadyTime, ToolFailure,
    run::{PlannedCall, ToolCallOutcome},
    tools::error_output,
};

/// The calls of one response, in its order.
#[derive(Debug, Clone)]
pub(in crate::run) struct ToolBatch {
    pub(in crate::run) calls: Vec<PendingCall>,
    /// Positions of repeated calls whose first call has a result.
    due_repeats: BTreeSet<usize>,
    /// Positions by tool use id. Without it, a batch of n calls takes n² comparisons.
    positions: HashMap<String, usize>,
    /// Number of calls at the front that have their results.
    settled: usize,
}

/// One call of a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::run) struct PendingCall {
    /// A stored call omits the input, because the conversation contains the tool use.
    pub(in crate::run) tool_use: ToolUse,
    /// A repaired or edited input, which replaces the input of the tool use.
    pub(in crate::run) input: Option<SharedObject>,
    pub(in crate::run) origin: Option<ToolOrigin>,
    pub(in crate::run) annotations: ToolAnnotations,
    pub(in crate::run) state: CallState,
    /// Index of the call's record.
    pub(in crate::run) record: usize,
    /// Whether the call runs alone, after all earlier calls and before all later ones.
    pub(in crate::run) barrier: bool,
    /// Fingerprint of the tool definition in the approval request.
    pub(in crate::run) fingerprint: Option<String>,
    /// Expiry of the approval request on the steady clock of the process that asked.
    pub(in crate::run) deadline: Option<SteadyTime>,
    /// Position of the equal call earlier in the batch.
    #[serde(skip)]
    first: Option<usize>,
    /// Positions of the equal calls later in the batch, which receive a copy of this result.
    #[serde(skip)]
    repeats: Vec<usize>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::run) enum CallState {
    /// The call needs an approval.
    Waiting { request: Box<ApprovalRequest> },
    /// The call may start.
    Ready,
    /// The intent is recorded. From here on the tool may have had its effect.
    Started,
    /// An equal call was made before. Its result becomes the result of this call.
    Repeats { of: String },
    /// The call has a result.
    Settled { result: ToolResult },
}

impl ToolBatch {
    pub(in crate::run) fn new(calls: Vec<PendingCall>) -> Self {
        let ids = calls.iter().map(|call| call.tool_use.id.clone());
        let mut batch = Self {
            positions: ids.zip(0..).collect(),
            calls,
            due_repeats: BTreeSet::new(),
            settled: 0,
        };
        for position in 0..batch.calls.len() {
            let CallState::Repeats { of } = &batch.calls[position].state else {
                continue;
            };
            let first = batch.positions.get(of).copied();
            batch.calls[position].first = first;
            if let Some(first) = first {
                batch.calls[first].repeats.push(position);
            }
            if first.is_none_or(|first| batch.calls[first].is_settled()) {
                batch.due_repeats.insert(position);
            }
        }
        batch
    }

    /// Returns the position of the open call with this id.
    pub(in crate::run) fn open_position(&self, id: &str) -> Option<usize> {
        let position = *self.positions.get(id)?;
        (!self.calls[position].is_settled()).then_some(position)
    }

    /// Sets the result of a call. Its repeats become due.
    pub(in crate::run) fn settle(&mut self, position: usize, result: ToolResult) {
        let call = &mut self.calls[position];
        call.state = CallState::Settled { result };
        self.due_repeats.extend(&call.repeats);
    }

    /// Returns whether every call has a result.
    pub(in crate::run) fn is_settled(&mut self) -> bool {
        let rest = self.calls[self.settled..].iter();
        self.settled += rest.take_while(|call| call.is_settled()).count();
        self.settled == self.calls.len()
    }

    /// Removes the next repeated call whose first call has a result.
    pub(in crate::run) fn next_due_repeat(&mut self) -> Option<usize> {
        self.due_repeats.pop_first()
    }

    /// Returns the state of the equal call earlier in this batch.
    pub(in crate::run) fn first_of(&self, position: usize) -> Option<&CallState> {
        let first = self.calls[position].first?;
        Some(&self.calls[first].state)
    }
}

impl Serialize for ToolBatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.calls.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolBatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::new)
    }
}

impl PendingCall {
    pub(in crate::run) fn new(tool_use: ToolUse, record: usize, state: CallState) -> Self {
        Self {
            tool_use,
            input: None,
            origin: None,
            annotations: ToolAnnotations::default(),
            state,
            record,
            barrier: false,
            fingerprint: None,
            deadline: None,
            first: None,
            repeats: Vec::new(),
        }
    }

    /// Returns the input with which the call runs.
    pub(in crate::run) fn effective_input(&self) -> SharedObject {
        match (&self.input, &self.tool_use.input) {
            (Some(input), _) | (None, ToolInput::Object(input)) => input.clone(),
            (None, ToolInput::Malformed { .. }) => SharedObject::default(),
        }
    }

    pub(in crate::run) fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled { .. })
    }

    /// Returns whether the call has not started and would still run.
    pub(in crate::run) fn is_unstarted(&self) -> bool {
        matches!(self.state, CallState::Waiting { .. } | CallState::Ready)
    }

    pub(in crate::run) fn planned(&self, run_id: &str, step: u32) -> Option<PlannedCall> {
        if !matches!(self.state, CallState::Ready) {
            return None;
        }
        Some(PlannedCall {
            id: self.tool_use.id.clone(),
            name: self.tool_use.name.clone(),
            server: self.origin.as_ref().map(|origin| origin.server.clone()),
            input: self.effective_input(),
            annotations: self.annotations,
            idempotency_key: format!("{run_id}/{step}/{}", self.tool_use.id),
        })
    }
}

/// The end of a call: the output for the model and its circumstances.
#[derive(Debug)]
pub(in crate::run) struct CallEnd {
    pub(in crate::run) output: ToolOutput,
    pub(in crate::run) failure: Option<ToolFailure>,
    pub(in crate::run) attempts: u32,
    pub(in crate::run) duration_ms: u64,
    pub(in crate::run) cached: bool,
    /// Whether the size limit of results applies. Texts of the loop itself are short.
    pub(in crate::run) is_limited: bool,
}

impl CallEnd {
    /// Returns the end of a call without an output. The model reads `message`.
    pub(in crate::run) fn failed(failure: ToolFailure, message: impl Into<String>) -> Self {
        Self::unlimited(error_output(message), Some(failure), 0)
    }

    /// Returns the end of a call to a tool of the loop itself.
    pub(in crate::run) fn of_loop_tool(output: ToolOutput) -> Self {
        let failure = output.is_error.then_some(ToolFailure::ToolError);
        Self::unlimited(output, failure, 1)
    }

    /// Returns the end of a call that repeats an earlier call.
    pub(in crate::run) fn repeated(result: &ToolResult) -> Self {
        Self::unlimited(result.into(), Some(ToolFailure::Repeated), 0)
    }

    fn unlimited(output: ToolOutput, failure: Option<ToolFailure>, attempts: u32) -> Self {
        Self {
            output,
            failure,
            attempts,
            duration_ms: 0,
            cached: false,
            is_limited: false,
        }
    }

    /// Sets the number of attempts and their total duration in milliseconds.
    pub(in crate::run) fn after(mut self, attempts: u32, duration_ms: u64) -> Self {
        self.attempts = attempts;
        self.duration_ms = duration_ms;
        self
    }
}

impl From<ToolCallOutcome> for CallEnd {
    fn from(outcome: ToolCallOutcome) -> Self {
        let (output, failure) = match outcome.result.map(ToolOutput::with_checked_depth) {
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
            attempts: outcome.attempts,
            duration_ms: outcome.duration_ms,
            cached: outcome.cached,
            is_limited: true,
        }
    }
}

//! The data of a run: the stored state with the calls of the last response, and the caches that a
//! process rebuilds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_domain::{
    FinishReason, Message, ModelCapabilities, ModelId, Principal, SharedObject, ToolAnnotations,
    ToolDefinition, ToolInput, ToolOrigin, ToolOutput, ToolResult, ToolUse, Usage, Warning,
};

use super::{Events, PlannedCall, SteadyTime, ToolCallOutcome, phases::Stage};
use crate::{
    Outcome, RunError, RunOptions, SharedDecisions, ToolCallRecord, ToolFailure,
    policy::{
        history::History,
        limits::{Ledger, Pricing},
    },
    recipe::Recipe,
    tools::{
        arguments::Validators,
        error_output,
        results::FullResults,
        search::{ToolIndex, ToolSelection},
    },
};

/// The part of a run that every checkpoint stores. The conversation is stored beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunState {
    pub(super) id: String,
    pub(super) session: Option<String>,
    pub(super) principal: Principal,
    /// The model of the next call.
    pub(super) model: ModelId,
    pub(super) capabilities: ModelCapabilities,
    pub(super) pricing: Option<Box<Pricing>>,
    /// The recipe that the run started with.
    pub(super) recipe: Option<Arc<Recipe>>,
    pub(super) options: Arc<RunOptions>,
    /// Number of messages before the first message of the run itself.
    pub(super) initial_messages: usize,
    pub(super) phase: Phase,
    pub(super) stage: Stage,
    pub(super) turn: ModelTurn,
    /// One record for each tool use. A stored record omits data that the conversation contains.
    pub(super) records: Vec<ToolCallRecord>,
    /// Complete texts of tool results that were truncated for the model.
    pub(super) complete_results: FullResults,
    /// Tools whose definition changed after a person last saw it.
    pub(super) redefined: BTreeSet<String>,
    /// Fingerprints of the tool definitions that a person was first asked about, by tool name.
    pub(super) reviewed: BTreeMap<String, String>,
    /// Earlier approval decisions: of this run, or shared with other runs.
    pub(super) decisions: SharedDecisions,
    pub(super) ledger: Ledger,
    pub(super) usage: Usage,
    pub(super) finish: Option<FinishReason>,
    pub(super) warnings: Vec<Warning>,
    pub(super) error: Option<Box<RunError>>,
    /// Text of an interrupted response. It is not a message of the conversation.
    pub(super) partial_answer: Option<String>,
    /// The time of the last [`Run::tick`](super::Run::tick).
    pub(super) now: Timestamp,
    /// Number of the next event.
    pub(super) next_event: u64,
    /// Events of the latest change, which the driver emits after the checkpoint.
    pub(super) pending_events: Events,
}

/// The state of the model calls.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ModelTurn {
    /// The tools of the current step as the model sees them.
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    /// The tools that are offered when there are too many for one request.
    pub(super) selection: ToolSelection,
    /// Reason why the model gets no tools any more.
    pub(super) tools_dropped: Option<String>,
    pub(super) history: History,
    /// A message for the next request only.
    pub(super) nudge: Option<Arc<Message>>,
    pub(super) retries: Retries,
    /// Whether the last response had content.
    pub(super) has_content: bool,
    /// Whether examples were added, or a request was made without them.
    pub(super) has_examples: bool,
    /// Estimated tokens of the last request. `None` if no limit required an estimate.
    pub(super) request_tokens: Option<u64>,
}

/// Numbers of repeated model calls by reason.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Retries {
    pub(super) total: u32,
    pub(super) empty: u32,
    pub(super) malformed: u32,
    pub(super) cut_off: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// The next step is a model call.
    Model,
    /// A model call is in progress.
    CallingModel,
    /// A model call for a summary of older messages is in progress.
    Summarising,
    /// Tool uses of the last response wait for their results.
    Batch(Vec<PendingCall>),
    Done(Outcome),
}

/// Data that is not stored. Another process starts with the defaults.
#[derive(Debug, Default)]
pub(super) struct RunCaches {
    /// Time of this process's steady clock.
    pub(super) steady: Option<SteadyTime>,
    /// Events that an earlier process stored with the state and did not emit.
    pub(super) replayed_events: Events,
    /// Whether the wall time of the run is counted at the moment.
    pub(super) is_clock_running: bool,
    pub(super) validators: Validators,
    /// Whether the decisions are shared with other runs.
    pub(super) shares_decisions: bool,
    pub(super) index: ToolIndex,
    /// Tool definitions as declared by their hosts, with the parts that the model does not see.
    /// People approve these definitions.
    pub(super) declared: Vec<Arc<ToolDefinition>>,
}

impl RunState {
    /// Returns the calls of the current batch. Empty outside of a batch.
    pub(super) fn calls(&self) -> &[PendingCall] {
        match &self.phase {
            Phase::Batch(calls) => calls,
            _ => &[],
        }
    }

    pub(super) fn calls_mut(&mut self) -> &mut [PendingCall] {
        match &mut self.phase {
            Phase::Batch(calls) => calls,
            _ => &mut [],
        }
    }
}

/// A tool call of the last response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PendingCall {
    /// A stored call omits the input, because the conversation contains the tool use.
    pub(super) tool_use: ToolUse,
    /// A repaired or edited input, which replaces the input of the tool use.
    pub(super) input: Option<SharedObject>,
    pub(super) origin: Option<ToolOrigin>,
    pub(super) annotations: ToolAnnotations,
    pub(super) state: CallState,
    /// Index of the call's record.
    pub(super) record: usize,
    /// Whether the call runs alone, after all earlier calls and before all later ones.
    pub(super) barrier: bool,
    /// Fingerprint of the tool definition in the approval request.
    pub(super) fingerprint: Option<String>,
    /// Expiry of the approval request on the steady clock of the process that asked.
    pub(super) deadline: Option<SteadyTime>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallState {
    /// The call needs an approval.
    Waiting {
        /// Time stamp of the expiry, set when the request is shown.
        expires_at: Option<String>,
        /// Whether the definition of the tool changed after a person last saw it.
        redefined: bool,
    },
    /// The call may start.
    Ready,
    /// The intent is recorded. From here on the tool may have had its effect.
    Started,
    /// An equal call was made before. Its result becomes the result of this call.
    Repeats { of: String },
    /// The call has a result.
    Settled { result: ToolResult },
}

impl PendingCall {
    pub(super) fn new(tool_use: ToolUse, record: usize, state: CallState) -> Self {
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
        }
    }

    /// Returns the input with which the call runs.
    pub(super) fn effective_input(&self) -> SharedObject {
        match (&self.input, &self.tool_use.input) {
            (Some(input), _) | (None, ToolInput::Object(input)) => input.clone(),
            (None, ToolInput::Malformed { .. }) => SharedObject::default(),
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled { .. })
    }

    /// Returns whether the call has not started and would still run.
    pub(super) fn is_unstarted(&self) -> bool {
        matches!(self.state, CallState::Waiting { .. } | CallState::Ready)
    }

    pub(super) fn planned(&self, run_id: &str, step: u32) -> Option<PlannedCall> {
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
pub(super) struct CallEnd {
    pub(super) output: ToolOutput,
    pub(super) failure: Option<ToolFailure>,
    pub(super) attempts: u32,
    pub(super) duration_ms: u64,
    pub(super) cached: bool,
    /// Whether the size limit of results applies. Texts of the loop itself are short.
    pub(super) is_limited: bool,
}

impl CallEnd {
    /// Returns the end of a call without an output. The model reads `message`.
    pub(super) fn failed(failure: ToolFailure, message: impl Into<String>) -> Self {
        Self::unlimited(error_output(message), Some(failure), 0)
    }

    /// Returns the end of a call to a tool of the loop itself.
    pub(super) fn of_loop_tool(output: ToolOutput) -> Self {
        let failure = output.is_error.then_some(ToolFailure::ToolError);
        Self::unlimited(output, failure, 1)
    }

    /// Returns the end of a call that repeats an earlier call.
    pub(super) fn repeated(result: &ToolResult) -> Self {
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
    pub(super) fn after(mut self, attempts: u32, duration_ms: u64) -> Self {
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

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

use super::{Events, MonotonicTime, PlannedCall, ToolCallOutcome, strategy_phases::StrategyPhase};
use crate::{
    Outcome, RunError, RunOptions, SharedDecisions, ToolCallRecord, ToolFailure,
    policy::{
        history::HistoryTrimmer,
        limits::{Pricing, UsageLedger},
    },
    recipe::Recipe,
    tools::{
        arguments::InputValidators,
        create_error_output,
        results::FullResults,
        search::{ToolIndex, ToolSelection},
    },
};

/// The state of a run that every checkpoint stores. The conversation is stored separately.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunState {
    pub(super) id: String,
    pub(super) session: Option<String>,
    pub(super) principal: Principal,
    /// Id of the model for the next model call.
    pub(super) model: ModelId,
    pub(super) capabilities: ModelCapabilities,
    pub(super) pricing: Option<Box<Pricing>>,
    /// The recipe (agent settings from a file) that the run started with, if any.
    pub(super) recipe: Option<Arc<Recipe>>,
    pub(super) options: Arc<RunOptions>,
    /// Number of messages in the conversation before the run added its first message.
    pub(super) initial_messages: usize,
    pub(super) phase: AgentLoopState,
    pub(super) stage: StrategyPhase,
    pub(super) turn: ModelCallState,
    /// One record for each tool use. A stored record omits the data that the conversation contains.
    pub(super) records: Vec<ToolCallRecord>,
    /// Complete texts of tool results that were truncated for the model. The texts are stored as
    /// messages.
    pub(super) complete_results: FullResults,
    /// Names of the tools whose definition changed since a person last saw it.
    pub(super) redefined: BTreeSet<String>,
    /// Hashes of the tool definitions at their first approval check, by name, to detect changes.
    pub(super) reviewed: BTreeMap<String, String>,
    /// Approval decisions of this run, or of several runs that share them.
    pub(super) decisions: SharedDecisions,
    pub(super) ledger: UsageLedger,
    pub(super) usage: Usage,
    pub(super) finish: Option<FinishReason>,
    pub(super) warnings: Vec<Warning>,
    pub(super) error: Option<Box<RunError>>,
    /// Text of an interrupted model response for the report. It is not part of the conversation.
    pub(super) partial_answer: Option<String>,
    /// The current time of the run, set by [`Run::set_current_time`](super::Run::set_current_time).
    pub(super) now: Timestamp,
    /// Sequence number of the next event that the run emits.
    pub(super) next_event: u64,
    /// Events of the latest change. The driver emits them after it has stored the run.
    pub(super) pending_events: Events,
}

/// The state of the model calls within a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ModelCallState {
    /// The tool definitions of the current step, without the properties that are hidden from the
    /// model.
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    /// The selected tools that requests offer, if there are too many tools for one request.
    pub(super) selection: ToolSelection,
    /// Error message of the provider if it rejected the tools; requests then offer no tools. `None`
    /// if requests offer tools.
    pub(super) tools_dropped: Option<String>,
    pub(super) history: HistoryTrimmer,
    /// An additional message for the model that only the next request contains.
    pub(super) nudge: Option<Arc<Message>>,
    pub(super) retries: RetryCounts,
    /// Whether the last model response had content, so that an empty response can be recognized.
    pub(super) has_content: bool,
    /// Whether few-shot examples were added or a model request was made. After that, no examples
    /// can be added.
    pub(super) has_examples: bool,
}

/// Numbers of model calls that were repeated because the response was unusable: in total, and for
/// each kind of fault.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RetryCounts {
    pub(super) total: u32,
    pub(super) empty: u32,
    pub(super) malformed: u32,
    pub(super) cut_off: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentLoopState {
    /// The next step of the run is a model call.
    Model,
    /// A model call is in progress.
    CallingModel,
    /// A model call that summarizes older messages is in progress.
    Summarising,
    /// The tool calls of the last response are waiting, running or ended.
    Batch(Vec<RequestedToolCall>),
    Done(Outcome),
}

/// Data of a run that is not stored. After a resumption, it starts with the default values.
#[derive(Debug, Default)]
pub(super) struct TransientRunState {
    /// Time that the driver last set with
    /// [`Run::set_monotonic_time`](super::Run::set_monotonic_time).
    pub(super) monotonic_now: Option<MonotonicTime>,
    /// Events that an earlier process stored with the state but did not emit.
    pub(super) replayed_events: Events,
    /// Whether the wall time of the run is being counted.
    pub(super) is_clock_running: bool,
    pub(super) validators: InputValidators,
    /// Whether several runs share the approval decisions, so that snapshots omit them.
    pub(super) shares_decisions: bool,
    pub(super) index: ToolIndex,
    /// Tool definitions as their hosts declare them, with the properties that are hidden from the
    /// model. People approve these definitions.
    pub(super) declared: Vec<Arc<ToolDefinition>>,
}

impl RunState {
    /// Returns the tool calls of the last model response; empty after all of them have ended.
    pub(super) fn batch_calls(&self) -> &[RequestedToolCall] {
        match &self.phase {
            AgentLoopState::Batch(calls) => calls,
            _ => &[],
        }
    }

    pub(super) fn batch_calls_mut(&mut self) -> &mut [RequestedToolCall] {
        match &mut self.phase {
            AgentLoopState::Batch(calls) => calls,
            _ => &mut [],
        }
    }
}

/// A tool call that the last model response requested.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RequestedToolCall {
    /// The tool use of the model. The stored state omits its input, because the conversation
    /// contains it.
    pub(super) tool_use: ToolUse,
    /// The repaired or edited input, which replaces the input of the tool use; `None` if unchanged.
    pub(super) input: Option<SharedObject>,
    pub(super) origin: Option<ToolOrigin>,
    pub(super) annotations: ToolAnnotations,
    pub(super) state: ToolCallState,
    /// Index of this call in [`RunState::records`].
    pub(super) record: usize,
    /// Whether this call must run alone: after all earlier tool calls of the same model response,
    /// and before all later ones.
    pub(super) barrier: bool,
    /// Fingerprint of the tool definition that the approval request shows; `None` if no approval
    /// was requested.
    pub(super) fingerprint: Option<String>,
    /// Expiry of the approval request, on the monotonic clock of the process that made the request.
    /// `None` before the request is shown, and if it does not expire.
    pub(super) deadline: Option<MonotonicTime>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolCallState {
    /// The call waits until a person decides about its approval request.
    Waiting {
        /// Time stamp (RFC 3339) at which the approval request expires. Set when the request is
        /// shown; `None` before, and if the request does not expire.
        expires_at: Option<String>,
        /// Whether the definition of the tool changed after a person last saw it.
        redefined: bool,
    },
    /// The call is allowed to start.
    Ready,
    /// The start of the call was recorded, so the tool may already have had its effect.
    Started,
    /// The model repeats an earlier call, whose tool use id is `of`. The result of the earlier call
    /// becomes the result of this call.
    Repeats { of: String },
    /// The call has ended. Its result is kept until all calls of the response have ended.
    Settled { result: ToolResult },
}

impl RequestedToolCall {
    pub(super) fn new(tool_use: ToolUse, record: usize) -> Self {
        Self {
            tool_use,
            input: None,
            origin: None,
            annotations: ToolAnnotations::default(),
            state: ToolCallState::Ready,
            record,
            barrier: false,
            fingerprint: None,
            deadline: None,
        }
    }

    /// Returns the input that the tool receives: the repaired or edited input, or the model's
    /// input.
    pub(super) fn effective_input(&self) -> SharedObject {
        match (&self.input, &self.tool_use.input) {
            (Some(input), _) | (None, ToolInput::Object(input)) => input.clone(),
            (None, ToolInput::Malformed { .. }) => SharedObject::default(),
        }
    }

    pub(super) fn has_result(&self) -> bool {
        matches!(self.state, ToolCallState::Settled { .. })
    }

    /// Returns whether the call has not started but may still start: it waits for approval or is
    /// ready.
    pub(super) fn is_waiting_or_ready(&self) -> bool {
        matches!(
            self.state,
            ToolCallState::Waiting { .. } | ToolCallState::Ready
        )
    }

    pub(super) fn to_planned_call(&self, run_id: &str, step: u32) -> Option<PlannedCall> {
        if !matches!(self.state, ToolCallState::Ready) {
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

/// The end of a tool call: its output for the model, its attempts and its duration.
#[derive(Debug, Default)]
pub(super) struct ToolCallEnd {
    pub(super) output: ToolOutput,
    pub(super) failure: Option<ToolFailure>,
    pub(super) attempts: u32,
    pub(super) duration_ms: u64,
    pub(super) cached: bool,
    /// Whether the size limit of tool results applies. Outputs of the run's own tools are short and
    /// not limited.
    pub(super) is_limited: bool,
}

impl ToolCallEnd {
    /// Creates the end of a call that did not succeed, with a message for the model.
    pub(super) fn from_failure(failure: ToolFailure, message: impl Into<String>) -> Self {
        Self {
            output: create_error_output(message),
            failure: Some(failure),
            ..Self::default()
        }
    }

    /// Creates the end of a call that was not executed. `reason` is a clause for the model, without
    /// a full stop.
    pub(super) fn not_executed(failure: ToolFailure, reason: &str) -> Self {
        Self::from_failure(failure, format!("Not executed: {reason}."))
    }
}

impl From<ToolCallOutcome> for ToolCallEnd {
    fn from(outcome: ToolCallOutcome) -> Self {
        let end = match outcome.result.map(ToolOutput::replace_too_deep_output) {
            Ok(output) => Self {
                failure: output.is_error.then_some(ToolFailure::ToolError),
                output,
                ..Self::default()
            },
            Err(error) => Self::from_failure(ToolFailure::from(&error), error.to_string()),
        };
        Self {
            attempts: outcome.attempts,
            duration_ms: outcome.duration_ms,
            cached: outcome.cached,
            is_limited: true,
            ..end
        }
    }
}

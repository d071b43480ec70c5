//! The data of a run: the stored state, and the caches that a process rebuilds.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_domain::{
    FinishReason, Message, ModelCapabilities, ModelId, Principal, ToolDefinition, Usage, Warning,
};

use super::{
    Events, SteadyTime,
    model_turn::{
        phases::{GatherPrompt, Stage},
        request::ToolWeight,
    },
    overrides::Overrides,
    snapshot::Insertions,
    tool_batch::batch::{PendingCall, ToolBatch},
};
use crate::{
    Outcome, RunError, RunOptions, SharedDecisions, ToolCallRecord,
    policy::{
        history::History,
        limits::{Ledger, Pricing},
    },
    recipe::Recipe,
    tools::{
        arguments::Validators,
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
    Batch(ToolBatch),
    Done(Outcome),
}

/// Data that is not stored. Another process starts with the defaults.
#[derive(Debug, Default)]
pub(super) struct RunCaches {
    /// Time of this process's steady clock.
    pub(super) steady: Option<SteadyTime>,
    /// Events that an earlier process stored with the state and did not emit.
    pub(super) replayed_events: Events,
    /// Settings that were changed in this process.
    pub(super) overrides: Overrides,
    pub(super) insertions: Insertions,
    /// Whether the wall time of the run is counted at the moment.
    pub(super) is_clock_running: bool,
    pub(super) validators: Validators,
    /// Whether the decisions are shared with other runs.
    pub(super) shares_decisions: bool,
    /// Tool use ids of the initial messages.
    pub(super) initial_ids: OnceLock<Arc<HashSet<String>>>,
    pub(super) index: ToolIndex,
    /// Tool definitions as declared by their hosts, with the parts that the model does not see.
    /// People approve these definitions.
    pub(super) declared: Vec<Arc<ToolDefinition>>,
    pub(super) tool_weight: ToolWeight,
    pub(super) gather_prompt: GatherPrompt,
}

impl RunState {
    /// Returns the calls of the current batch. Empty outside of a batch.
    pub(super) fn calls(&self) -> &[PendingCall] {
        match &self.phase {
            Phase::Batch(batch) => &batch.calls,
            _ => &[],
        }
    }

    pub(super) fn calls_mut(&mut self) -> &mut [PendingCall] {
        match &mut self.phase {
            Phase::Batch(batch) => &mut batch.calls,
            _ => &mut [],
        }
    }
}

//! The tool uses of one answer, each on its way to exactly one result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ApprovalRequest, SharedObject, ToolAnnotations, ToolOrigin, ToolOutput, ToolResult, ToolUse,
};

use crate::run::{
    PlannedCall, ToolAnswer,
    snapshot::inputs::{self, LeftOut},
};
use crate::{SteadyTime, ToolFailure};

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::run) struct PendingCall {
    #[serde(deserialize_with = "inputs::tool_use")]
    pub(in crate::run) tool_use: ToolUse,
    /// Of one that was read from a snapshot: what is not here yet.
    #[serde(default, skip_serializing)]
    pub(in crate::run) left_out: Option<LeftOut>,
    pub(in crate::run) origin: Option<ToolOrigin>,
    #[serde(default)]
    pub(in crate::run) annotations: ToolAnnotations,
    pub(in crate::run) state: CallState,
    /// Where in the run's records this call stands.
    pub(in crate::run) record: usize,
    /// It runs alone: after those before it, before those behind it.
    #[serde(default)]
    pub(in crate::run) barrier: bool,
    /// Of the definition that somebody was asked about.
    #[serde(default)]
    pub(in crate::run) fingerprint: Option<String>,
    /// Until when an answer to its request counts, for the process that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) deadline: Option<SteadyTime>,
    /// The same call in the same answer, before this one, by its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) repeats_at: Option<usize>,
    /// The same calls behind this one in the same answer, by their places: its result is theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::run) repeated_at: Vec<usize>,
}

/// Of so many calls one is found by looking at each.
const FEW: usize = 16;

/// Where the calls of a batch are: found again where the run was stored.
#[derive(Debug, Default)]
pub(in crate::run) struct Places {
    /// Where there are more than [`FEW`].
    by_id: BTreeMap<String, usize>,
    /// The calls before this one have their results.
    settled: usize,
}

impl Places {
    /// The place of the call with this id; ids are unique within a run.
    pub(in crate::run) fn of(&mut self, calls: &[PendingCall], id: &str) -> Option<usize> {
        let is_at = |place: usize, id: &str| {
            let call = calls.get(place);
            call.is_some_and(|call| call.tool_use.id == id)
        };
        if calls.len() <= FEW {
            return calls.iter().position(|call| call.tool_use.id == id);
        }
        let by_id = &mut self.by_id;
        let known = by_id.get(id).copied();
        if known.is_some_and(|place| is_at(place, id)) {
            return known;
        }
        let first = calls.first().map(|call| call.tool_use.id.as_str());
        let is_of_these =
            by_id.len() == calls.len() && first.is_some_and(|first| by_id.get(first) == Some(&0));
        if is_of_these {
            return None;
        }
        // It is another batch, or one that was stored.
        *by_id = calls
            .iter()
            .enumerate()
            .map(|(place, call)| (call.tool_use.id.clone(), place))
            .collect();
        by_id.get(id).copied()
    }

    /// Whether every call has its result. Each is looked at once.
    pub(in crate::run) fn are_all_settled(&mut self, calls: &[PendingCall]) -> bool {
        let is_settled = |call: &PendingCall| matches!(call.state, CallState::Settled { .. });
        self.settled = self.settled.min(calls.len());
        self.settled += calls[self.settled..]
            .iter()
            .take_while(|call| is_settled(call))
            .count();
        self.settled == calls.len()
    }

    /// Another batch begins.
    pub(in crate::run) fn begin(&mut self) {
        *self = Self::default();
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::run) enum CallState {
    /// Somebody has to say yes.
    Waiting {
        #[serde(deserialize_with = "inputs::input")]
        input: SharedObject,
        request: Box<ApprovalRequest>,
    },
    /// May start.
    Ready {
        #[serde(deserialize_with = "inputs::input")]
        input: SharedObject,
    },
    /// The intent is recorded: from here on the tool may have done its work.
    Started {
        #[serde(deserialize_with = "inputs::input")]
        input: SharedObject,
    },
    /// The same call was made before; its result will stand in for this one's.
    Repeats { of: String },
    /// Has its result.
    Settled { result: ToolResult },
}

/// How a call ended: what the model reads and what is known about it.
#[derive(Debug)]
pub(in crate::run) struct CallEnd {
    pub(in crate::run) output: ToolOutput,
    pub(in crate::run) failure: Option<ToolFailure>,
    pub(in crate::run) attempts: u32,
    pub(in crate::run) duration_ms: u64,
    pub(in crate::run) cached: bool,
    /// The limit of results holds for it. What the loop itself says is short.
    pub(in crate::run) limited: bool,
}

impl CallEnd {
    /// The tool gave no answer; the model is told why.
    pub(in crate::run) fn failed(failure: ToolFailure, message: impl Into<String>) -> Self {
        Self {
            output: ToolOutput {
                is_error: true,
                ..ToolOutput::text(message)
            },
            failure: Some(failure),
            attempts: 0,
            duration_ms: 0,
            cached: false,
            limited: false,
        }
    }

    /// A tool of the loop itself answered at once.
    pub(in crate::run) fn answered_here(output: ToolOutput) -> Self {
        let failure = output.is_error.then_some(ToolFailure::ToolError);
        Self {
            output,
            failure,
            attempts: 1,
            duration_ms: 0,
            cached: false,
            limited: false,
        }
    }

    /// The result of the same call, made before.
    pub(in crate::run) fn repeated(result: &ToolResult) -> Self {
        Self {
            output: result.into(),
            failure: Some(ToolFailure::Repeated),
            attempts: 0,
            duration_ms: 0,
            cached: false,
            limited: false,
        }
    }

    /// The same after `attempts` that took so long together.
    pub(in crate::run) fn after(mut self, attempts: u32, duration_ms: u64) -> Self {
        self.attempts = attempts;
        self.duration_ms = duration_ms;
        self
    }
}

impl From<ToolAnswer> for CallEnd {
    fn from(answer: ToolAnswer) -> Self {
        let (output, failure) = match answer.result.map(ToolOutput::with_checked_depth) {
            Ok(output) => {
                let failure = if output.is_error {
                    Some(ToolFailure::ToolError)
                } else {
                    answer.broke_promise.then_some(ToolFailure::InvalidOutput)
                };
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
            cached: answer.cached,
            limited: true,
        }
    }
}

impl PendingCall {
    pub(in crate::run) fn planned(&self, run_id: &str, step: u32) -> Option<PlannedCall> {
        let CallState::Ready { input } = &self.state else {
            return None;
        };
        Some(PlannedCall {
            id: self.tool_use.id.clone(),
            name: self.tool_use.name.clone(),
            server: self.origin.as_ref().map(|origin| origin.server.clone()),
            input: input.clone(),
            annotations: self.annotations,
            idempotency_key: format!("{run_id}/{step}/{}", self.tool_use.id),
        })
    }
}

//! Serialization of a run for a store: its state, and separately the messages of its conversation.
//!
//! Every checkpoint stores the state, so it omits data that the conversation contains: inputs and
//! results of tool calls. Complete texts of truncated results are stored as messages too. A [`Run`]
//! that is serialized as one value contains the same state and all messages.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;
use switchboard_domain::{
    FinishReason, JsonObject, Message, RunSnapshot, SessionStoreError, ToolUse,
};

use super::{
    AgentLoopState, Run,
    state::{RunState, TransientRunState},
};
use crate::{RunEventKind, SharedDecisions};

/// The serialized form of a run: its state and, optionally, its messages.
#[derive(Serialize, Deserialize)]
struct StoredRun<'a> {
    /// Format version of the serialized run. Deserializing another version than [`FORMAT`] fails.
    #[serde(deserialize_with = "deserialize_format_version")]
    format: u64,
    /// Number of stored messages: the messages of the conversation, and between them one message
    /// for each truncated tool result, with its complete text.
    message_count: usize,
    state: RunState,
    /// The stored messages. `None` if the store keeps the messages separately from the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<Cow<'a, [Arc<Message>]>>,
}

/// A position in the stored messages of a run. A store already has all messages before this
/// position. The default is the position before the first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotPosition {
    messages: usize,
    /// Number of messages before the run's first message. Inserted examples change this number, and
    /// the next snapshot then contains all messages.
    initial_messages: usize,
}

/// The reasons why a stored run cannot be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The stored state has a format version that this program does not support.
    #[error(transparent)]
    Format(#[from] UnsupportedFormat),
    /// The stored state has a supported format, but it cannot be deserialized.
    #[error("the stored state of the run cannot be read")]
    State(#[from] serde_json::Error),
    /// The number of stored messages differs from the number in the state.
    #[error("the state of the run has {expected} messages, and {actual} are stored")]
    Conversation {
        /// Number of messages according to the stored state.
        expected: usize,
        /// Number of messages that the store has.
        actual: usize,
    },
    /// The state has tool calls or results that the stored conversation does not have.
    #[error("the state of the run has tool calls or results that are not in its conversation")]
    Calls,
    /// The stored state belongs to a run with a different id.
    #[error("the stored state belongs to run `{id}`")]
    Other {
        /// Id of the run that the stored state belongs to.
        id: String,
    },
    /// The store failed to read its data about the run.
    #[error("the stored data of the run cannot be read")]
    Stored(#[source] SessionStoreError),
}

impl Run {
    /// Returns a snapshot for a store that already has the messages before `since`: the state of
    /// the run and the later messages. Also returns the value of `since` for the next snapshot.
    ///
    /// The size of the state does not depend on the length of the earlier conversation. If examples
    /// were inserted before the messages of the run since the previous snapshot, the snapshot
    /// contains all messages.
    pub fn take_snapshot(
        &self,
        since: SnapshotPosition,
    ) -> Result<(RunSnapshot, SnapshotPosition), serde_json::Error> {
        let messages = self.messages_to_store();
        let from = if since.initial_messages == self.state.initial_messages {
            since.messages.min(messages.len())
        } else {
            0
        };
        let mut state = self.state_to_store();
        if self.caches.shares_decisions {
            // Shared approval decisions are stored by their owner and not with the run, because
            // they may belong to other principals.
            state.decisions = SharedDecisions::default();
        }
        let stored = serde_json::to_string(&StoredRun {
            format: FORMAT,
            message_count: messages.len(),
            state,
            messages: None,
        })?;
        let snapshot = RunSnapshot {
            state: stored.into(),
            from: u64::try_from(from).unwrap_or(u64::MAX),
            messages: messages[from..].to_vec(),
        };
        Ok((snapshot, self.snapshot_position()))
    }

    /// Returns the position after all current messages of the run, for a store that already has all
    /// of them.
    pub fn snapshot_position(&self) -> SnapshotPosition {
        SnapshotPosition {
            messages: self.messages.len() + self.state.complete_results.result_count(),
            initial_messages: self.state.initial_messages,
        }
    }

    /// Restores a run from a snapshot that contains all its messages. Returns an error for an
    /// unsupported format, and if messages are missing.
    pub fn from_snapshot(snapshot: RunSnapshot) -> Result<Self, RestoreError> {
        /// The format version of a stored run. It is read alone, before the other fields, because
        /// these may have any type in an unknown format.
        #[derive(Deserialize)]
        struct StoredFormatVersion {
            #[serde(default)]
            format: Option<Value>,
        }
        let StoredFormatVersion { format } = serde_json::from_str(&snapshot.state)?;
        check_format_version(format.as_ref())?;
        let stored: StoredRun<'_> = serde_json::from_str(&snapshot.state)?;
        if snapshot.from != 0 || stored.message_count != snapshot.messages.len() {
            return Err(RestoreError::Conversation {
                expected: stored.message_count,
                actual: snapshot.messages.len(),
            });
        }
        Self::from_stored(stored.state, snapshot.messages)
    }

    /// Returns the messages to store: the conversation, and between its messages the complete texts
    /// of truncated tool results.
    pub(super) fn messages_to_store(&self) -> Cow<'_, [Arc<Message>]> {
        let results = &self.state.complete_results;
        if results.is_empty() {
            return Cow::Borrowed(&self.messages);
        }
        Cow::Owned(results.insert_into_messages(&self.messages))
    }

    /// Returns a copy of the state for the store. The copy omits the inputs of tool uses, which the
    /// conversation contains, and tool definitions that are listed again.
    fn state_to_store(&self) -> RunState {
        let mut state = self.state.clone();
        for call in state.batch_calls_mut() {
            let (id, name) = (call.tool_use.id.clone(), call.tool_use.name.clone());
            call.tool_use = ToolUse::new(id, name, JsonObject::new().into());
        }
        if matches!(state.phase, AgentLoopState::Model | AgentLoopState::Done(_)) {
            // The tools are listed again before the next model call, so they are not stored.
            state.turn.tools.clear();
        }
        state
    }

    /// Restores a run from its messages and a state without the data that [`Run::state_to_store`]
    /// omits.
    fn from_stored(mut state: RunState, stored: Vec<Arc<Message>>) -> Result<Self, RestoreError> {
        let messages = state.complete_results.restore_from_messages(stored);
        let messages = messages.ok_or(RestoreError::Calls)?;
        let own = &messages[state.initial_messages.min(messages.len())..];
        let tool_uses = own.iter().flat_map(|message| message.tool_uses());
        let tool_uses: HashMap<&str, &ToolUse> = tool_uses
            .map(|tool_use| (tool_use.id.as_str(), tool_use))
            .collect();
        for call in state.batch_calls_mut() {
            let tool_use = tool_uses.get(call.tool_use.id.as_str());
            call.tool_use = (*tool_use.ok_or(RestoreError::Calls)?).clone();
        }
        if state
            .records
            .iter()
            .any(|record| !tool_uses.contains_key(record.id.as_str()))
        {
            return Err(RestoreError::Calls);
        }
        Ok(Self {
            state,
            messages,
            caches: TransientRunState::default(),
        })
    }

    /// Returns this run if its id is `id`, and an error otherwise.
    pub(crate) fn verify_run_id(self, id: &str) -> Result<Self, RestoreError> {
        if self.state.id == id {
            return Ok(self);
        }
        Err(RestoreError::Other { id: self.state.id })
    }

    /// Sets the text of a model response that was interrupted when its process stopped, so that the
    /// report and the session contain it. Has no effect if the run has ended or `text` is empty.
    pub(crate) fn set_partial_answer(&mut self, text: String) {
        if self.outcome().is_none() && !text.is_empty() {
            self.state.partial_answer = Some(text);
            self.state.finish = Some(FinishReason::Interrupted);
        }
    }

    /// Returns the sequence number of the next event that the run emits.
    pub fn next_event_number(&self) -> u64 {
        self.state.next_event
    }

    pub(crate) fn set_next_event_number(&mut self, number: u64) {
        self.state.next_event = number;
    }

    /// Sets the events of the latest change. A checkpoint stores these events, so that another
    /// process can emit them after a crash.
    pub(crate) fn set_pending_events(&mut self, events: Vec<RunEventKind>) {
        self.state.pending_events = events;
    }

    pub(crate) fn take_pending_events(&mut self) -> Vec<RunEventKind> {
        std::mem::take(&mut self.state.pending_events)
    }

    /// Takes the events that an earlier process stored with the state but did not emit.
    pub(crate) fn take_unemitted_events(&mut self) -> Vec<RunEventKind> {
        std::mem::take(&mut self.caches.replayed_events)
    }

    /// Sets the next event number of a restored run. The run's events are stored separately from
    /// its snapshot, and the event store can be more recent.
    ///
    /// `last` is the number of the last event in the event store. `stored` contains its events from
    /// number [`Run::next_event_number`] on. Pending events of the snapshot that are not in
    /// `stored` are emitted when the run continues.
    pub fn resume_event_numbering<'e>(
        &mut self,
        last: u64,
        stored: impl IntoIterator<Item = &'e RunEventKind>,
    ) {
        let mut pending = self.take_pending_events().into_iter().peekable();
        for kind in stored {
            if kind.is_from_tool_or_server() {
                continue;
            }
            if pending.next_if(|next| next == kind).is_none() {
                break;
            }
        }
        self.caches.replayed_events = pending.collect();
        self.state.next_event = last.saturating_add(1);
    }

    /// Returns the messages that the run adds to its session: its own messages, and the text of an
    /// interrupted response, because a person may have read it. After the end of the run, every
    /// tool use in these messages has a result.
    pub fn session_messages(&self) -> Vec<Arc<Message>> {
        let mut messages = self.new_messages().to_vec();
        let partial = self.state.partial_answer.as_ref();
        messages.extend(partial.map(|text| Arc::new(Message::assistant(text))));
        messages
    }
}

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let messages = self.messages_to_store();
        let stored = StoredRun {
            format: FORMAT,
            message_count: messages.len(),
            state: self.state_to_store(),
            messages: Some(messages),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredRun::deserialize(deserializer)?;
        let messages = stored.messages.unwrap_or_default().into_owned();
        Self::from_stored(stored.state, messages).map_err(D::Error::custom)
    }
}

/// The format version of stored runs that this program writes and reads.
const FORMAT: u64 = 1;

/// An error about a stored run whose format this program does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the run is stored in format {format}, and this program reads format {FORMAT}; the stored run \
     is unchanged. To keep it, export it with a program built from commit f008d49 or with the \
     program that stored it; otherwise abandon the run"
)]
pub struct UnsupportedFormat {
    /// The stored format version, or `unknown` if the stored run has none.
    pub format: String,
}

/// Checks the format version of a stored run before its other fields are read.
fn check_format_version(stored: Option<&Value>) -> Result<u64, UnsupportedFormat> {
    if stored.and_then(Value::as_u64) == Some(FORMAT) {
        return Ok(FORMAT);
    }
    let format = stored.map_or_else(|| "unknown".to_owned(), ToString::to_string);
    Err(UnsupportedFormat { format })
}

fn deserialize_format_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let format = Value::deserialize(deserializer)?;
    check_format_version(Some(&format)).map_err(D::Error::custom)
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;

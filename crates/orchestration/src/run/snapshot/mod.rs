//! A run stored step by step: its state, and of its conversation only what is new.
//!
//! A run as a whole is one JSON object with the conversation in it, and a snapshot is the same object with two
//! differences: in the place of the messages stands their number, and inputs and results of calls that are in the
//! conversation stand there alone. So there is one form of the state, and a field that is added to
//! [`Run`] is in both. What is listed anew or shared with other runs is not in a snapshot either.

use std::{cell::RefCell, collections::HashMap, fmt, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::{
    FinishReason, Message, RunSnapshot, SessionStoreError, ToolDefinition, ToolResult,
};

pub(in crate::run) mod inputs;
pub(in crate::run) mod version;

use inputs::Uses;
use version::{StateVersion, UnknownVersion};

use crate::run::{Phase, Run};
use crate::{RecordedResult, RunEventKind, SharedDecisions, ToolCallRecord, ToolFailure};

thread_local! {
    /// What is being serialised on this thread is a snapshot. serde hands nothing down to the fields of a
    /// struct, and it serialises them on the thread that asked for it.
    static APART: RefCell<Option<Apart>> = const { RefCell::new(None) };
}

/// What of a run is left out of its snapshot beside the conversation.
struct Apart {
    /// The results of the first so many records are in the conversation.
    records: usize,
    /// Of each record, whether its input is.
    inputs: Vec<bool>,
    /// Of each call of the batch, whether its tool use is.
    calls: Vec<bool>,
    /// The tools are listed anew before they are looked at.
    tools: bool,
    /// What people decided is shared with other runs, and kept by whoever shares it: it may be of many people.
    decisions: bool,
}

/// What is said of the snapshot that is being made; `None` of a run as a whole.
fn of_snapshot<T>(says: impl FnOnce(&Apart) -> T) -> Option<T> {
    APART.with_borrow(|apart| apart.as_ref().map(says))
}

/// Whether the tool use of this call of the batch is in the conversation alone.
pub(in crate::run) fn is_call_apart(at: usize) -> bool {
    let apart = of_snapshot(|apart| apart.calls.get(at).copied());
    apart.flatten().unwrap_or(false)
}

/// Ends a snapshot's being made, also where that fails.
struct Scope;

impl Scope {
    fn begin(apart: Apart) -> Self {
        APART.set(Some(apart));
        Self
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        APART.set(None);
    }
}

/// Where messages were put between those that there were, in this process.
#[derive(Debug, Default)]
pub(in crate::run) struct Inserted {
    times: u32,
    /// The first place.
    first: usize,
}

impl Inserted {
    pub(in crate::run) fn at(&mut self, place: usize) {
        self.first = if self.times == 0 {
            place
        } else {
            self.first.min(place)
        };
        self.times += 1;
    }
}

/// How much of a run's conversation a store has. By default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotMark {
    messages: usize,
    inserted: u32,
}

/// A stored run cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The state has a version that this program does not read.
    #[error(transparent)]
    Version(UnknownVersion),
    /// The state is none that this version can read.
    #[error("its state cannot be read")]
    State(#[from] serde_json::Error),
    /// The state and the conversation do not belong together.
    #[error("its state is of {expected} messages, and {actual} are stored")]
    Conversation {
        /// How many the state speaks of.
        expected: usize,
        /// How many there are.
        actual: usize,
    },
    /// It is about calls that are not in the conversation.
    #[error("its state is about calls that are not in its conversation")]
    Calls,
    /// The state is that of another run.
    #[error("its state is that of run `{id}`")]
    Other {
        /// That run.
        id: String,
    },
    /// The store cannot read what it has of it.
    #[error("what is stored of it cannot be read")]
    Stored(#[source] SessionStoreError),
}

impl Run {
    /// What a store needs to have this run, where it has what `since` says. Gives what it has then, for the next
    /// time. The state is as long for a long conversation before the run as for a short one.
    ///
    /// Messages mostly come at the end. Where some were put between those that there were, the snapshot has
    /// everything from there on.
    pub fn snapshot(
        &self,
        since: SnapshotMark,
    ) -> Result<(RunSnapshot, SnapshotMark), serde_json::Error> {
        let from = if since.inserted == self.inserted.times {
            since.messages
        } else {
            since.messages.min(self.inserted.first)
        };
        let from = from.min(self.messages.len());
        let state = {
            let _scope = Scope::begin(self.apart());
            serde_json::to_string(self)?
        };
        let snapshot = RunSnapshot {
            state: state.into(),
            from: u64::try_from(from).unwrap_or(u64::MAX),
            messages: self.messages[from..].to_vec(),
        };
        Ok((snapshot, self.mark()))
    }

    /// What a store has that has all of this run.
    pub fn mark(&self) -> SnapshotMark {
        SnapshotMark {
            messages: self.messages.len(),
            inserted: self.inserted.times,
        }
    }

    /// The run of which a store has this snapshot, with the whole conversation.
    pub fn restore(snapshot: RunSnapshot) -> Result<Self, RestoreError> {
        #[derive(serde::Deserialize)]
        struct Versioned {
            #[serde(default)]
            version: Option<Value>,
        }
        #[derive(serde::Deserialize)]
        struct Head {
            messages: usize,
        }
        // First and alone: the rest of another version may have any form.
        let Versioned { version } = serde_json::from_str(&snapshot.state)?;
        StateVersion::check(version.as_ref()).map_err(RestoreError::Version)?;
        let head: Head = serde_json::from_str(&snapshot.state)?;
        if snapshot.from != 0 || head.messages != snapshot.messages.len() {
            return Err(RestoreError::Conversation {
                expected: head.messages,
                actual: snapshot.messages.len(),
            });
        }
        let mut run: Self = serde_json::from_str(&snapshot.state)?;
        run.messages = snapshot.messages;
        let mut records = std::mem::take(&mut run.records);
        let mut phase = std::mem::replace(&mut run.phase, Phase::Model);
        let uses = Uses::of(run.new_messages());
        let is_whole = records.iter_mut().all(|record| uses.give_input(record));
        let is_whole = is_whole
            && match &mut phase {
                Phase::Batch(calls) => calls.iter_mut().all(|call| uses.give(call)),
                _ => true,
            };
        if !is_whole {
            return Err(RestoreError::Calls);
        }
        let own = run.new_messages().iter();
        let results: HashMap<&str, &ToolResult> = own
            .flat_map(|message| message.results())
            .map(|result| (result.tool_use_id.as_str(), result))
            .collect();
        for record in &mut records {
            if let Some(result) = results.get(record.id.as_str()) {
                record.result = RecordedResult {
                    content: result.content.clone(),
                    structured: result.structured.clone(),
                };
            }
        }
        run.records = records;
        run.phase = phase;
        Ok(run)
    }

    /// This run, if it is the one of this id.
    pub(crate) fn belonging_to(self, id: &str) -> Result<Self, RestoreError> {
        if self.id == id {
            return Ok(self);
        }
        Err(RestoreError::Other { id: self.id })
    }

    /// The model call that was under way when its process ended had shown these words: they are what there is of its
    /// answer. Only of a run that does not go on.
    pub(crate) fn broke_off(&mut self, words: String) {
        if self.outcome().is_none() && !words.is_empty() {
            self.partial_answer = Some(words);
            self.finish = Some(FinishReason::Interrupted);
        }
    }

    /// The number of the first event that was told after it was stored.
    pub fn next_event(&self) -> u64 {
        self.next_event
    }

    /// Goes on with the numbers of its events where they were stored beside it: `last` is the number of the
    /// last one, and `stored` is what there is of them from [`Run::next_event`] on. What was about to be told
    /// when it was stored, and is not among them, is told late.
    pub fn continue_events_after<'e>(
        &mut self,
        last: u64,
        stored: impl IntoIterator<Item = &'e RunEventKind>,
    ) {
        let mut untold = std::mem::take(&mut self.untold).into_iter().peekable();
        for kind in stored {
            if kind.is_from_outside() {
                continue;
            }
            if untold.next_if(|next| next == kind).is_none() {
                break;
            }
        }
        self.told_late = untold.collect();
        self.next_event = last.saturating_add(1);
    }

    /// What the run adds to its session: the messages that are its own, and the text of an answer that broke
    /// off, so that what a person was shown is known to whoever answers them next. Once the run is over, every
    /// tool use in it has its result.
    pub fn session_messages(&self) -> Vec<Arc<Message>> {
        let mut messages = self.new_messages().to_vec();
        let partial = self.partial_answer.as_ref();
        messages.extend(partial.map(|text| Arc::new(Message::assistant(text))));
        messages
    }

    fn apart(&self) -> Apart {
        let first_open = match &self.phase {
            Phase::Batch(calls) => calls.iter().map(|call| call.record).min(),
            _ => None,
        };
        let uses = Uses::of(self.new_messages());
        let inputs = self.records.iter().map(|record| uses.have_input(record));
        Apart {
            records: first_open.unwrap_or(self.records.len()),
            inputs: inputs.collect(),
            calls: match &self.phase {
                Phase::Batch(calls) => calls.iter().map(|call| uses.have(call)).collect(),
                _ => Vec::new(),
            },
            tools: matches!(self.phase, Phase::Model | Phase::Done(_)),
            decisions: self.shares_decisions,
        }
    }
}

/// The conversation: all of it, or the number of its messages in a snapshot.
pub(in crate::run) mod conversation {
    use serde::{
        Deserialize as _, Deserializer,
        de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
    };

    use super::{Arc, Message, Serialize as _, Serializer, fmt, of_snapshot};

    pub(in crate::run) fn serialize<S: Serializer>(
        messages: &Vec<Arc<Message>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match of_snapshot(|_| ()) {
            None => messages.serialize(serializer),
            Some(()) => messages.len().serialize(serializer),
        }
    }

    pub(in crate::run) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Arc<Message>>, D::Error> {
        deserializer.deserialize_any(Messages)
    }

    struct Messages;

    impl<'de> Visitor<'de> for Messages {
        type Value = Vec<Arc<Message>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("messages, or how many of them are stored elsewhere")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }

        /// [`Run::restore`](crate::Run::restore) puts them there.
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
    }
}

/// The tools of the current step.
pub(in crate::run) fn tools<S: Serializer>(
    tools: &Vec<Arc<ToolDefinition>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if of_snapshot(|apart| apart.tools) == Some(true) {
        return serializer.collect_seq([(); 0]);
    }
    tools.serialize(serializer)
}

/// What people decided.
pub(in crate::run) fn decisions<S: Serializer>(
    decisions: &SharedDecisions,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if of_snapshot(|apart| apart.decisions) == Some(true) {
        return SharedDecisions::default().serialize(serializer);
    }
    decisions.serialize(serializer)
}

/// The records of the run's calls.
pub(in crate::run) fn records<S: Serializer>(
    records: &[ToolCallRecord],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let parts = |at: usize| {
        of_snapshot(|apart| Parts {
            result: at >= apart.records,
            input: !apart.inputs.get(at).is_some_and(|is_apart| *is_apart),
        })
    };
    let records = records.iter().enumerate();
    serializer.collect_seq(records.map(|(at, record)| Recorded {
        record,
        parts: parts(at).unwrap_or(Parts {
            result: true,
            input: true,
        }),
    }))
}

/// A record, without its input and its result where these are in the conversation.
struct Recorded<'a> {
    record: &'a ToolCallRecord,
    parts: Parts,
}

/// What of a record is stored with it.
struct Parts {
    result: bool,
    input: bool,
}

impl Serialize for Recorded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// A [`ToolCallRecord`] as it is stored.
        #[derive(Serialize)]
        struct Lean<'r> {
            id: &'r str,
            server: &'r Option<String>,
            tool: &'r str,
            input: &'r Value,
            is_error: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            failure: Option<ToolFailure>,
            cached: bool,
            attempts: u32,
            duration_ms: u64,
            result: &'r RecordedResult,
        }

        if self.parts.result && self.parts.input {
            return self.record.serialize(serializer);
        }
        // Field by field: what may be long is not copied to be left out.
        let ToolCallRecord {
            id,
            server,
            tool,
            input,
            is_error,
            failure,
            cached,
            attempts,
            duration_ms,
            result,
        } = self.record;
        let nothing = RecordedResult::default();
        Lean {
            id,
            server,
            tool,
            input: if self.parts.input {
                input
            } else {
                &Value::Null
            },
            is_error: *is_error,
            failure: *failure,
            cached: *cached,
            attempts: *attempts,
            duration_ms: *duration_ms,
            result: if self.parts.result { result } else { &nothing },
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;

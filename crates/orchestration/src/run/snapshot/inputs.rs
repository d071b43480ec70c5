//! Inputs of calls in a snapshot: what stands in the conversation stands nowhere else.
//!
//! A call has its input in its tool use, in its state, in the question about it and in its record. As long as these
//! are what the model wrote, a snapshot has none of them. A version that does not know of this takes a state of such
//! calls for unreadable: it must not run a call without its input.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;
use switchboard_domain::{
    ApprovalRequest, JsonObject, Message, SharedObject, ToolAnnotations, ToolInput, ToolOrigin,
    ToolResult, ToolUse,
};

use crate::run::{
    snapshot::is_call_apart,
    tool_batch::batch::{CallState, PendingCall},
};
use crate::{SteadyTime, ToolCallRecord};

/// The tool uses of messages, by their ids.
pub(in crate::run) struct Uses<'m>(HashMap<&'m str, &'m ToolUse>);

impl<'m> Uses<'m> {
    pub(in crate::run) fn of(messages: &'m [Arc<Message>]) -> Self {
        let uses = messages.iter().flat_map(|message| message.tool_uses());
        Self(uses.map(|it| (it.id.as_str(), it)).collect())
    }

    /// Whether the call is there as it is here.
    pub(in crate::run) fn have(&self, call: &PendingCall) -> bool {
        self.0.get(call.tool_use.id.as_str()) == Some(&&call.tool_use)
    }

    /// Whether the input that was recorded is there.
    pub(in crate::run) fn have_input(&self, record: &ToolCallRecord) -> bool {
        let tool_use = self.0.get(record.id.as_str());
        match tool_use.map(|it| (&it.input, &*record.input)) {
            Some((ToolInput::Object(written), Value::Object(recorded))) => **written == *recorded,
            Some((ToolInput::Malformed { raw, .. }, Value::String(recorded))) => raw == recorded,
            _ => false,
        }
    }

    /// Gives a record the input that was left out; whether that is there.
    pub(in crate::run) fn give_input(&self, record: &mut ToolCallRecord) -> bool {
        // An input is an object, or the text that is none.
        if !record.input.is_null() {
            return true;
        }
        let Some(tool_use) = self.0.get(record.id.as_str()) else {
            return false;
        };
        record.input = tool_use.input.shown();
        true
    }

    /// Gives a call what was left out of it; whether that is there.
    pub(in crate::run) fn give(&self, call: &mut PendingCall) -> bool {
        let Some(left_out) = call.left_out.take() else {
            return true;
        };
        let Some(tool_use) = self.0.get(call.tool_use.id.as_str()) else {
            return false;
        };
        call.tool_use = (*tool_use).clone();
        if let CallState::Waiting { request, .. } = &mut call.state {
            request.tool_use = (*tool_use).clone();
        }
        if left_out == LeftOut::ToolUse {
            return true;
        }
        let (
            CallState::Waiting { input, .. }
            | CallState::Ready { input }
            | CallState::Started { input },
            ToolInput::Object(written),
        ) = (&mut call.state, &tool_use.input)
        else {
            return false;
        };
        input.clone_from(written);
        true
    }
}

/// What of a call stands in the conversation alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::run) enum LeftOut {
    /// What the model wrote. What is to run is something else: it was mended or edited.
    ToolUse,
    /// What the model wrote, and that is to run.
    ToolUseAndInput,
}

/// A call without what stands in the conversation.
#[derive(Serialize)]
struct Lean<'c> {
    /// Its id.
    tool_use: &'c str,
    left_out: LeftOut,
    origin: &'c Option<ToolOrigin>,
    annotations: ToolAnnotations,
    state: LeanState<'c>,
    record: usize,
    barrier: bool,
    fingerprint: &'c Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<SteadyTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats_at: Option<usize>,
    #[serde(skip_serializing_if = "<[usize]>::is_empty")]
    repeated_at: &'c [usize],
}

/// The same of its state; see [`CallState`].
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LeanState<'c> {
    Waiting {
        input: Option<&'c SharedObject>,
        request: Box<ApprovalRequest>,
    },
    Ready {
        input: Option<&'c SharedObject>,
    },
    Started {
        input: Option<&'c SharedObject>,
    },
    Repeats {
        of: &'c str,
    },
    Settled {
        result: &'c ToolResult,
    },
}

impl<'c> Lean<'c> {
    fn of(call: &'c PendingCall) -> Self {
        let PendingCall {
            tool_use,
            left_out: _,
            origin,
            annotations,
            state,
            record,
            barrier,
            fingerprint,
            deadline,
            repeats_at,
            repeated_at,
        } = call;
        let mut left_out = LeftOut::ToolUse;
        let mut unless_written = |input: &'c SharedObject| {
            if matches!(&tool_use.input, ToolInput::Object(written) if written == input) {
                left_out = LeftOut::ToolUseAndInput;
                return None;
            }
            Some(input)
        };
        let state = match state {
            CallState::Waiting { input, request } => LeanState::Waiting {
                input: unless_written(input),
                request: Box::new(request.about(nothing(&tool_use.id))),
            },
            CallState::Ready { input } => LeanState::Ready {
                input: unless_written(input),
            },
            CallState::Started { input } => LeanState::Started {
                input: unless_written(input),
            },
            CallState::Repeats { of } => LeanState::Repeats { of },
            CallState::Settled { result } => LeanState::Settled { result },
        };
        Self {
            tool_use: &tool_use.id,
            left_out,
            origin,
            annotations: *annotations,
            state,
            record: *record,
            barrier: *barrier,
            fingerprint,
            deadline: *deadline,
            repeats_at: *repeats_at,
            repeated_at,
        }
    }
}

/// In the place of a tool use that stands elsewhere.
fn nothing(id: &str) -> ToolUse {
    ToolUse::new(id, "", JsonObject::new().into())
}

/// The calls of a batch.
pub(in crate::run) fn calls<S: Serializer>(
    calls: &[PendingCall],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Stored<'c> {
        Whole(&'c PendingCall),
        Lean(Box<Lean<'c>>),
    }
    let calls = calls.iter().enumerate();
    serializer.collect_seq(calls.map(|(at, call)| {
        if is_call_apart(at) {
            Stored::Lean(Box::new(Lean::of(call)))
        } else {
            Stored::Whole(call)
        }
    }))
}

/// A tool use, or the id of one that stands elsewhere.
pub(in crate::run) fn tool_use<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ToolUse, D::Error> {
    struct Stored;

    impl<'de> Visitor<'de> for Stored {
        type Value = ToolUse;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a tool use, or the id of one that is stored elsewhere")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ToolUse, A::Error> {
            ToolUse::deserialize(MapAccessDeserializer::new(map))
        }

        fn visit_str<E>(self, id: &str) -> Result<ToolUse, E> {
            Ok(nothing(id))
        }
    }
    deserializer.deserialize_any(Stored)
}

/// An input, or nothing where it stands elsewhere.
pub(in crate::run) fn input<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SharedObject, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

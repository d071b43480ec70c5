//! A run as Anthropic's stream of message events, or as one message.
//!
//! The forms and their order are those of the package `anthropic` 2.12.0 (`types/raw_*_event.py`,
//! `types/message.py`, `types/usage.py`, `accumulate_event` of `lib/streaming/_messages.py`; errors in mid-stream:
//! `_streaming.py`).
//!
//! The server's own tools run on the server: a client sees what the model says, each step in blocks of its own, and
//! what the tools did in the field `switchboard` of `ping` events, which every client skips. It holds an event of the run, as
//! `GET /runs/{id}/events` tells it.

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{Outcome, RunErrorKind, RunEvent, RunReport};

use super::super::{
    openai_chat::RunDetails,
    tools::client_tools::call_id,
    response::state::{ResponseState, ResponseOptions},
    response::failure::{self, Failure},
    response::frames::SseFrames,
    encoder::EventEncoder,
    sequencer::{ClientEvent, Call, PartKind},
    response::collected::CollectedResponse,
};

/// What the id of a message begins with.
const ID: &str = "msg_";

/// The projection: it is given a run, and says what a client reads.
#[derive(Debug)]
pub(crate) struct AnthropicMessagesStream {
    /// What the client asked for, which is what it expects to read; else the model that is asked.
    model: Option<String>,
    /// The index of the next block.
    next: u32,
    is_closed: bool,
    course: ResponseState,
}

impl AnthropicMessagesStream {
    /// A stream for a client that asked for this model.
    pub(crate) fn new(model: Option<String>, terms: ResponseOptions) -> Self {
        Self {
            model,
            next: 0,
            is_closed: false,
            course: ResponseState::new(terms),
        }
    }
}

impl EventEncoder for AnthropicMessagesStream {
    fn say(&mut self, beat: &ClientEvent<'_>, out: &mut SseFrames) {
        self.course.follow(beat);
        match *beat {
            ClientEvent::RunStarted { event, model } => {
                self.model.get_or_insert_with(|| model.to_string());
                self.begin(out);
                ping(event, out);
            }
            ClientEvent::PartStarted(part) => self.block_begins(part.kind, out),
            ClientEvent::PartDelta(part, text) => self.block_grows(part.kind, text, out),
            ClientEvent::PartFinished(_) => self.block_ends(out),
            ClientEvent::Other(event) => ping(event, out),
            ClientEvent::RunFinished(report) => self.end(report, out),
            // CollectedResponse by the events themselves, or no concern of this dialect.
            _ => {}
        }
    }

    /// The client is to make calls, and the response ends.
    fn waits(&mut self, _: &[&Call], out: &mut SseFrames) {
        for (index, call) in (self.next..).zip(self.course.calls()) {
            let content_block = Block::ToolUse {
                id: &call.id,
                name: &call.name,
                input: Input::SequencedEncoder,
            };
            let begun = Event::ContentBlockStart {
                index,
                content_block,
            };
            event_frame(&begun, out);
            let delta = BlockDelta::InputJsonDelta {
                partial_json: &call.input,
            };
            event_frame(&Event::ContentBlockDelta { index, delta }, out);
            event_frame(&Event::ContentBlockStop { index }, out);
        }
        let ended = Event::MessageDelta {
            delta: Delta {
                stop_reason: "tool_use",
                stop_sequence: None,
                stop_details: None,
            },
            usage: MessageUsage::of(self.course.usage_so_far()),
            switchboard: None,
        };
        event_frame(&ended, out);
        event_frame(&Event::MessageStop, out);
        self.is_closed = true;
    }

    fn breaks(&mut self, why: &str, out: &mut SseFrames) {
        self.fail(&Failure::interrupted(why), out);
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn ends_at(&self, call: &Call) -> bool {
        call.is_clients()
    }

    fn client_id(&self, call: &Call) -> String {
        call_id(self.course.run(), &call.tool_use)
    }
}

impl AnthropicMessagesStream {
    fn block_begins(&self, kind: PartKind, out: &mut SseFrames) {
        let content_block = match kind {
            PartKind::Text => Block::Text { text: "" },
            PartKind::Reasoning => Block::Thinking {
                thinking: "",
                signature: "",
            },
        };
        let index = self.next;
        let begun = Event::ContentBlockStart {
            index,
            content_block,
        };
        event_frame(&begun, out);
    }

    fn block_grows(&self, kind: PartKind, text: &str, out: &mut SseFrames) {
        let delta = match kind {
            PartKind::Text => BlockDelta::TextDelta { text },
            PartKind::Reasoning => BlockDelta::ThinkingDelta { thinking: text },
        };
        let index = self.next;
        event_frame(&Event::ContentBlockDelta { index, delta }, out);
    }

    fn block_ends(&mut self, out: &mut SseFrames) {
        event_frame(&Event::ContentBlockStop { index: self.next }, out);
        self.next += 1;
    }

    fn begin(&self, out: &mut SseFrames) {
        let message = Message {
            id: self.course.id(ID),
            kind: "message",
            role: "assistant",
            model: self.model.as_deref().unwrap_or_default(),
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            stop_details: None,
            // What the prompt costs is known when the run is over.
            usage: MessageUsage::default(),
            switchboard: None,
        };
        event_frame(&Event::MessageStart { message }, out);
    }

    fn end(&mut self, report: &RunReport, out: &mut SseFrames) {
        if let Some(failure) = self.course.failure(report) {
            return self.fail(&failure, out);
        }
        let ended = Event::MessageDelta {
            delta: Delta {
                stop_reason: stop_reason(report),
                stop_sequence: None,
                stop_details: StopDetails::of(report),
            },
            usage: MessageUsage::of(self.course.usage(report)),
            switchboard: Some(RunDetails::of_told(report)),
        };
        event_frame(&ended, out);
        event_frame(&Event::MessageStop, out);
        self.is_closed = true;
    }

    fn fail(&mut self, failure: &Failure<'_>, out: &mut SseFrames) {
        let kind = error_kind(failure.status.as_u16());
        out.named("error", &ErrorBody::new(kind, failure.message));
        self.is_closed = true;
    }
}

/// A frame that is named as its value says.
fn event_frame(event: &Event<'_>, out: &mut SseFrames) {
    let name = match event {
        Event::MessageStart { .. } => "message_start",
        Event::ContentBlockStart { .. } => "content_block_start",
        Event::ContentBlockDelta { .. } => "content_block_delta",
        Event::ContentBlockStop { .. } => "content_block_stop",
        Event::MessageDelta { .. } => "message_delta",
        Event::MessageStop => "message_stop",
        Event::Ping { .. } => "ping",
    };
    out.named(name, event);
}

fn ping(event: &RunEvent, out: &mut SseFrames) {
    event_frame(&Event::Ping { switchboard: event }, out);
}

/// Whatever limit ended a run, the answer is cut short; which limit it was stands in `switchboard`.
fn stop_reason(report: &RunReport) -> &'static str {
    if failure::is_declined(report) {
        return "refusal";
    }
    match (report.outcome, &report.finish_reason) {
        (Outcome::Limited, _)
            if report
                .error
                .as_ref()
                .is_some_and(|error| error.kind == RunErrorKind::ContextOverflow) =>
        {
            "model_context_window_exceeded"
        }
        (Outcome::Limited, _) | (_, Some(FinishReason::Length)) => "max_tokens",
        _ => "end_turn",
    }
}

/// The word of an error for an HTTP status, as the package's `_exceptions.py` and `types/error_*.py` have them.
pub(crate) fn error_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    MessageStart {
        message: Message<'a>,
    },
    ContentBlockStart {
        index: u32,
        content_block: Block<'a>,
    },
    ContentBlockDelta {
        index: u32,
        delta: BlockDelta<'a>,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: Delta<'a>,
        usage: MessageUsage,
        #[serde(skip_serializing_if = "Option::is_none")]
        switchboard: Option<RunDetails<'a>>,
    },
    MessageStop,
    Ping {
        switchboard: &'a RunEvent,
    },
}

/// A message.
#[derive(Debug, Serialize)]
pub(crate) struct Message<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<StopDetails<'a>>,
    usage: MessageUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    switchboard: Option<RunDetails<'a>>,
}

impl<'a> Message<'a> {
    /// The answer of a run that has one.
    pub(crate) fn new(said: &'a CollectedResponse, report: &'a RunReport, model: &'a str) -> Self {
        let usage = said.course.usage(report);
        Self {
            stop_details: StopDetails::of(report),
            switchboard: Some(RunDetails::of(report)),
            ..Self::of(said, &report.answer, stop_reason(report), usage, model)
        }
    }

    /// Calls that the client is to make.
    pub(crate) fn calls(said: &'a CollectedResponse, model: &'a str) -> Self {
        let mut message = Self::of(
            said,
            &said.text,
            "tool_use",
            said.course.usage_so_far(),
            model,
        );
        let calls = said.course.calls().map(|call| Block::ToolUse {
            id: &call.id,
            name: &call.name,
            input: Input::Whole(&call.input),
        });
        message.content.extend(calls);
        message
    }

    fn of(
        said: &'a CollectedResponse,
        text: &'a str,
        stop_reason: &'static str,
        usage: &Usage,
        model: &'a str,
    ) -> Self {
        let mut content = Vec::new();
        if !said.reasoning.is_empty() {
            content.push(Block::Thinking {
                thinking: &said.reasoning,
                signature: "",
            });
        }
        if !text.is_empty() {
            content.push(Block::Text { text });
        }
        Self {
            id: said.course.id(ID),
            kind: "message",
            role: "assistant",
            model,
            content,
            stop_reason: Some(stop_reason),
            stop_sequence: None,
            stop_details: None,
            usage: MessageUsage::of(usage),
            switchboard: None,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    /// The signature is the vendor's, for its own API; a run gives none away, and takes thinking back without.
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    /// A call that the client is to make.
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Input<'a>,
    },
}

/// The input of a call.
#[derive(Debug, Clone, Copy)]
enum Input<'a> {
    /// A block that has just begun has none yet.
    SequencedEncoder,
    /// As JSON text.
    Whole(&'a str),
}

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self {
            Self::SequencedEncoder => "{}",
            Self::Whole(text) => text,
        };
        // It was written by this program.
        let value: Value = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names are the vendor's")]
enum BlockDelta<'a> {
    TextDelta { text: &'a str },
    ThinkingDelta { thinking: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are the vendor's")]
struct Delta<'a> {
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<StopDetails<'a>>,
}

/// Why a model declined.
#[derive(Debug, Serialize)]
struct StopDetails<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    category: Option<&'a str>,
    explanation: Option<&'a str>,
}

impl<'a> StopDetails<'a> {
    fn of(report: &'a RunReport) -> Option<Self> {
        let error = report.error.as_ref()?;
        failure::is_declined(report).then_some(Self {
            kind: "refusal",
            category: None,
            explanation: Some(&error.message),
        })
    }
}

/// Tokens. The first two are required there; 0 also stands for "nobody said". The input leaves out what a cache
/// held, as the vendor counts it.
#[derive(Debug, Serialize, Default)]
#[expect(clippy::struct_field_names, reason = "the names are the vendor's")]
struct MessageUsage {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation_input_tokens: Option<u64>,
}

impl MessageUsage {
    fn of(usage: &Usage) -> Self {
        let cached = usage
            .cache_read_tokens
            .unwrap_or(0)
            .saturating_add(usage.cache_write_tokens.unwrap_or(0));
        Self {
            input_tokens: usage.input_tokens.unwrap_or(0).saturating_sub(cached),
            output_tokens: usage.output_tokens.unwrap_or(0),
            cache_read_input_tokens: usage.cache_read_tokens,
            cache_creation_input_tokens: usage.cache_write_tokens,
        }
    }
}

/// An error in Anthropic's form.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorBody<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: ErrorDetails<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorDetails<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: &'a str,
}

impl<'a> ErrorBody<'a> {
    pub(crate) fn new(kind: &'a str, message: &'a str) -> Self {
        Self {
            kind: "error",
            error: ErrorDetails { kind, message },
        }
    }
}

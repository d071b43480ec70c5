//! A run as Anthropic's stream of message events, or as one message.
//!
//! The formats and their order are those of the package `anthropic` 2.12.0
//! (`types/raw_*_event.py`, `types/message.py`, `types/usage.py`, `accumulate_event` of
//! `lib/streaming/_messages.py`, errors in a stream: `_streaming.py`).
//!
//! The server's own tools run on the server. The text of each step is a separate block. Other run
//! events are in the field `switchboard` of `ping` events, which every client skips, in the format
//! of `GET /runs/{id}/events`.

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{Outcome, RunErrorKind, RunEvent, RunReport};

use super::super::{
    encoder::EventEncoder,
    response::collected::CollectedResponse,
    response::collected::RunDetails,
    response::failure::{self, Failure},
    response::frames::SseFrames,
    response::state::{ResponseOptions, ResponseState},
    sequencer::{Call, ClientEvent, PartKind},
    tools::client_tools::call_id,
};

/// Prefix of message ids.
const ID: &str = "msg_";

/// An encoder of message events.
#[derive(Debug)]
pub(crate) struct AnthropicMessagesStream {
    /// The model that the client named, otherwise the model of the run.
    model: Option<String>,
    /// The index of the next block.
    next: u32,
    is_closed: bool,
    state: ResponseState,
}

impl AnthropicMessagesStream {
    pub(crate) fn new(model: Option<String>, options: ResponseOptions) -> Self {
        Self {
            model,
            next: 0,
            is_closed: false,
            state: ResponseState::new(options),
        }
    }
}

impl EventEncoder for AnthropicMessagesStream {
    fn encode(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        self.state.update(event);
        match *event {
            ClientEvent::RunStarted { event, model } => {
                self.model.get_or_insert_with(|| model.to_string());
                self.begin(out);
                ping(event, out);
            }
            ClientEvent::PartStarted(part) => self.start_block(part.kind, out),
            ClientEvent::PartDelta(part, text) => self.extend_block(part.kind, text, out),
            ClientEvent::PartFinished(_) => self.finish_block(out),
            ClientEvent::Other(event) => ping(event, out),
            ClientEvent::RunFinished(report) => self.end(report, out),
            _ => {}
        }
    }

    fn pause(&mut self, _: &[&Call], out: &mut SseFrames) {
        for (index, call) in (self.next..).zip(self.state.calls()) {
            let content_block = Block::ToolUse {
                id: &call.id,
                name: &call.name,
                input: Input::Empty,
            };
            let start = Event::ContentBlockStart {
                index,
                content_block,
            };
            write_event(&start, out);
            let delta = BlockDelta::InputJsonDelta {
                partial_json: &call.input,
            };
            write_event(&Event::ContentBlockDelta { index, delta }, out);
            write_event(&Event::ContentBlockStop { index }, out);
        }
        let end = Event::MessageDelta {
            delta: Delta {
                stop_reason: "tool_use",
                stop_sequence: None,
                stop_details: None,
            },
            usage: MessageUsage::of(self.state.usage_so_far()),
            switchboard: None,
        };
        write_event(&end, out);
        write_event(&Event::MessageStop, out);
        self.is_closed = true;
    }

    fn interrupt(&mut self, reason: &str, out: &mut SseFrames) {
        self.fail(&Failure::interrupted(reason), out);
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn ends_response_at(&self, call: &Call) -> bool {
        call.is_client_tool()
    }

    fn client_id(&self, call: &Call) -> String {
        call_id(self.state.run(), &call.tool_use_id)
    }
}

impl AnthropicMessagesStream {
    fn start_block(&self, kind: PartKind, out: &mut SseFrames) {
        let content_block = match kind {
            PartKind::Text => Block::Text { text: "" },
            PartKind::Reasoning => Block::Thinking {
                thinking: "",
                signature: "",
            },
        };
        let index = self.next;
        let start = Event::ContentBlockStart {
            index,
            content_block,
        };
        write_event(&start, out);
    }

    fn extend_block(&self, kind: PartKind, text: &str, out: &mut SseFrames) {
        let delta = match kind {
            PartKind::Text => BlockDelta::TextDelta { text },
            PartKind::Reasoning => BlockDelta::ThinkingDelta { thinking: text },
        };
        let index = self.next;
        write_event(&Event::ContentBlockDelta { index, delta }, out);
    }

    fn finish_block(&mut self, out: &mut SseFrames) {
        write_event(&Event::ContentBlockStop { index: self.next }, out);
        self.next += 1;
    }

    fn begin(&self, out: &mut SseFrames) {
        let message = Message {
            id: self.state.id(ID),
            kind: "message",
            role: "assistant",
            model: self.model.as_deref().unwrap_or_default(),
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            stop_details: None,
            // Known when the run finishes.
            usage: MessageUsage::default(),
            switchboard: None,
        };
        write_event(&Event::MessageStart { message }, out);
    }

    fn end(&mut self, report: &RunReport, out: &mut SseFrames) {
        if let Some(failure) = self.state.failure(report) {
            return self.fail(&failure, out);
        }
        let end = Event::MessageDelta {
            delta: Delta {
                stop_reason: stop_reason(report),
                stop_sequence: None,
                stop_details: StopDetails::of(report),
            },
            usage: MessageUsage::of(self.state.usage(report)),
            switchboard: Some(RunDetails::without_tool_calls(report)),
        };
        write_event(&end, out);
        write_event(&Event::MessageStop, out);
        self.is_closed = true;
    }

    fn fail(&mut self, failure: &Failure<'_>, out: &mut SseFrames) {
        let kind = error_kind(failure.status.as_u16());
        out.named("error", &ErrorBody::new(kind, failure.message));
        self.is_closed = true;
    }
}

/// Appends an event under its name.
fn write_event(event: &Event<'_>, out: &mut SseFrames) {
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
    write_event(&Event::Ping { switchboard: event }, out);
}

/// Every limit of a run except the context window is `max_tokens`; the field `switchboard` names
/// the limit.
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

/// Returns the error type of an HTTP status, as in the package's `_exceptions.py` and
/// `types/error_*.py`.
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
    pub(crate) fn new(
        response: &'a CollectedResponse,
        report: &'a RunReport,
        model: &'a str,
    ) -> Self {
        let usage = response.state.usage(report);
        Self {
            stop_details: StopDetails::of(report),
            switchboard: Some(RunDetails::new(report)),
            ..Self::of(response, &report.answer, stop_reason(report), usage, model)
        }
    }

    pub(crate) fn calls(response: &'a CollectedResponse, model: &'a str) -> Self {
        let mut message = Self::of(
            response,
            &response.text,
            "tool_use",
            response.state.usage_so_far(),
            model,
        );
        let calls = response.state.calls().map(|call| Block::ToolUse {
            id: &call.id,
            name: &call.name,
            input: Input::Json(&call.input),
        });
        message.content.extend(calls);
        message
    }

    fn of(
        response: &'a CollectedResponse,
        text: &'a str,
        stop_reason: &'static str,
        usage: &Usage,
        model: &'a str,
    ) -> Self {
        let mut content = Vec::new();
        if !response.reasoning.is_empty() {
            content.push(Block::Thinking {
                thinking: &response.reasoning,
                signature: "",
            });
        }
        if !text.is_empty() {
            content.push(Block::Text { text });
        }
        Self {
            id: response.state.id(ID),
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
    /// The signature is always empty, because it belongs to the provider of the run.
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    /// A call for the client.
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Input<'a>,
    },
}

/// The input of a call.
#[derive(Debug, Clone, Copy)]
enum Input<'a> {
    /// The input of a block that just started.
    Empty,
    /// JSON text.
    Json(&'a str),
}

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self {
            Self::Empty => "{}",
            Self::Json(text) => text,
        };
        let value: Value = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names are Anthropic's")]
enum BlockDelta<'a> {
    TextDelta { text: &'a str },
    ThinkingDelta { thinking: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are Anthropic's")]
struct Delta<'a> {
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<StopDetails<'a>>,
}

/// Details of a refusal.
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

/// Token counts. The first two are required, so 0 also means unknown. Cached tokens are not part of
/// `input_tokens`.
#[derive(Debug, Serialize, Default)]
#[expect(clippy::struct_field_names, reason = "the names are Anthropic's")]
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

/// An error in Anthropic's format.
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

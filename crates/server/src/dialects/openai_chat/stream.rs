//! A run as a stream of OpenAI's `chat.completion.chunk`s, or as one `chat.completion`.
//!
//! The formats are those of the package `openai` 3.54.0 (`types/chat/chat_completion_chunk.py`,
//! `chat_completion.py`, `types/completion_usage.py`, errors in a stream: `_streaming.py`).
//!
//! The server's own tools run on the server. Their events are in the field `switchboard` of chunks,
//! which SDKs keep or ignore, in the format of `GET /runs/{id}/events`. Reasoning is in
//! `reasoning_content`, the name that compatible servers use.

use axum::http::StatusCode;
use serde::Serialize;
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{Outcome, RunErrorKind, RunEvent, RunReport};

use super::super::{
    encoder::EventEncoder,
    response::collected::{CollectedResponse, RunDetails},
    response::failure::Failure,
    response::frames::SseFrames,
    response::state::{ResponseOptions, ResponseState},
    sequencer::{Call, ClientEvent, PartKind},
    tools::client_tools::{ClientCall, call_id},
};

/// Prefix of answer ids.
const ID: &str = "chatcmpl-";

/// An encoder of chunks.
#[derive(Debug)]
pub(crate) struct OpenAiChatStream {
    /// The model that the client named, otherwise the model of the run.
    model: Option<String>,
    with_usage: bool,
    id: String,
    /// Seconds since 1970.
    created: i64,
    has_text: bool,
    is_closed: bool,
    state: ResponseState,
}

impl OpenAiChatStream {
    /// `with_usage` is the client's `stream_options.include_usage`.
    pub(crate) fn new(model: Option<String>, with_usage: bool, options: ResponseOptions) -> Self {
        Self {
            model,
            with_usage,
            id: String::new(),
            created: 0,
            has_text: false,
            is_closed: false,
            state: ResponseState::new(options),
        }
    }
}

impl EventEncoder for OpenAiChatStream {
    fn encode(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        self.state.update(event);
        match event {
            ClientEvent::RunStarted { event, model } => {
                self.id = self.state.id(ID);
                self.created = event.time.as_second();
                self.model.get_or_insert_with(|| model.to_string());
                self.begin(Some(event), out);
            }
            ClientEvent::PartStarted(part) if part.kind == PartKind::Text => {
                // One field contains the text of all steps, so text after a tool needs a paragraph.
                if part.starts_paragraph && self.has_text {
                    self.text("\n\n", out);
                }
                self.has_text = true;
            }
            ClientEvent::PartDelta(part, text) => match part.kind {
                PartKind::Text => self.text(text, out),
                PartKind::Reasoning => {
                    let delta = Delta {
                        reasoning_content: Some(text),
                        ..Delta::default()
                    };
                    self.chunk(delta, None, None, out);
                }
            },
            ClientEvent::Other(event) => self.chunk(Delta::default(), None, Some(event), out),
            ClientEvent::RunFinished(report) => self.end(report, out),
            _ => {}
        }
    }

    fn pause(&mut self, _: &[&Call], out: &mut SseFrames) {
        for (index, call) in (0..).zip(self.state.calls()) {
            let call = CallDelta::new(index, call);
            let delta = Delta {
                tool_calls: Some(std::slice::from_ref(&call)),
                ..Delta::default()
            };
            self.chunk(delta, None, None, out);
        }
        self.finish("tool_calls", self.state.usage_so_far(), out);
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

impl OpenAiChatStream {
    fn begin(&self, event: Option<&RunEvent>, out: &mut SseFrames) {
        let delta = Delta {
            role: Some("assistant"),
            content: Some(""),
            ..Delta::default()
        };
        self.chunk(delta, None, event, out);
    }

    fn text(&self, text: &str, out: &mut SseFrames) {
        let delta = Delta {
            content: Some(text),
            ..Delta::default()
        };
        self.chunk(delta, None, None, out);
    }

    fn end(&mut self, report: &RunReport, out: &mut SseFrames) {
        if let Some(failure) = self.state.failure(report) {
            return self.fail(&failure, out);
        }
        if let Some(refusal) = refusal(report) {
            let delta = Delta {
                refusal: Some(refusal),
                ..Delta::default()
            };
            self.chunk(delta, None, None, out);
        }
        self.finish(finish_reason(report), self.state.usage(report), out);
        self.is_closed = true;
    }

    fn finish(&self, reason: &str, usage: &Usage, out: &mut SseFrames) {
        self.chunk(Delta::default(), Some(reason), None, out);
        if self.with_usage {
            out.data(&Chunk {
                usage: Some(ChatUsage::of(usage)),
                ..self.empty()
            });
        }
        out.text("[DONE]");
    }

    fn fail(&mut self, failure: &Failure<'_>, out: &mut SseFrames) {
        let kind = error_kind(failure.status);
        let (why, code) = (failure.message, Some(&*failure.code));
        out.data(&ErrorBody::new(kind, why, None, code));
        out.text("[DONE]");
        self.is_closed = true;
    }

    fn chunk(
        &self,
        delta: Delta<'_>,
        finish_reason: Option<&str>,
        event: Option<&RunEvent>,
        out: &mut SseFrames,
    ) {
        let choice = ChunkChoice {
            index: 0,
            delta,
            logprobs: (),
            finish_reason,
        };
        out.data(&Chunk {
            choices: std::slice::from_ref(&choice),
            switchboard: event,
            ..self.empty()
        });
    }

    fn empty(&self) -> Chunk<'_> {
        Chunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.as_deref().unwrap_or_default(),
            choices: &[],
            usage: None,
            switchboard: None,
        }
    }
}

/// Returns the error type of an HTTP status, as in `_exceptions.py` of the package.
pub(crate) fn error_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

fn refusal(report: &RunReport) -> Option<&str> {
    let error = report.error.as_ref()?;
    (error.kind == RunErrorKind::Refusal).then_some(error.message.as_str())
}

/// Returns `stop`, `length` or `content_filter`. Every limit of a run is `length`; the field
/// `switchboard` names the limit.
fn finish_reason(report: &RunReport) -> &'static str {
    match (report.outcome, &report.finish_reason) {
        (Outcome::Limited, _) | (_, Some(FinishReason::Length)) => "length",
        (_, Some(FinishReason::ContentFilter)) => "content_filter",
        _ => "stop",
    }
}

/// An answer that is not streamed.
#[derive(Debug, Serialize)]
pub(crate) struct Completion<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    switchboard: Option<RunDetails<'a>>,
}

#[derive(Debug, Serialize)]
struct Choice<'a> {
    index: u32,
    message: Answer<'a>,
    logprobs: (),
    finish_reason: &'a str,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallOut<'a>>,
}

impl<'a> Completion<'a> {
    pub(crate) fn new(
        response: &'a CollectedResponse,
        report: &'a RunReport,
        model: &'a str,
    ) -> Self {
        let refusal = refusal(report);
        let has_text = !report.answer.is_empty();
        let answer = Answer {
            role: "assistant",
            content: (has_text || refusal.is_none()).then_some(report.answer.as_str()),
            refusal,
            reasoning_content: reasoning(response),
            tool_calls: Vec::new(),
        };
        let usage = response.state.usage(report);
        Self {
            switchboard: Some(RunDetails::new(report)),
            ..Self::of(response, answer, finish_reason(report), usage, model)
        }
    }

    pub(crate) fn calls(response: &'a CollectedResponse, model: &'a str) -> Self {
        let answer = Answer {
            role: "assistant",
            content: (!response.text.is_empty()).then_some(response.text.as_str()),
            refusal: None,
            reasoning_content: reasoning(response),
            tool_calls: response.state.calls().map(CallOut::new).collect(),
        };
        Self::of(
            response,
            answer,
            "tool_calls",
            response.state.usage_so_far(),
            model,
        )
    }

    fn of(
        response: &'a CollectedResponse,
        message: Answer<'a>,
        finish_reason: &'a str,
        usage: &Usage,
        model: &'a str,
    ) -> Self {
        Self {
            id: response.state.id(ID),
            object: "chat.completion",
            created: response.started_at,
            model,
            choices: [Choice {
                index: 0,
                message,
                logprobs: (),
                finish_reason,
            }],
            usage: usage.is_known().then(|| ChatUsage::of(usage)),
            switchboard: None,
        }
    }
}

fn reasoning(response: &CollectedResponse) -> Option<&str> {
    (!response.reasoning.is_empty()).then_some(response.reasoning.as_str())
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    switchboard: Option<&'a RunEvent>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: (),
    finish_reason: Option<&'a str>,
}

#[derive(Serialize, Default)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [CallDelta<'a>]>,
}

/// A call for the client in a chunk.
#[derive(Serialize)]
struct CallDelta<'a> {
    index: u32,
    #[serde(flatten)]
    call: CallOut<'a>,
}

impl<'a> CallDelta<'a> {
    fn new(index: u32, call: &'a ClientCall) -> Self {
        let call = CallOut::new(call);
        Self { index, call }
    }
}

/// A call for the client.
#[derive(Debug, Serialize)]
struct CallOut<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionOut<'a>,
}

#[derive(Debug, Serialize)]
struct FunctionOut<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> CallOut<'a> {
    fn new(call: &'a ClientCall) -> Self {
        Self {
            id: &call.id,
            kind: "function",
            function: FunctionOut {
                name: &call.name,
                arguments: &call.input,
            },
        }
    }
}

/// Token counts. They are required, so 0 also means unknown.
#[derive(Debug, Serialize)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Serialize)]
struct PromptDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl ChatUsage {
    fn of(usage: &Usage) -> Self {
        let prompt_tokens = usage.input_tokens.unwrap_or(0);
        let completion_tokens = usage.output_tokens.unwrap_or(0);
        let has_cache = usage.cache_read_tokens.is_some() || usage.cache_write_tokens.is_some();
        Self {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
            prompt_tokens_details: has_cache.then_some(PromptDetails {
                cached_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
            }),
            completion_tokens_details: usage
                .reasoning_tokens
                .map(|reasoning_tokens| CompletionDetails { reasoning_tokens }),
        }
    }
}

/// An error in OpenAI's format.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorBody<'a> {
    error: ErrorDetails<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorDetails<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

impl<'a> ErrorBody<'a> {
    pub(crate) fn new(
        kind: &'a str,
        message: &'a str,
        param: Option<&'a str>,
        code: Option<&'a str>,
    ) -> Self {
        Self {
            error: ErrorDetails {
                message,
                kind,
                param,
                code,
            },
        }
    }
}

//! A run as a stream of OpenAI's `chat.completion.chunk`s, or as one `chat.completion`.
//!
//! The forms are those of the package `openai` 3.54.0 (`types/chat/chat_completion_chunk.py`,
//! `chat_completion.py`, `types/completion_usage.py`); an error in mid-stream is what its `_streaming.py` takes for one.
//!
//! The server's own tools run on the server: a client sees what the model says, and what the tools did in the field
//! `switchboard` of a chunk, which SDKs keep aside or ignore. It holds an event of the run, as `GET /runs/{id}/events` tells it.
//! A model's thinking is in `reasoning_content`, the name that compatible servers use.

use axum::http::StatusCode;
use serde::Serialize;
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{Outcome, RunErrorKind, RunEvent, RunReport, ToolCallRecord};

use super::super::{
    tools::client_tools::{ClientCall, call_id},
    response::state::{ResponseState, ResponseOptions},
    response::failure::Failure,
    response::frames::SseFrames,
    encoder::EventEncoder,
    sequencer::{ClientEvent, Call, PartKind},
    response::collected::CollectedResponse,
};

/// What the id of an answer begins with.
const ID: &str = "chatcmpl-";

/// The projection: it is given a run, and says what a client reads.
#[derive(Debug)]
pub(crate) struct OpenAiChatStream {
    /// What the client asked for, which is what it expects to read; else the model that is asked.
    model: Option<String>,
    with_usage: bool,
    id: String,
    /// Seconds since 1970.
    created: i64,
    has_said: bool,
    is_closed: bool,
    course: ResponseState,
}

impl OpenAiChatStream {
    /// A stream for a client that asked for this model; `with_usage` is its `stream_options.include_usage`.
    pub(crate) fn new(model: Option<String>, with_usage: bool, terms: ResponseOptions) -> Self {
        Self {
            model,
            with_usage,
            id: String::new(),
            created: 0,
            has_said: false,
            is_closed: false,
            course: ResponseState::new(terms),
        }
    }
}

impl EventEncoder for OpenAiChatStream {
    fn say(&mut self, beat: &ClientEvent<'_>, out: &mut SseFrames) {
        self.course.follow(beat);
        match beat {
            ClientEvent::RunStarted { event, model } => {
                self.id = self.course.id(ID);
                self.created = event.time.as_second();
                self.model.get_or_insert_with(|| model.to_string());
                self.begin(Some(event), out);
            }
            ClientEvent::PartStarted(part) if part.kind == PartKind::Text => {
                // One field holds the words of every step, so that what a model says after a tool needs a
                // paragraph of its own.
                if part.is_fresh && self.has_said {
                    self.text("\n\n", out);
                }
                self.has_said = true;
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
            // CollectedResponse by the events themselves, or no concern of this dialect.
            _ => {}
        }
    }

    /// The client is to make calls, and the response ends.
    fn waits(&mut self, _: &[&Call], out: &mut SseFrames) {
        for (index, call) in (0..).zip(self.course.calls()) {
            let call = CallDelta::new(index, call);
            let delta = Delta {
                tool_calls: Some(std::slice::from_ref(&call)),
                ..Delta::default()
            };
            self.chunk(delta, None, None, out);
        }
        self.finish("tool_calls", self.course.usage_so_far(), out);
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
        if let Some(failure) = self.course.failure(report) {
            return self.fail(&failure, out);
        }
        if let Some(refusal) = refusal(report) {
            let delta = Delta {
                refusal: Some(refusal),
                ..Delta::default()
            };
            self.chunk(delta, None, None, out);
        }
        self.finish(finish_reason(report), self.course.usage(report), out);
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
        out.words("[DONE]");
    }

    fn fail(&mut self, failure: &Failure<'_>, out: &mut SseFrames) {
        let kind = error_kind(failure.status);
        let (why, code) = (failure.message, Some(&*failure.code));
        out.data(&ErrorBody::new(kind, why, None, code));
        out.words("[DONE]");
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

/// The type of an error for an HTTP status: what the package's `_exceptions.py` makes of the same status.
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

/// OpenAI has `stop`, `length`, `content_filter` and `tool_calls`. Whatever limit ended a run, the answer is cut
/// short; which limit it was stands in the report beside it.
fn finish_reason(report: &RunReport) -> &'static str {
    match (report.outcome, &report.finish_reason) {
        (Outcome::Limited, _) | (_, Some(FinishReason::Length)) => "length",
        (_, Some(FinishReason::ContentFilter)) => "content_filter",
        _ => "stop",
    }
}

/// The whole answer.
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

/// What the run did, beside its answer.
#[derive(Debug, Serialize)]
pub(crate) struct RunDetails<'a> {
    run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    model: String,
    outcome: Outcome,
    steps: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [ToolCallRecord]>,
    warnings: &'a [switchboard_domain::Warning],
    error: Option<&'a switchboard_orchestration::RunError>,
}

impl<'a> RunDetails<'a> {
    pub(crate) fn of(report: &'a RunReport) -> Self {
        Self {
            run_id: &report.run_id,
            session_id: report.session_id.as_deref(),
            model: report.model.to_string(),
            outcome: report.outcome,
            steps: report.steps,
            tool_calls: Some(&report.tool_calls),
            warnings: &report.warnings,
            error: report.error.as_ref(),
        }
    }

    /// The same for a client that was told of every call as it happened.
    pub(crate) fn of_told(report: &'a RunReport) -> Self {
        Self {
            tool_calls: None,
            ..Self::of(report)
        }
    }
}

impl<'a> Completion<'a> {
    /// The answer of a run that has one.
    pub(crate) fn new(said: &'a CollectedResponse, report: &'a RunReport, model: &'a str) -> Self {
        let refusal = refusal(report);
        let has_words = !report.answer.is_empty();
        let answer = Answer {
            role: "assistant",
            content: (has_words || refusal.is_none()).then_some(report.answer.as_str()),
            refusal,
            reasoning_content: reasoning(said),
            tool_calls: Vec::new(),
        };
        let usage = said.course.usage(report);
        Self {
            switchboard: Some(RunDetails::of(report)),
            ..Self::of(said, answer, finish_reason(report), usage, model)
        }
    }

    /// Calls that the client is to make.
    pub(crate) fn calls(said: &'a CollectedResponse, model: &'a str) -> Self {
        let answer = Answer {
            role: "assistant",
            content: (!said.text.is_empty()).then_some(said.text.as_str()),
            refusal: None,
            reasoning_content: reasoning(said),
            tool_calls: said.course.calls().map(CallOut::new).collect(),
        };
        Self::of(
            said,
            answer,
            "tool_calls",
            said.course.usage_so_far(),
            model,
        )
    }

    fn of(
        said: &'a CollectedResponse,
        message: Answer<'a>,
        finish_reason: &'a str,
        usage: &Usage,
        model: &'a str,
    ) -> Self {
        Self {
            id: said.course.id(ID),
            object: "chat.completion",
            created: said.began,
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

fn reasoning(said: &CollectedResponse) -> Option<&str> {
    (!said.reasoning.is_empty()).then_some(said.reasoning.as_str())
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

/// A call that the client is to make, in a chunk.
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

/// A call that the client is to make.
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

/// Tokens. The numbers are required there; 0 also stands for "nobody said".
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

/// An error in OpenAI's form.
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

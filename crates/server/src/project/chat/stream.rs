//! A run as a stream of OpenAI's `chat.completion.chunk`s, or as one `chat.completion`.
//!
//! The forms are those of the package `openai` 3.54.0 (`types/chat/chat_completion_chunk.py`,
//! `chat_completion.py`, `types/completion_usage.py`); an error in mid-stream is what its `_streaming.py` takes for one.
//!
//! The server's own tools run on the server: a client sees what the model says, and what the tools did in the field
//! `switchboard` of a chunk, which SDKs keep aside or ignore. It holds an event of the run, as `GET /runs/{id}/events` tells it.
//! A model's thinking is in `reasoning_content`, the name that compatible servers use.

use serde::Serialize;
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{Outcome, RunErrorKind, RunEvent, RunReport, ToolCallRecord};

use super::super::{
    client_tools::{ClientCall, ClientCalls},
    failure::Failure,
    frames::Frames,
    respond::Projection,
    telling::{Beat, PartKind, Telling},
    whole::{Said, add_usage},
};

/// The projection: give it the events of a run in order, and it says what a client reads.
#[derive(Debug)]
pub struct ChatStream {
    telling: Telling,
    words: Words,
}

#[derive(Debug)]
struct Words {
    /// What the client asked for, which is what it expects to read; else the model that is asked.
    model: Option<String>,
    with_usage: bool,
    id: String,
    /// Seconds since 1970.
    created: i64,
    has_said: bool,
    is_closed: bool,
    run: String,
    calls: ClientCalls,
    /// What the models cost that were asked for this response.
    usage: Usage,
    /// The number of the last event that an earlier response told, if there was one.
    goes_on_after: Option<u64>,
}

impl ChatStream {
    /// A stream for a client that asked for this model; `with_usage` is its `stream_options.include_usage`.
    pub fn new(model: Option<String>, with_usage: bool) -> Self {
        Self {
            telling: Telling::default(),
            words: Words {
                model,
                with_usage,
                id: String::new(),
                created: 0,
                has_said: false,
                is_closed: false,
                run: String::new(),
                calls: ClientCalls::default(),
                usage: Usage::default(),
                goes_on_after: None,
            },
        }
    }

    /// The events up to this number were told in an earlier response, and are not told to this one.
    #[must_use]
    pub fn after(mut self, seen: Option<u64>) -> Self {
        self.words.goes_on_after = seen;
        self
    }

    /// Tells an event.
    pub fn event(&mut self, event: &RunEvent, out: &mut Frames) {
        let Self { telling, words } = self;
        telling.event(event, &mut |beat| words.say(&beat, out));
    }

    /// The response ends, and the run is not over: the server goes down, or it failed.
    pub fn breaks(&mut self, why: &str, out: &mut Frames) {
        let Self { telling, words } = self;
        if !words.is_closed {
            telling.rests(&mut |beat| words.say(&beat, out));
            words.fail("interrupted", why, out);
        }
    }

    /// Whether the client has the end of its answer.
    pub fn is_closed(&self) -> bool {
        self.words.is_closed
    }
}

impl Words {
    fn say(&mut self, beat: &Beat<'_>, out: &mut Frames) {
        self.calls.follow(&self.run, beat);
        match beat {
            Beat::Began { event, model } => {
                self.run = event.run_id.to_string();
                self.id = id(&event.run_id, self.goes_on_after);
                self.created = event.time.as_second();
                self.model.get_or_insert_with(|| model.to_string());
                self.begin(Some(event), out);
            }
            Beat::PartBegan(part) if part.kind == PartKind::Text => {
                // One field holds the words of every step, so that what a model says after a tool needs a
                // paragraph of its own.
                if part.is_fresh && self.has_said {
                    self.text("\n\n", out);
                }
                self.has_said = true;
            }
            Beat::PartGrew(part, text) => match part.kind {
                PartKind::Text => self.text(text, out),
                PartKind::Reasoning => {
                    let delta = Delta {
                        reasoning_content: Some(text),
                        ..Delta::default()
                    };
                    self.chunk(delta, None, None, out);
                }
            },
            Beat::Note(event) => {
                add_usage(&mut self.usage, event);
                self.chunk(Delta::default(), None, Some(event), out);
            }
            Beat::Ended(report) => self.end(report, out),
            // Said by the events themselves, or no concern of this dialect.
            _ => {}
        }
    }

    fn begin(&self, event: Option<&RunEvent>, out: &mut Frames) {
        let delta = Delta {
            role: Some("assistant"),
            content: Some(""),
            ..Delta::default()
        };
        self.chunk(delta, None, event, out);
    }

    /// The client is to make calls, and the response ends.
    fn wait(&mut self, out: &mut Frames) {
        for (index, call) in (0..).zip(self.calls.asked()) {
            let call = CallDelta::new(index, call);
            let delta = Delta {
                tool_calls: Some(std::slice::from_ref(&call)),
                ..Delta::default()
            };
            self.chunk(delta, None, None, out);
        }
        self.finish("tool_calls", &self.usage.clone(), out);
    }

    fn text(&self, text: &str, out: &mut Frames) {
        let delta = Delta {
            content: Some(text),
            ..Delta::default()
        };
        self.chunk(delta, None, None, out);
    }

    fn end(&mut self, report: &RunReport, out: &mut Frames) {
        if let Some(failure) = Failure::of(report) {
            return self.fail(&failure.code, failure.message, out);
        }
        if let Some(refusal) = refusal(report) {
            let delta = Delta {
                refusal: Some(refusal),
                ..Delta::default()
            };
            self.chunk(delta, None, None, out);
        }
        let usage = match self.goes_on_after {
            None => report.usage,
            Some(_) => self.usage,
        };
        self.finish(finish_reason(report), &usage, out);
    }

    fn finish(&mut self, reason: &str, usage: &Usage, out: &mut Frames) {
        self.chunk(Delta::default(), Some(reason), None, out);
        if self.with_usage {
            out.data(&Chunk {
                usage: Some(ChatUsage::of(usage)),
                ..self.empty()
            });
        }
        out.words("[DONE]");
        self.is_closed = true;
    }

    fn fail(&mut self, code: &str, why: &str, out: &mut Frames) {
        out.data(&ErrorBody::new("server_error", why, None, Some(code)));
        out.words("[DONE]");
        self.is_closed = true;
    }

    fn chunk(
        &self,
        delta: Delta<'_>,
        finish_reason: Option<&str>,
        event: Option<&RunEvent>,
        out: &mut Frames,
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

/// The id of an answer, from which the run can be found again; one that goes on after an event has another.
pub(super) fn id(run: &str, after: Option<u64>) -> String {
    match after {
        None => format!("chatcmpl-{run}"),
        Some(after) => format!("chatcmpl-{run}-{after}"),
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
pub(super) struct Completion<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    switchboard: Option<Details<'a>>,
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
pub(in super::super) struct Details<'a> {
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

impl<'a> Details<'a> {
    pub(in super::super) fn of(report: &'a RunReport) -> Self {
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
    pub(in super::super) fn of_told(report: &'a RunReport) -> Self {
        Self {
            tool_calls: None,
            ..Self::of(report)
        }
    }
}

impl<'a> Completion<'a> {
    /// The answer of a run that has one.
    pub(super) fn new(said: &'a Said, report: &'a RunReport, model: &'a str) -> Self {
        let refusal = refusal(report);
        let has_words = !report.answer.is_empty();
        let answer = Answer {
            role: "assistant",
            content: (has_words || refusal.is_none()).then_some(report.answer.as_str()),
            refusal,
            reasoning_content: reasoning(said),
            tool_calls: Vec::new(),
        };
        let usage = said.usage(report);
        Self {
            switchboard: Some(Details::of(report)),
            ..Self::of(said, answer, finish_reason(report), &usage, model)
        }
    }

    /// Calls that the client is to make.
    pub(super) fn calls(said: &'a Said, model: &'a str) -> Self {
        let answer = Answer {
            role: "assistant",
            content: (!said.text.is_empty()).then_some(said.text.as_str()),
            refusal: None,
            reasoning_content: reasoning(said),
            tool_calls: said.calls().map(CallOut::new).collect(),
        };
        Self::of(said, answer, "tool_calls", &said.usage, model)
    }

    fn of(
        said: &'a Said,
        message: Answer<'a>,
        finish_reason: &'a str,
        usage: &Usage,
        model: &'a str,
    ) -> Self {
        Self {
            id: id(&said.run, said.seen),
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

fn reasoning(said: &Said) -> Option<&str> {
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
pub(super) struct ErrorBody<'a> {
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
    pub(super) fn new(
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

impl Projection for ChatStream {
    fn event(&mut self, event: &RunEvent, out: &mut Frames) {
        self.event(event, out);
    }

    fn waits(&mut self, out: &mut Frames) {
        let Self { telling, words } = self;
        if !words.is_closed {
            telling.rests(&mut |beat| words.say(&beat, out));
            words.wait(out);
        }
    }

    fn breaks(&mut self, why: &str, out: &mut Frames) {
        self.breaks(why, out);
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn asks(&self) -> bool {
        self.words.calls.asked().next().is_some()
    }

    fn calls(&self) -> Vec<String> {
        let calls = self.words.calls.asked();
        calls.map(|call| call.tool_use.clone()).collect()
    }
}

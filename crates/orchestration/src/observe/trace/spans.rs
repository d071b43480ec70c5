//! The spans of a run.
//!
//! Each is a guard: one that is dropped before it is told how it ended was cancelled.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ChatResponse, JsonObject, ModelError, ModelId, ToolCallError, ToolChoice,
    ToolChoiceOutcome, ToolOutput, Usage,
};
use tracing::{Level, Span, field::Empty, level_filters::LevelFilter};

use super::{SPANS, content};
use crate::{Outcome, RunReport};

/// The agent of which no other name is known.
const AGENT: &str = "switchboard";

/// `error.type` of what was dropped before it ended.
const CANCELLED: &str = "cancelled";

/// Whether somebody may listen. It is the first thing that the macros ask too; but where nobody does, theirs is a
/// span that `tracing` offers to the crate `log` at each of its fields and whenever it is entered, if any crate of
/// the program switched that feature on.
fn is_watched() -> bool {
    LevelFilter::current() >= Level::INFO
}

/// A span that says `cancelled` if nothing else was said.
#[derive(Debug)]
struct Open {
    span: Span,
    told: bool,
}

impl Open {
    fn new(span: Span) -> Self {
        Self { span, told: false }
    }

    fn succeeded(mut self) {
        self.told = true;
    }

    fn failed(mut self, kind: &str) {
        self.told = true;
        mark_failed(&self.span, kind);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.told {
            mark_failed(&self.span, CANCELLED);
        }
    }
}

fn mark_failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// A run: `invoke_agent {name}`.
#[derive(Debug)]
pub struct AgentTrace(Open);

impl AgentTrace {
    /// Begins the span, within the current one. The driver of the run is instrumented with
    /// [`span`](Self::span), so that what happens in it is within this span too.
    ///
    /// `agent_name` is the name of the agent or recipe; without one it is `switchboard`.
    pub fn begin(
        agent_name: Option<&str>,
        run_id: &str,
        model: &ModelId,
        session_id: Option<&str>,
    ) -> Self {
        if !is_watched() {
            return Self(Open::new(Span::none()));
        }
        let name = agent_name.unwrap_or(AGENT);
        let span = tracing::info_span!(
            target: SPANS,
            "invoke_agent",
            otel.name = format!("invoke_agent {name}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = name,
            gen_ai.provider.name = provider_name(&model.provider),
            gen_ai.request.model = model.name.as_ref(),
            gen_ai.conversation.id = session_id,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            "error.type" = Empty,
            switchboard.run.id = run_id,
            switchboard.run.outcome = Empty,
            switchboard.run.steps = Empty,
            switchboard.run.tool_calls = Empty,
        );
        Self(Open::new(span))
    }

    /// The span.
    pub fn span(&self) -> Span {
        self.0.span.clone()
    }

    /// The run is over.
    pub fn ended(self, report: &RunReport) {
        let span = &self.0.span;
        if span.is_disabled() {
            return;
        }
        if let Some(finish) = &report.finish_reason {
            span.record("gen_ai.response.finish_reasons", finish.as_str());
        }
        record_usage(span, &report.usage);
        span.record("switchboard.run.outcome", word(&report.outcome).as_str());
        span.record("switchboard.run.steps", report.steps);
        span.record("switchboard.run.tool_calls", report.tool_calls.len());
        match (report.outcome, &report.error) {
            // At a limit there is what there is: no error of the run.
            (Outcome::Completed | Outcome::Limited, _) => self.0.succeeded(),
            (_, Some(error)) => self.0.failed(&word(&error.kind)),
            (Outcome::Cancelled, None) => self.0.failed(CANCELLED),
            (Outcome::Failed, None) => self.0.failed("_OTHER"),
        }
    }
}

/// A call of a model: `chat {model}`.
#[derive(Debug)]
pub struct ChatTrace {
    open: Open,
    since: Instant,
    silent: AtomicBool,
}

impl ChatTrace {
    /// Begins the span, within that of the run if the caller is in it. `step` is 1 for the first call
    /// of the run.
    pub fn begin(
        step: u32,
        model: &ModelId,
        request: &ChatRequest,
        session_id: Option<&str>,
    ) -> Self {
        if !is_watched() {
            return Self::of(Span::none());
        }
        let span = tracing::info_span!(
            target: SPANS,
            "chat",
            otel.name = format!("chat {}", model.name),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider_name(&model.provider),
            gen_ai.request.model = model.name.as_ref(),
            gen_ai.request.stream = true,
            gen_ai.request.max_tokens = request.max_output_tokens,
            gen_ai.request.temperature = request.sampling.temperature,
            gen_ai.conversation.id = session_id,
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.response.time_to_first_chunk = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            "error.type" = Empty,
            http.response.status_code = Empty,
            switchboard.step = step,
            switchboard.purpose = Empty,
            switchboard.tools.offered = request.tools.len(),
            switchboard.tool_choice.asked = choice(&request.tool_choice),
            switchboard.tool_choice.outcome = Empty,
        );
        content::asked(&span, &request.messages);
        Self::of(span)
    }

    fn of(span: Span) -> Self {
        Self {
            open: Open::new(span),
            since: Instant::now(),
            silent: AtomicBool::new(true),
        }
    }

    /// The span.
    pub fn span(&self) -> Span {
        self.open.span.clone()
    }

    /// What is asked for is a summary of what no longer fits, before the step of that number.
    #[must_use]
    pub fn for_summary(self) -> Self {
        self.open.span.record("switchboard.purpose", "summary");
        self
    }

    /// Something came. Only the first time counts.
    pub fn first_chunk(&self) {
        // Looked at first: to write takes longer, and this is said of every word.
        if self.silent.load(Ordering::Relaxed)
            && self.silent.swap(false, Ordering::Relaxed)
            && !self.open.span.is_disabled()
        {
            let waited = self.since.elapsed().as_secs_f64();
            self.open
                .span
                .record("gen_ai.response.time_to_first_chunk", waited);
        }
    }

    /// The answer is there.
    pub fn answered(self, answer: &ChatResponse) {
        let span = &self.open.span;
        if span.is_disabled() {
            return;
        }
        span.record("gen_ai.response.finish_reasons", answer.finish.as_str());
        if let Some(id) = &answer.response_id {
            span.record("gen_ai.response.id", id.as_str());
        }
        if let Some(model) = &answer.model {
            span.record("gen_ai.response.model", model.as_str());
        }
        record_usage(span, &answer.usage);
        span.record(
            "switchboard.tool_choice.outcome",
            outcome(&answer.tool_choice),
        );
        content::answered(span, &answer.message, answer.finish.as_str());
        self.open.succeeded();
    }

    /// There is no answer, or only a part of one.
    pub fn failed(self, error: &ModelError) {
        if let Some(status) = error.status() {
            self.open
                .span
                .record("http.response.status_code", i64::from(status));
        }
        self.open.failed(error.kind.as_str());
    }
}

/// An execution of a tool: `execute_tool {tool}`.
#[derive(Debug)]
pub struct ToolTrace(Open);

impl ToolTrace {
    /// Begins the span, within that of the run if the caller is in it. `tool` is the tool's own name,
    /// `server` where it lives.
    pub fn begin(id: &str, server: Option<&str>, tool: &str, input: &JsonObject) -> Self {
        if !is_watched() {
            return Self(Open::new(Span::none()));
        }
        let span = tracing::info_span!(
            target: SPANS,
            "execute_tool",
            otel.name = format!("execute_tool {tool}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            gen_ai.tool.call.id = id,
            "gen_ai.tool.type" = "function",
            "error.type" = Empty,
            switchboard.server = server,
            switchboard.tool.attempts = Empty,
        );
        content::called(&span, input);
        Self(Open::new(span))
    }

    /// The span.
    pub fn span(&self) -> Span {
        self.0.span.clone()
    }

    /// The tool answered, or there is no answer. `attempts` is how often it was tried.
    pub fn ended(self, result: &Result<ToolOutput, ToolCallError>, attempts: u32) {
        if self.0.span.is_disabled() {
            return;
        }
        self.0.span.record("switchboard.tool.attempts", attempts);
        match result {
            Ok(output) => {
                content::gave(&self.0.span, output);
                if output.is_error {
                    self.0.failed("tool_error");
                } else {
                    self.0.succeeded();
                }
            }
            Err(error) => {
                let failure = crate::ToolFailure::from(error);
                self.0.failed(&word(&failure));
            }
        }
    }
}

fn record_usage(span: &Span, usage: &Usage) {
    for (name, count) in [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        (
            "gen_ai.usage.cache_read.input_tokens",
            usage.cache_read_tokens,
        ),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.cache_write_tokens,
        ),
        (
            "gen_ai.usage.reasoning.output_tokens",
            usage.reasoning_tokens,
        ),
    ] {
        if let Some(count) = count {
            span.record(name, count);
        }
    }
}

/// The conventions' name of a provider, where it is not ours.
fn provider_name(provider: &str) -> &str {
    match provider {
        "gemini" => "gcp.gemini",
        "openai-responses" => "openai",
        "azure" => "azure.ai.openai",
        "mistral" => "mistral_ai",
        "moonshot" => "moonshot_ai",
        "xai" => "x_ai",
        other => other,
    }
}

/// A tool choice in a few words.
pub(super) fn choice(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => "auto".to_owned(),
        ToolChoice::None => "none".to_owned(),
        ToolChoice::Required => "required".to_owned(),
        ToolChoice::Only(names) => format!("only {}", names.join(", ")),
    }
}

/// What became of it.
pub(super) fn outcome(outcome: &ToolChoiceOutcome) -> String {
    match outcome {
        ToolChoiceOutcome::Native => "native".to_owned(),
        ToolChoiceOutcome::Emulated { how } => format!("emulated: {how}"),
        ToolChoiceOutcome::Relaxed { why } => format!("relaxed: {why}"),
    }
}

/// The name of a value that is a plain string in JSON.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => "_OTHER".to_owned(),
    }
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;

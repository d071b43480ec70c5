//! Tracing spans of a run.
//!
//! Each span is a guard value. A guard that is dropped without a result marks its span as
//! cancelled.

use std::{sync::Once, time::Instant};

use switchboard_domain::{
    ChatRequest, ChatResponse, Delivery, FinishReason, JsonObject, ModelError, ModelId,
    ToolCallError, ToolChoice, ToolChoiceOutcome, ToolOutput, Usage,
};
use tracing::{Span, Value, field::Empty};

use super::{SPANS, content_events};
use crate::{Outcome, RunReport, ToolFailure, observe::audit::serialized_name};

/// Agent name in spans if no agent name is configured.
const AGENT: &str = "switchboard";

/// Value of the span field `error.type` for a span that was dropped without a result.
const CANCELLED: &str = "cancelled";

/// A span that has not ended. Dropping it ends the span. Unless it was marked as succeeded, its
/// error type is recorded first.
#[derive(Debug)]
struct OpenSpan {
    span: Span,
    /// Value of the span field `error.type`. `None` after a success.
    error_type: Option<String>,
}

impl OpenSpan {
    fn new(span: Span) -> Self {
        Self {
            span,
            error_type: Some(CANCELLED.to_owned()),
        }
    }

    fn mark_succeeded(mut self) {
        self.error_type = None;
    }

    fn mark_failed(mut self, kind: &str) {
        self.error_type = Some(kind.to_owned());
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(kind) = &self.error_type {
            self.span.record("error.type", kind.as_str());
            self.span.record("otel.status_code", "ERROR");
        }
    }
}

/// Span of a run, named `invoke_agent {name}`.
#[derive(Debug)]
pub struct AgentTrace(OpenSpan);

impl AgentTrace {
    /// Opens the span as a child of the current span. Instrument the driver of the run with
    /// [`clone_span`](Self::clone_span), so that the other spans of the run become its children.
    ///
    /// `agent_name` is the name of the agent or recipe, `switchboard` by default.
    pub fn open_span(
        agent_name: Option<&str>,
        run_id: &str,
        model: &ModelId,
        session_id: Option<&str>,
    ) -> Self {
        let name = agent_name.unwrap_or(AGENT);
        let span = tracing::info_span!(
            target: SPANS,
            "invoke_agent",
            otel.name = format!("invoke_agent {name}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = name,
            gen_ai.provider.name = otel_provider_name(&model.provider),
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
        Self(OpenSpan::new(span))
    }

    /// Returns a handle of the run's span. Instrument the future of the run's driver with it.
    pub fn clone_span(&self) -> Span {
        self.0.span.clone()
    }

    /// Closes the span with the outcome and the usage in the report of the run.
    pub fn close_with_run_report(self, report: &RunReport) {
        let span = &self.0.span;
        let finish = report.finish_reason.as_ref();
        record_optional_field(
            span,
            "gen_ai.response.finish_reasons",
            finish.map(FinishReason::as_str),
        );
        record_usage(span, &report.usage);
        let outcome = serialized_name(&report.outcome);
        span.record("switchboard.run.outcome", outcome.as_str());
        span.record("switchboard.run.steps", report.steps);
        span.record("switchboard.run.tool_calls", report.tool_calls.len());
        match (report.outcome, &report.error) {
            // A run that reached a limit counts as successful, because no error occurred.
            (Outcome::Completed | Outcome::Limited, _) => self.0.mark_succeeded(),
            (_, Some(error)) => self.0.mark_failed(&serialized_name(&error.kind)),
            (Outcome::Cancelled, None) => self.0.mark_failed(CANCELLED),
            (Outcome::Failed, None) => self.0.mark_failed("_OTHER"),
        }
    }

    /// Closes the span of a parked run, which has no outcome yet. The status stays unset.
    pub fn close_parked_run(self) {
        self.0.mark_succeeded();
    }
}

/// Span of a model call, named `chat {model}`.
#[derive(Debug)]
pub struct ChatTrace {
    open: OpenSpan,
    started: Instant,
    first_chunk: Once,
}

impl ChatTrace {
    /// Opens the span as a child of the current span. `step` is the number of the model call in the
    /// run, starting at 1.
    pub fn open_span(
        step: u32,
        model: &ModelId,
        request: &ChatRequest,
        session_id: Option<&str>,
    ) -> Self {
        let span = tracing::info_span!(
            target: SPANS,
            "chat",
            otel.name = format!("chat {}", model.name),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = otel_provider_name(&model.provider),
            gen_ai.request.model = model.name.as_ref(),
            gen_ai.request.stream = request.delivery != Delivery::Whole,
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
            switchboard.tool_choice.asked = format_tool_choice(&request.tool_choice),
            switchboard.tool_choice.outcome = Empty,
        );
        content_events::emit_input_messages(&span, &request.messages);
        Self {
            open: OpenSpan::new(span),
            started: Instant::now(),
            first_chunk: Once::new(),
        }
    }

    /// Returns a handle of the model call's span. Instrument the future of the call with it.
    pub fn clone_span(&self) -> Span {
        self.open.span.clone()
    }

    /// Marks the model call in the span as a request for a summary of older messages.
    #[must_use]
    pub fn mark_as_summary(self) -> Self {
        self.open.span.record("switchboard.purpose", "summary");
        self
    }

    /// Records the time until the first chunk of the answer. A second call has no effect.
    pub fn record_first_chunk(&self) {
        self.first_chunk.call_once(|| {
            let waited = self.started.elapsed().as_secs_f64();
            let span = &self.open.span;
            span.record("gen_ai.response.time_to_first_chunk", waited);
        });
    }

    /// Closes the span with the answer of the model.
    pub fn close_with_answer(self, answer: &ChatResponse) {
        let span = &self.open.span;
        span.record("gen_ai.response.finish_reasons", answer.finish.as_str());
        record_optional_field(span, "gen_ai.response.id", answer.response_id.as_deref());
        record_optional_field(span, "gen_ai.response.model", answer.model.as_deref());
        record_usage(span, &answer.usage);
        let outcome = format_tool_choice_outcome(&answer.tool_choice);
        span.record("switchboard.tool_choice.outcome", outcome);
        content_events::emit_output_message(span, &answer.message, answer.finish.as_str());
        self.open.mark_succeeded();
    }

    /// Closes the span of a model call that returned an error instead of a complete answer.
    pub fn close_with_error(self, error: &ModelError) {
        let status = error.http_status().map(i64::from);
        record_optional_field(&self.open.span, "http.response.status_code", status);
        self.open.mark_failed(error.kind.as_str());
    }
}

/// Span of a tool execution, named `execute_tool {tool}`.
#[derive(Debug)]
pub struct ToolTrace(OpenSpan);

impl ToolTrace {
    /// Opens the span as a child of the current span. `tool` is the name of the tool on `server`.
    pub fn open_span(id: &str, server: Option<&str>, tool: &str, input: &JsonObject) -> Self {
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
        content_events::emit_tool_input(&span, input);
        Self(OpenSpan::new(span))
    }

    /// Returns a handle of the tool execution's span. Instrument the future of the execution with
    /// it.
    pub fn clone_span(&self) -> Span {
        self.0.span.clone()
    }

    /// Closes the span with the result of the tool call. `attempts` is the number of attempts.
    pub fn close_with_result(self, result: &Result<ToolOutput, ToolCallError>, attempts: u32) {
        self.0.span.record("switchboard.tool.attempts", attempts);
        match result {
            Ok(output) => {
                content_events::emit_tool_output(&self.0.span, output);
                if output.is_error {
                    self.0.mark_failed("tool_error");
                } else {
                    self.0.mark_succeeded();
                }
            }
            Err(error) => self.0.mark_failed(ToolFailure::from(error).as_str()),
        }
    }
}

fn record_usage(span: &Span, usage: &Usage) {
    if span.is_disabled() {
        return;
    }
    for (kind, count) in [
        ("input_tokens", usage.input_tokens),
        ("output_tokens", usage.output_tokens),
        ("cache_read.input_tokens", usage.cache_read_tokens),
        ("cache_creation.input_tokens", usage.cache_write_tokens),
        ("reasoning.output_tokens", usage.reasoning_tokens),
    ] {
        record_optional_field(span, &format!("gen_ai.usage.{kind}"), count);
    }
}

/// Records a span field unless its value is `None`.
fn record_optional_field(span: &Span, name: &str, value: Option<impl Value>) {
    if let Some(value) = value {
        span.record(name, value);
    }
}

/// Returns the provider name that OpenTelemetry's semantic conventions define for a provider.
fn otel_provider_name(provider: &str) -> &str {
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

/// Formats the tool choice of a request for the span of the model call, such as `only get_weather`.
fn format_tool_choice(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => "auto".to_owned(),
        ToolChoice::None => "none".to_owned(),
        ToolChoice::Required => "required".to_owned(),
        ToolChoice::Only(names) => format!("only {}", names.join(", ")),
    }
}

/// Formats how the provider treated the tool choice of a request, for the span of the model call:
/// `native`, or `emulated` or `relaxed` with the reason.
fn format_tool_choice_outcome(outcome: &ToolChoiceOutcome) -> String {
    match outcome {
        ToolChoiceOutcome::Native => "native".to_owned(),
        ToolChoiceOutcome::Emulated { how } => format!("emulated: {how}"),
        ToolChoiceOutcome::Relaxed { why } => format!("relaxed: {why}"),
    }
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;

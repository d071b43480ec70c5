//! Log lines about the events of a run.

use serde_json::Value;
use switchboard_domain::{FinishReason, ToolContent, redact::Redactor};
use tracing::debug;

use super::{
    LOG,
    spans::{format_tool_choice, format_tool_choice_outcome},
};
use crate::{
    RunEvent, RunEventKind, ToolFailure,
    observe::audit::{AuditKind, RunEventReducer, ToolCallEntry, ToolCallStage, serialized_name},
};

/// Logger of the events of one run (target [`LOG`], level `DEBUG`).
///
/// Tool inputs are redacted and limited in size. Texts of the conversation are not logged.
#[derive(Debug, Default)]
pub struct RunLog {
    redactor: Redactor,
    fold: RunEventReducer,
    answer: AnswerPartSizes,
}

/// Sizes of the parts of the current model answer, in bytes.
#[derive(Debug, Default)]
struct AnswerPartSizes {
    text: usize,
    reasoning: usize,
    /// Id, tool name and input size of each tool call.
    tool_calls: Vec<(String, String, usize)>,
    provider_blocks: Vec<String>,
}

impl RunLog {
    /// Creates a logger for one run.
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            ..Self::default()
        }
    }

    /// Logs one run event. The events of a run must arrive in order.
    pub fn log_run_event(&mut self, event: &RunEvent) {
        if tracing::enabled!(target: LOG, tracing::Level::DEBUG) {
            self.answer.add_event(&event.kind);
            for fact in self.fold.reduce_event(event, None) {
                if let AuditKind::ToolCall(call) = fact {
                    self.log_tool_call(&event.run_id, &call, &event.kind);
                }
            }
            self.log_event(&event.run_id, &event.kind);
        }
    }

    fn log_tool_call(&self, run: &str, call: &ToolCallEntry, kind: &RunEventKind) {
        let ToolCallEntry {
            id, server, tool, ..
        } = call;
        let input = self.redactor.redact_value(&call.input).to_string();
        if call.moment == ToolCallStage::Started {
            debug!(target: LOG, run, id, server, tool, input, "tool call started");
            return;
        }
        if call.failure == Some(ToolFailure::Repeated) {
            debug!(
                target: LOG, run, id, server, tool, input,
                "repeated tool call answered with its earlier result"
            );
            return;
        }
        let RunEventKind::ToolFinished { content, .. } = kind else {
            return;
        };
        // The result of a tool call that did not run is a text of this program with the reason.
        let did_not_run = call.failure.is_some_and(ToolFailure::did_not_run);
        let why = did_not_run.then(|| {
            let pieces: Vec<String> = content.iter().map(ToolContent::as_text).collect();
            self.redactor.redact_text(&pieces.join("\n"))
        });
        debug!(
            target: LOG,
            run,
            id,
            server,
            tool,
            is_error = call.is_error,
            failure = call.failure.map(ToolFailure::as_str),
            why,
            attempts = call.attempts,
            cached = call.cached,
            duration_ms = call.duration_ms,
            result = format_content_sizes(content),
            "tool call finished"
        );
    }

    fn log_event(&mut self, run: &str, kind: &RunEventKind) {
        match kind {
            // Deltas contain text of the conversation. Tool calls are logged by `log_tool_call`.
            RunEventKind::TextDelta { .. }
            | RunEventKind::ReasoningDelta { .. }
            | RunEventKind::ToolInputStarted { .. }
            | RunEventKind::ToolInputDelta { .. }
            | RunEventKind::ProviderBlock { .. }
            | RunEventKind::ToolProgressed { .. }
            | RunEventKind::ToolStarted { .. }
            | RunEventKind::ToolFinished { .. } => {}
            RunEventKind::RunStarted { model, resumed } => {
                debug!(target: LOG, run, %model, resumed, "run started");
            }
            RunEventKind::ModelCallStarted {
                step,
                model,
                tools,
                tool_choice,
            } => {
                let tool_choice = format_tool_choice(tool_choice);
                debug!(target: LOG, run, step, %model, tools, tool_choice, "model call started");
            }
            RunEventKind::ModelCallFinished {
                step,
                model,
                finish_reason,
                finish_raw,
                usage,
                tool_choice,
            } => debug!(
                target: LOG,
                run,
                step,
                model,
                finish = finish_reason.as_str(),
                finish_raw,
                parts = std::mem::take(&mut self.answer).format_sizes(),
                tool_choice = format_tool_choice_outcome(tool_choice),
                input_tokens = usage.input_tokens,
                output_tokens = usage.output_tokens,
                "model call finished"
            ),
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let input = self.redactor.redact_value(input).to_string();
                debug!(target: LOG, run, id, server, tool, input, "tool call planned");
            }
            RunEventKind::ToolDenied { id, reason } => {
                let reason = self.redactor.redact_text(reason);
                debug!(target: LOG, run, id, reason, "tool call denied");
            }
            RunEventKind::QuestionAsked { id, question } => {
                let server = question.server.as_str();
                debug!(target: LOG, run, id, server, "server question asked");
            }
            RunEventKind::HistoryTrimmed {
                left_out,
                tokens_before,
                tokens_after,
                summarised,
            } => debug!(
                target: LOG, run, left_out, tokens_before, tokens_after, summarised,
                "older messages omitted from the request"
            ),
            RunEventKind::ModelSwitched { from, to, reason } => {
                let reason = self.redactor.redact_text(reason);
                debug!(target: LOG, run, %from, %to, reason, "switched to another model");
            }
            RunEventKind::RunFinished { report } => debug!(
                target: LOG,
                run,
                outcome = serialized_name(&report.outcome),
                finish = report.finish_reason.as_ref().map(FinishReason::as_str),
                steps = report.steps,
                tool_calls = report.tool_calls.len(),
                answer = report.answer.len(),
                error = report.error.as_ref().map(|error| serialized_name(&error.kind)),
                "run finished"
            ),
            other => {
                let event = serde_json::to_value(other).unwrap_or(Value::Null);
                let event = self.redactor.redact_value(&event).to_string();
                debug!(target: LOG, run, event, "run event");
            }
        }
    }
}

impl AnswerPartSizes {
    fn add_event(&mut self, kind: &RunEventKind) {
        match kind {
            RunEventKind::ModelCallStarted { .. } | RunEventKind::ModelCallRetried { .. } => {
                *self = Self::default();
            }
            RunEventKind::TextDelta { text } => self.text += text.len(),
            RunEventKind::ReasoningDelta { text } => self.reasoning += text.len(),
            RunEventKind::ToolInputStarted { id, name } => {
                self.tool_calls.push((id.clone(), name.clone(), 0));
            }
            RunEventKind::ToolInputDelta { id, json } => {
                let mut calls = self.tool_calls.iter_mut().rev();
                if let Some((_, _, bytes)) = calls.find(|(open, _, _)| open == id) {
                    *bytes += json.len();
                }
            }
            RunEventKind::ProviderBlock { kind, .. } => self.provider_blocks.push(kind.clone()),
            _ => {}
        }
    }

    /// Formats the parts with their sizes, such as `text 120 bytes, tool call get_customer 24
    /// bytes`.
    fn format_sizes(self) -> String {
        let mut parts = Vec::new();
        if self.reasoning > 0 {
            parts.push(format!("reasoning {} bytes", self.reasoning));
        }
        if self.text > 0 {
            parts.push(format!("text {} bytes", self.text));
        }
        for (_, name, bytes) in self.tool_calls {
            parts.push(format!("tool call {name} {bytes} bytes"));
        }
        let blocks = self.provider_blocks.into_iter();
        parts.extend(blocks.map(|kind| format!("block {kind}")));
        join_or_nothing(&parts)
    }
}

/// Formats the parts of a tool result with their sizes, such as `text 120 bytes, image`.
fn format_content_sizes(content: &[ToolContent]) -> String {
    let pieces = content.iter().map(|piece| match piece {
        ToolContent::Text { text } => format!("text {} bytes", text.len()),
        ToolContent::Image(_) => "image".to_owned(),
        ToolContent::Audio(_) => "audio".to_owned(),
        ToolContent::Resource { .. } => "resource".to_owned(),
        ToolContent::ResourceLink { .. } => "resource link".to_owned(),
        _ => "unknown".to_owned(),
    });
    join_or_nothing(&pieces.collect::<Vec<_>>())
}

fn join_or_nothing(pieces: &[String]) -> String {
    if pieces.is_empty() {
        "nothing".to_owned()
    } else {
        pieces.join(", ")
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

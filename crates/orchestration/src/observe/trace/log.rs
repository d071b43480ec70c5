//! Log lines about the events of a run.

use serde::Serialize;
use switchboard_domain::{ToolContent, redact::Redactor};
use tracing::debug;

use super::LOG;
use crate::{
    RunEvent, RunEventKind, ToolFailure,
    observe::audit::{AuditKind, AuditedToolCall, RunEventReducer, ToolCallStage, serialized_name},
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

/// Sizes of the parts of the model answer that is being received, for the log.
#[derive(Debug, Default)]
struct AnswerPartSizes {
    /// Key that identifies the part, description for the log line, and size in bytes. The parts are
    /// in the order of their start.
    parts: Vec<(String, String, usize)>,
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
            self.answer.update_part_sizes(&event.kind);
            for fact in self.fold.reduce_event(event, None) {
                if let AuditKind::ToolCall(call) = fact {
                    self.log_tool_call(&event.run_id, &call, &event.kind);
                }
            }
            self.log_event(&event.run_id, &event.kind);
        }
    }

    /// Logs the start or the end of a tool call.
    fn log_tool_call(&self, run: &str, call: &AuditedToolCall, kind: &RunEventKind) {
        let entry = self.to_redacted_json(call);
        if call.moment == ToolCallStage::Started {
            debug!(target: LOG, run, call = entry, "tool call started");
        } else if call.failure == Some(ToolFailure::Repeated) {
            let message = "repeated tool call answered with its earlier result";
            debug!(target: LOG, run, call = entry, "{message}");
        } else if let RunEventKind::ToolFinished { content, .. } = kind {
            // If the tool did not run, this program wrote the result, so it may be logged.
            let did_not_run = call.failure.is_some_and(ToolFailure::did_not_run);
            let why = did_not_run.then(|| {
                let pieces: Vec<String> = content.iter().map(ToolContent::as_text).collect();
                self.redactor.redact_text(&pieces.join("\n"))
            });
            debug!(target: LOG, run, call = entry, why, "tool call finished");
        }
    }

    fn log_event(&self, run: &str, kind: &RunEventKind) {
        let message = match kind {
            // Not logged here: deltas contain text, and `log_tool_call` logs tool calls.
            RunEventKind::TextDelta { .. }
            | RunEventKind::ReasoningDelta { .. }
            | RunEventKind::ToolInputStarted { .. }
            | RunEventKind::ToolInputDelta { .. }
            | RunEventKind::ProviderBlock { .. }
            | RunEventKind::ToolProgressed { .. }
            | RunEventKind::ToolStarted { .. }
            | RunEventKind::ToolFinished { .. } => return,
            RunEventKind::QuestionAsked { id, question } => {
                let server = question.server.as_str();
                debug!(target: LOG, run, id, server, "server question asked");
                return;
            }
            RunEventKind::RunFinished { report } => {
                let outcome = serialized_name(&report.outcome);
                let error = report.error.as_ref();
                let error = error.map(|error| serialized_name(&error.kind));
                let steps = report.steps;
                debug!(target: LOG, run, outcome, steps, error, "run finished");
                return;
            }
            RunEventKind::ModelCallFinished { .. } => {
                let parts = self.answer.format_sizes();
                let event = self.to_redacted_json(kind);
                debug!(target: LOG, run, event, parts, "model call finished");
                return;
            }
            RunEventKind::RunStarted { .. } => "run started",
            RunEventKind::ModelCallStarted { .. } => "model call started",
            RunEventKind::ToolPlanned { .. } => "tool call planned",
            RunEventKind::ToolDenied { .. } => "tool call denied",
            RunEventKind::PhaseStarted { .. } => "phase of the strategy started",
            RunEventKind::HistoryTrimmed { .. } => "older messages omitted from the request",
            RunEventKind::ModelSwitched { .. } => "switched to another model",
            _ => "run event",
        };
        debug!(target: LOG, run, event = self.to_redacted_json(kind), "{message}");
    }

    fn to_redacted_json(&self, value: &impl Serialize) -> String {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.redactor.redact_value(&value).to_string()
    }
}

impl AnswerPartSizes {
    fn update_part_sizes(&mut self, kind: &RunEventKind) {
        let (key, description, bytes) = match kind {
            RunEventKind::ModelCallStarted { .. } | RunEventKind::ModelCallRetried { .. } => {
                self.parts.clear();
                return;
            }
            RunEventKind::TextDelta { text } => ("text", "text".to_owned(), text.len()),
            RunEventKind::ReasoningDelta { text } => {
                ("reasoning", "reasoning".to_owned(), text.len())
            }
            RunEventKind::ToolInputStarted { id, name } => {
                (id.as_str(), format!("tool call {name}"), 0)
            }
            RunEventKind::ToolInputDelta { id, json } => (id.as_str(), String::new(), json.len()),
            RunEventKind::ProviderBlock { kind, .. } => (kind.as_str(), format!("block {kind}"), 0),
            _ => return,
        };
        match self.parts.iter_mut().rfind(|(known, ..)| known == key) {
            Some((.., sum)) => *sum += bytes,
            None => self.parts.push((key.to_owned(), description, bytes)),
        }
    }

    fn format_sizes(&self) -> String {
        let parts = self.parts.iter();
        let parts = parts.map(|(_, description, bytes)| format!("{description} {bytes} bytes"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

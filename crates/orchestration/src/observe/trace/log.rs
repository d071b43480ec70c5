//! The log lines of a run.

use std::collections::HashMap;

use switchboard_domain::{FinishReason, ToolContent, ToolHostChange, redact::Redactor};
use tracing::debug;

use super::{
    LOG,
    spans::{tool_choice_outcome_text, tool_choice_text},
};
use crate::{RunEvent, RunEventKind, ToolFailure, observe::audit::json_name};

/// Writes the events of one run as log lines (target [`LOG`], level `DEBUG`).
///
/// Tool inputs are redacted and limited in size. Texts of the conversation are not logged.
#[derive(Debug, Default)]
pub struct RunLog {
    redactor: Redactor,
    answer: AnswerParts,
    open_calls: HashMap<String, OpenCall>,
}

/// A tool call without a result. The input is redacted.
#[derive(Debug, Default)]
struct OpenCall {
    server: Option<String>,
    tool: String,
    input: String,
}

/// The parts of the current model answer, with their sizes in bytes.
#[derive(Debug, Default)]
struct AnswerParts {
    text: usize,
    reasoning: usize,
    /// Id, name and size of the input.
    tool_calls: Vec<(String, String, usize)>,
    provider_blocks: Vec<String>,
}

impl RunLog {
    /// Creates the log of one run.
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            ..Self::default()
        }
    }

    /// Logs an event. The events of a run must be in order.
    pub fn observe(&mut self, event: &RunEvent) {
        if tracing::enabled!(target: LOG, tracing::Level::DEBUG) {
            self.observe_answer(&event.kind);
            self.log_model_event(&event.run_id, &event.kind);
            self.log_tool_event(&event.run_id, &event.kind);
            self.log_run_event(&event.run_id, &event.kind);
        }
    }

    fn observe_answer(&mut self, kind: &RunEventKind) {
        match kind {
            RunEventKind::ModelCallStarted { .. } | RunEventKind::ModelCallRetried { .. } => {
                self.answer = AnswerParts::default();
            }
            RunEventKind::TextDelta { text } => self.answer.text += text.len(),
            RunEventKind::ReasoningDelta { text } => self.answer.reasoning += text.len(),
            RunEventKind::ToolInputStarted { id, name } => {
                self.answer.tool_calls.push((id.clone(), name.clone(), 0));
            }
            RunEventKind::ToolInputDelta { id, json } => {
                let mut calls = self.answer.tool_calls.iter_mut().rev();
                if let Some((_, _, bytes)) = calls.find(|(open, _, _)| open == id) {
                    *bytes += json.len();
                }
            }
            RunEventKind::ProviderBlock { kind, .. } => {
                self.answer.provider_blocks.push(kind.clone());
            }
            _ => {}
        }
    }

    fn log_model_event(&mut self, run: &str, kind: &RunEventKind) {
        match kind {
            RunEventKind::ModelCallStarted {
                step,
                model,
                tools,
                tool_choice,
            } => {
                let tool_choice = tool_choice_text(tool_choice);
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
                parts = std::mem::take(&mut self.answer).describe(),
                tool_choice = tool_choice_outcome_text(tool_choice),
                input_tokens = usage.input_tokens,
                output_tokens = usage.output_tokens,
                "model call finished"
            ),
            RunEventKind::ModelCallRetried {
                step,
                attempt,
                delay_ms,
                reason,
            } => {
                let reason = self.redactor.redact_text(reason);
                debug!(target: LOG, run, step, attempt, delay_ms, reason, "model call retried");
            }
            RunEventKind::ModelCallFailed { step, error } => debug!(
                target: LOG,
                run,
                step,
                error = json_name(&error.kind),
                status = error.status,
                request_id = error.request_id,
                message = self.redactor.redact_text(&error.message),
                parts = std::mem::take(&mut self.answer).describe(),
                "model call failed"
            ),
            _ => {}
        }
    }

    fn log_tool_event(&mut self, run: &str, kind: &RunEventKind) {
        match kind {
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let input = self.redactor.redact_value(input).to_string();
                debug!(target: LOG, run, id, server, tool, input, "tool call planned");
                let call = OpenCall {
                    server: server.clone(),
                    tool: tool.clone(),
                    input,
                };
                self.open_calls.insert(id.clone(), call);
            }
            RunEventKind::ToolInputRepaired { id, repairs, input } => {
                let input = self.redactor.redact_value(input).to_string();
                let repairs = self.redactor.redact_text(&repairs.join("; "));
                debug!(target: LOG, run, id, repairs, input, "tool input changed");
                self.open_calls.entry(id.clone()).or_default().input = input;
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                debug!(target: LOG, run, id, "approval requested");
            }
            RunEventKind::ToolApproved {
                id,
                scope,
                edited,
                remembered,
            } => {
                let scope = json_name(scope);
                debug!(target: LOG, run, id, scope, edited, remembered, "tool call approved");
            }
            RunEventKind::ToolDenied { id, reason } => {
                let reason = self.redactor.redact_text(reason);
                debug!(target: LOG, run, id, reason, "tool call denied");
            }
            RunEventKind::ToolStarted { id } => {
                let OpenCall {
                    server,
                    tool,
                    input,
                } = self.open_calls.entry(id.clone()).or_default();
                debug!(target: LOG, run, id, server, tool, input, "tool call started");
            }
            RunEventKind::ToolRetried { id, retry } => {
                let reason = self.redactor.redact_text(&retry.reason);
                let attempt = retry.attempt;
                debug!(target: LOG, run, id, attempt, reason, "tool call retried");
            }
            RunEventKind::ToolFinished { id, .. } => {
                let call = self.open_calls.remove(id).unwrap_or_default();
                self.log_tool_result(run, id, &call, kind);
            }
            RunEventKind::QuestionAsked { id, question } => {
                let server = question.server.as_str();
                debug!(target: LOG, run, id, server, "server question asked");
            }
            RunEventKind::QuestionAnswered { id, action } => {
                debug!(target: LOG, run, id, action = json_name(action), "server question answered");
            }
            _ => {}
        }
    }

    fn log_tool_result(&self, run: &str, id: &str, call: &OpenCall, kind: &RunEventKind) {
        let RunEventKind::ToolFinished {
            is_error,
            failure,
            cached,
            attempts,
            duration_ms,
            content,
            ..
        } = kind
        else {
            return;
        };
        let OpenCall {
            server,
            tool,
            input,
        } = call;
        if *failure == Some(ToolFailure::Repeated) {
            debug!(
                target: LOG, run, id, server, tool, input,
                "repeated tool call answered with its earlier result"
            );
            return;
        }
        // The result of a call that did not run is our own text with the reason.
        let why = failure
            .filter(|failure| failure.did_not_run())
            .map(|_| self.redactor.redact_text(&text_of(content)));
        debug!(
            target: LOG,
            run,
            id,
            server,
            tool,
            is_error,
            failure = failure.map(ToolFailure::as_str),
            why,
            attempts,
            cached,
            duration_ms,
            result = describe_content(content),
            "tool call finished"
        );
    }

    fn log_run_event(&self, run: &str, kind: &RunEventKind) {
        match kind {
            RunEventKind::RunStarted { model, resumed } => {
                debug!(target: LOG, run, %model, resumed, "run started");
            }
            RunEventKind::ToolsUnavailable { problem } => {
                let why = self.redactor.redact_text(&problem.message);
                debug!(target: LOG, run, server = problem.server, why, "tools unavailable");
            }
            RunEventKind::ServerChanged { change } => self.log_server_change(run, change),
            RunEventKind::PhaseStarted { phase, mode } => {
                debug!(target: LOG, run, phase = json_name(phase), mode, "phase started");
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
            RunEventKind::HistorySummarised { model, error, .. } => debug!(
                target: LOG,
                run,
                %model,
                error = error.as_ref().map(|error| json_name(&error.kind)),
                "summary requested"
            ),
            RunEventKind::ModelSwitched { from, to, reason } => {
                let reason = self.redactor.redact_text(reason);
                debug!(target: LOG, run, %from, %to, reason, "switched to another model");
            }
            RunEventKind::ToolsDropped { reason } => {
                let reason = self.redactor.redact_text(reason);
                debug!(target: LOG, run, reason, "tools removed from the request");
            }
            RunEventKind::AskedAgain { attempt, reason } => {
                let reason = self.redactor.redact_text(reason);
                debug!(target: LOG, run, attempt, reason, "model asked again");
            }
            RunEventKind::FormatRepaired { repairs } => {
                let repairs = self.redactor.redact_text(&repairs.join("; "));
                debug!(target: LOG, run, repairs, "formatted answer repaired");
            }
            RunEventKind::Warning { warning } => {
                let message = self.redactor.redact_text(&warning.message);
                debug!(target: LOG, run, kind = json_name(&warning.kind), message, "warning");
            }
            RunEventKind::RunParked { waiting } => {
                debug!(target: LOG, run, waiting = waiting.len(), "run waits for approval decisions");
            }
            RunEventKind::RunFinished { report } => debug!(
                target: LOG,
                run,
                outcome = json_name(&report.outcome),
                finish = report.finish_reason.as_ref().map(FinishReason::as_str),
                steps = report.steps,
                tool_calls = report.tool_calls.len(),
                answer = report.answer.len(),
                error = report.error.as_ref().map(|error| json_name(&error.kind)),
                "run finished"
            ),
            _ => {}
        }
    }

    fn log_server_change(&self, run: &str, change: &ToolHostChange) {
        match change {
            ToolHostChange::ServerState {
                server,
                state,
                reason,
            } => {
                let reason = reason
                    .as_deref()
                    .map(|reason| self.redactor.redact_text(reason));
                debug!(target: LOG, run, server, state, reason, "server state changed");
            }
            ToolHostChange::ToolsChanged { server } => {
                debug!(target: LOG, run, server, "server tools changed");
            }
            ToolHostChange::ToolRedefined { server, tool, .. } => {
                debug!(target: LOG, run, server, tool, "tool definition changed");
            }
            _ => {}
        }
    }
}

impl AnswerParts {
    /// Describes the parts, such as `text 120 bytes, tool call get_customer 24 bytes`.
    fn describe(self) -> String {
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
        joined_or_nothing(&parts)
    }
}

fn text_of(content: &[ToolContent]) -> String {
    let pieces: Vec<String> = content.iter().map(ToolContent::as_text).collect();
    pieces.join("\n")
}

/// Describes a result, such as `text 120 bytes, image`.
fn describe_content(content: &[ToolContent]) -> String {
    let pieces = content.iter().map(|piece| match piece {
        ToolContent::Text { text } => format!("text {} bytes", text.len()),
        ToolContent::Image(_) => "image".to_owned(),
        ToolContent::Audio(_) => "audio".to_owned(),
        ToolContent::Resource { .. } => "resource".to_owned(),
        ToolContent::ResourceLink { .. } => "resource link".to_owned(),
        _ => "unknown".to_owned(),
    });
    joined_or_nothing(&pieces.collect::<Vec<_>>())
}

fn joined_or_nothing(pieces: &[String]) -> String {
    if pieces.is_empty() {
        "nothing".to_owned()
    } else {
        pieces.join(", ")
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

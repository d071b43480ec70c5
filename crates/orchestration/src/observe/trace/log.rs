//! What happens in a run, as log lines.

use std::collections::HashMap;

use switchboard_domain::{FinishReason, ToolContent, ToolHostChange};

use super::{
    LOG,
    spans::{choice, outcome, word},
};
use crate::{RunEvent, RunEventKind, ToolFailure, observe::audit::Redactor};

/// Tells the events of one run as log lines (target [`LOG`], level `DEBUG`), for whoever asks why a run
/// went as it did: which tool choice was sent and what became of it, which server and tool ran with
/// which input (without secrets, cut to size), what an answer was made of, why a repeated call was
/// stopped.
///
/// Costs a look at a flag for each event while nobody listens.
#[derive(Debug, Default)]
pub struct RunLog {
    redactor: Redactor,
    answer: Answer,
    calls: HashMap<String, (Option<String>, String, String)>,
}

/// What an answer is made of so far.
#[derive(Debug, Default)]
struct Answer {
    text: usize,
    reasoning: usize,
    tools: Vec<(String, String, usize)>,
    blocks: Vec<String>,
}

impl RunLog {
    /// Lines without what `redactor` takes out.
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            ..Self::default()
        }
    }

    /// Tells an event. Those of one run must come in order.
    pub fn observe(&mut self, event: &RunEvent) {
        if tracing::enabled!(target: LOG, tracing::Level::DEBUG) {
            self.tell(&event.run_id, &event.kind);
        }
    }

    fn tell(&mut self, run: &str, kind: &RunEventKind) {
        match kind {
            RunEventKind::TextDelta { text } => self.answer.text += text.len(),
            RunEventKind::ReasoningDelta { text } => self.answer.reasoning += text.len(),
            RunEventKind::ToolInputStarted { id, name } => {
                self.answer.tools.push((id.clone(), name.clone(), 0));
            }
            RunEventKind::ToolInputDelta { id, json } => {
                let mut tools = self.answer.tools.iter_mut().rev();
                if let Some((_, _, bytes)) = tools.find(|(open, _, _)| open == id) {
                    *bytes += json.len();
                }
            }
            RunEventKind::ProviderBlock { kind, .. } => self.answer.blocks.push(kind.clone()),
            RunEventKind::ModelCallStarted { .. }
            | RunEventKind::ModelCallFinished { .. }
            | RunEventKind::ModelCallRetried { .. }
            | RunEventKind::ModelCallFailed { .. } => self.model(run, kind),
            RunEventKind::ToolPlanned { .. }
            | RunEventKind::ToolInputRepaired { .. }
            | RunEventKind::ToolAwaitingApproval { .. }
            | RunEventKind::ToolApproved { .. }
            | RunEventKind::ToolDenied { .. }
            | RunEventKind::ToolStarted { .. }
            | RunEventKind::ToolRetried { .. }
            | RunEventKind::ToolFinished { .. } => self.tool(run, kind),
            other => self.rest(run, other),
        }
    }

    fn model(&mut self, run: &str, kind: &RunEventKind) {
        match kind {
            RunEventKind::ModelCallStarted {
                step,
                model,
                tools,
                tool_choice,
            } => {
                self.answer = Answer::default();
                let tool_choice = choice(tool_choice);
                tracing::debug!(target: LOG, run, step, %model, tools, tool_choice, "the model is asked");
            }
            RunEventKind::ModelCallFinished {
                step,
                model,
                finish_reason,
                finish_raw,
                usage,
                tool_choice,
            } => {
                let parts = std::mem::take(&mut self.answer).in_words();
                tracing::debug!(
                    target: LOG,
                    run,
                    step,
                    model,
                    finish = finish_reason.as_str(),
                    finish_raw,
                    parts,
                    tool_choice = outcome(tool_choice),
                    input_tokens = usage.input_tokens,
                    output_tokens = usage.output_tokens,
                    "the model answered"
                );
            }
            RunEventKind::ModelCallRetried {
                step,
                attempt,
                delay_ms,
                reason,
            } => {
                self.answer = Answer::default();
                let reason = self.redactor.text(reason);
                tracing::debug!(
                    target: LOG,
                    run,
                    step,
                    attempt,
                    delay_ms,
                    reason,
                    "the model call is repeated"
                );
            }
            RunEventKind::ModelCallFailed { step, error } => {
                let parts = std::mem::take(&mut self.answer).in_words();
                tracing::debug!(
                    target: LOG,
                    run,
                    step,
                    error = word(&error.kind),
                    status = error.status,
                    request_id = error.request_id,
                    message = self.redactor.text(&error.message),
                    parts,
                    "the model gave no whole answer"
                );
            }
            _ => {}
        }
    }

    fn tool(&mut self, run: &str, kind: &RunEventKind) {
        match kind {
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let input = self.redactor.value(input).to_string();
                tracing::debug!(target: LOG, run, id, server, tool, input, "the model wants a tool");
                let call = (server.clone(), tool.clone(), input);
                self.calls.insert(id.clone(), call);
            }
            RunEventKind::ToolInputRepaired { id, repairs, input } => {
                let input = self.redactor.value(input).to_string();
                let repairs = self.redactor.text(&repairs.join("; "));
                tracing::debug!(target: LOG, run, id, repairs, input, "the input was changed");
                if let Some((_, _, kept)) = self.calls.get_mut(id) {
                    *kept = input;
                }
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                tracing::debug!(target: LOG, run, id, "somebody is asked whether the tool may run");
            }
            RunEventKind::ToolApproved {
                id,
                scope,
                edited,
                remembered,
            } => {
                let scope = word(scope);
                tracing::debug!(target: LOG, run, id, scope, edited, remembered, "the tool may run");
            }
            RunEventKind::ToolDenied { id, reason } => {
                let reason = self.redactor.text(reason);
                tracing::debug!(target: LOG, run, id, reason, "the tool may not run");
            }
            RunEventKind::ToolStarted { id } => {
                let call = self.calls.get(id);
                let server = call.and_then(|(server, _, _)| server.as_deref());
                let tool = call.map(|(_, tool, _)| tool.as_str());
                let input = call.map(|(_, _, input)| input.as_str());
                tracing::debug!(target: LOG, run, id, server, tool, input, "the tool is called");
            }
            RunEventKind::ToolRetried { id, retry } => {
                let reason = self.redactor.text(&retry.reason);
                let attempt = retry.attempt;
                tracing::debug!(target: LOG, run, id, attempt, reason, "the tool is called again");
            }
            RunEventKind::ToolFinished { .. } => self.tool_finished(run, kind),
            _ => {}
        }
    }

    fn tool_finished(&mut self, run: &str, kind: &RunEventKind) {
        let RunEventKind::ToolFinished {
            id,
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
        let (server, tool, input) = self.calls.remove(id).unwrap_or_default();
        if *failure == Some(ToolFailure::Repeated) {
            tracing::debug!(
                target: LOG, run, id, server, tool, input,
                "the call is not made again: its earlier result stands in for it"
            );
            return;
        }
        // Of a call that was not made, the result is our own words and says why.
        let why = failure
            .filter(|failure| failure.did_not_run())
            .map(|_| self.redactor.text(&text_of(content)));
        tracing::debug!(
            target: LOG,
            run,
            id,
            server,
            tool,
            is_error,
            failure = failure.as_ref().map(word),
            why,
            attempts,
            cached,
            duration_ms,
            result = sizes(content),
            "the tool call has its result"
        );
    }

    fn rest(&self, run: &str, kind: &RunEventKind) {
        match kind {
            RunEventKind::RunStarted { model, resumed } => {
                tracing::debug!(target: LOG, run, %model, resumed, "the run begins");
            }
            RunEventKind::ToolsUnavailable { problem } => {
                let why = self.redactor.text(&problem.message);
                tracing::debug!(target: LOG, run, server = problem.server, why, "tools are missing");
            }
            RunEventKind::ServerChanged { change } => self.server_changed(run, change),
            RunEventKind::PhaseStarted { phase, mode } => {
                let phase = word(phase);
                tracing::debug!(target: LOG, run, phase, mode, "a phase begins");
            }
            RunEventKind::HistoryTrimmed {
                left_out,
                tokens_before,
                tokens_after,
                summarised,
            } => tracing::debug!(
                target: LOG, run, left_out, tokens_before, tokens_after, summarised,
                "older messages are not sent"
            ),
            RunEventKind::HistorySummarised { model, error, .. } => tracing::debug!(
                target: LOG,
                run,
                %model,
                error = error.as_ref().map(|error| word(&error.kind)),
                "the model was asked for a summary"
            ),
            RunEventKind::ModelSwitched { from, to, reason } => {
                let reason = self.redactor.text(reason);
                tracing::debug!(target: LOG, run, %from, %to, reason, "another model goes on");
            }
            RunEventKind::ToolsDropped { reason } => {
                let reason = self.redactor.text(reason);
                tracing::debug!(target: LOG, run, reason, "the model is asked without tools");
            }
            RunEventKind::AskedAgain { attempt, reason } => {
                let reason = self.redactor.text(reason);
                tracing::debug!(target: LOG, run, attempt, reason, "the model is asked again");
            }
            RunEventKind::QuestionAsked { id, question } => {
                let server = question.server.as_str();
                tracing::debug!(target: LOG, run, id, server, "a server asks the person");
            }
            RunEventKind::QuestionAnswered { id, action } => {
                let action = word(action);
                tracing::debug!(target: LOG, run, id, action, "a server's question is over");
            }
            RunEventKind::FormatRepaired { repairs } => {
                let repairs = self.redactor.text(&repairs.join("; "));
                tracing::debug!(target: LOG, run, repairs, "the formatted answer was mended");
            }
            RunEventKind::Warning { warning } => {
                let (kind, message) = (word(&warning.kind), self.redactor.text(&warning.message));
                tracing::debug!(target: LOG, run, kind, message, "not done as asked");
            }
            RunEventKind::RunParked { waiting } => {
                let waiting = waiting.len();
                tracing::debug!(target: LOG, run, waiting, "the run waits for approvals");
            }
            RunEventKind::RunFinished { report } => tracing::debug!(
                target: LOG,
                run,
                outcome = word(&report.outcome),
                finish = report.finish_reason.as_ref().map(FinishReason::as_str),
                steps = report.steps,
                tool_calls = report.tool_calls.len(),
                answer = report.answer.len(),
                error = report.error.as_ref().map(|error| word(&error.kind)),
                "the run is over"
            ),
            _ => {}
        }
    }

    fn server_changed(&self, run: &str, change: &ToolHostChange) {
        match change {
            ToolHostChange::ServerState {
                server,
                state,
                reason,
            } => {
                let reason = reason.as_deref().map(|reason| self.redactor.text(reason));
                tracing::debug!(target: LOG, run, server, state, reason, "a server changed its state");
            }
            ToolHostChange::ToolsChanged { server } => {
                tracing::debug!(target: LOG, run, server, "a server's tools changed");
            }
            ToolHostChange::ToolRedefined { server, tool, .. } => {
                tracing::debug!(target: LOG, run, server, tool, "a tool is not what it was");
            }
            _ => {}
        }
    }
}

impl Answer {
    /// Such as `text 120 bytes, tool call get_customer 24 bytes`.
    fn in_words(self) -> String {
        let mut parts = Vec::new();
        if self.reasoning > 0 {
            parts.push(format!("reasoning {} bytes", self.reasoning));
        }
        if self.text > 0 {
            parts.push(format!("text {} bytes", self.text));
        }
        for (_, name, bytes) in self.tools {
            parts.push(format!("tool call {name} {bytes} bytes"));
        }
        parts.extend(self.blocks.into_iter().map(|kind| format!("block {kind}")));
        if parts.is_empty() {
            "nothing".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

fn text_of(content: &[ToolContent]) -> String {
    let pieces: Vec<String> = content.iter().map(ToolContent::as_text).collect();
    pieces.join("\n")
}

/// Such as `text 120 bytes, image`.
fn sizes(content: &[ToolContent]) -> String {
    let pieces: Vec<String> = content
        .iter()
        .map(|piece| match piece {
            ToolContent::Text { text } => format!("text {} bytes", text.len()),
            ToolContent::Image(_) => "image".to_owned(),
            ToolContent::Audio(_) => "audio".to_owned(),
            ToolContent::Resource { .. } => "resource".to_owned(),
            ToolContent::ResourceLink { .. } => "resource link".to_owned(),
            _ => "something unknown".to_owned(),
        })
        .collect();
    if pieces.is_empty() {
        "nothing".to_owned()
    } else {
        pieces.join(", ")
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

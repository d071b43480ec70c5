//! Collects the events of a run for a response that is not streamed.

use serde_json::{Value, json};
use switchboard_orchestration::RunReport;

use crate::dialects::{
    event_encoder::EventEncoder,
    event_sequencer::{AnswerPartKind, ClientEvent, ToolCallView},
    response::{
        response_state::ResponseState,
        run_failure::RunFailure,
        sse_frames::{SseFrames, remove_null_fields},
    },
};

/// An encoder for responses that are not streamed. It collects the run report, or the tool calls
/// that the client must execute.
#[derive(Debug, Default)]
pub(crate) struct CollectedResponse {
    pub(crate) state: ResponseState,
    /// The start of the run in seconds since 1970.
    pub(crate) started_at: i64,
    /// The reasoning text of all steps in this response.
    pub(crate) reasoning: String,
    /// The answer text of all steps in this response, without the text that the run discarded
    /// ([`ClientEvent::TextSuperseded`]).
    pub(crate) text: String,
    /// The tool calls that the client must execute. Empty if the run has finished.
    pub(crate) calls: Vec<ToolCallView>,
    report: Option<Box<RunReport>>,
    interruption: Option<String>,
    step_start: usize,
}

impl CollectedResponse {
    pub(crate) fn new(state: ResponseState) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }

    /// Returns the report of a finished run, or `None` if the run waits for the client. The error
    /// states why the run has no answer.
    pub(crate) fn run_report(&self) -> Result<Option<&RunReport>, RunFailure<'_>> {
        if let Some(reason) = &self.interruption {
            return Err(RunFailure::from_interruption(reason));
        }
        let report = self.report.as_deref();
        match report.and_then(|report| self.state.run_failure(report)) {
            Some(failure) => Err(failure),
            None => Ok(report),
        }
    }
}

impl EventEncoder for CollectedResponse {
    fn encode_event(&mut self, event: &ClientEvent<'_>, _: &mut SseFrames) {
        self.state.update_from_event(event);
        match event {
            ClientEvent::RunStarted { event, .. } => self.started_at = event.time.as_second(),
            ClientEvent::StepStarted { .. } => self.step_start = self.text.len(),
            ClientEvent::PartStarted(part) if part.starts_paragraph && !self.text.is_empty() => {
                self.text.push_str("\n\n");
            }
            ClientEvent::PartDelta(part, text) => match part.kind {
                AnswerPartKind::Text => self.text.push_str(text),
                AnswerPartKind::Reasoning => self.reasoning.push_str(text),
            },
            ClientEvent::TextSuperseded => self.text.truncate(self.step_start),
            ClientEvent::RunFinished(report) => self.report = Some(Box::new((*report).clone())),
            _ => {}
        }
    }

    fn encode_run_pause(&mut self, waiting: &[&ToolCallView], _: &mut SseFrames) {
        let calls = waiting.iter().filter(|call| call.is_client_tool());
        self.calls = calls.map(|call| (*call).clone()).collect();
    }

    fn encode_run_interruption(&mut self, reason: &str, _: &mut SseFrames) {
        self.interruption = Some(reason.to_owned());
    }
}

/// Returns the response field `switchboard`, which describes the run. `with_tool_calls` is `false`
/// for streams, because earlier events of the stream contain the tool calls.
pub(crate) fn run_details_json(report: &RunReport, with_tool_calls: bool) -> Value {
    let mut details = remove_null_fields(json!({
        "run_id": report.run_id,
        "session_id": report.session_id,
        "model": report.model.to_string(),
        "outcome": report.outcome,
        "steps": report.steps,
        "tool_calls": with_tool_calls.then_some(&report.tool_calls),
    }));
    details["warnings"] = json!(report.warnings);
    details["error"] = json!(report.error);
    details
}

//! Responses that are not streamed.

use serde::Serialize;
use switchboard_domain::Warning;
use switchboard_orchestration::{Outcome, RunError, RunReport, ToolCallRecord};

use crate::dialects::{
    encoder::EventEncoder,
    response::{
        failure::Failure,
        frames::SseFrames,
        state::{ResponseOptions, ResponseState},
    },
    sequencer::{Call, ClientEvent, PartKind},
    tools::client_tools::call_id,
};

/// An encoder that collects a response: the report of the run, or the calls for the client.
#[derive(Debug, Default)]
pub(crate) struct CollectedResponse {
    pub(crate) state: ResponseState,
    /// The start of the run, in seconds since 1970.
    pub(crate) started_at: i64,
    /// The reasoning of all steps.
    pub(crate) reasoning: String,
    /// The text of all steps.
    pub(crate) text: String,
    report: Option<Box<RunReport>>,
    interruption: Option<String>,
    step_start: usize,
    is_closed: bool,
}

/// The content of a response that is not streamed.
pub(crate) enum Collected<'a> {
    Answer(&'a RunReport),
    Failed(Failure<'a>),
    /// The run waits for the client's calls.
    ClientCalls,
}

impl CollectedResponse {
    pub(crate) fn new(options: ResponseOptions) -> Self {
        Self {
            state: ResponseState::new(options),
            ..Self::default()
        }
    }

    pub(crate) fn outcome(&self) -> Collected<'_> {
        match (&self.report, &self.interruption) {
            (Some(report), _) => match self.state.failure(report) {
                Some(failure) => Collected::Failed(failure),
                None => Collected::Answer(report),
            },
            (None, Some(reason)) => Collected::Failed(Failure::interrupted(reason)),
            (None, None) => Collected::ClientCalls,
        }
    }
}

impl EventEncoder for CollectedResponse {
    fn encode(&mut self, event: &ClientEvent<'_>, _: &mut SseFrames) {
        self.state.update(event);
        match event {
            ClientEvent::RunStarted { event, .. } => self.started_at = event.time.as_second(),
            ClientEvent::StepStarted { .. } => self.step_start = self.text.len(),
            ClientEvent::PartStarted(part) if part.starts_paragraph && !self.text.is_empty() => {
                self.text.push_str("\n\n");
            }
            ClientEvent::PartDelta(part, text) => match part.kind {
                PartKind::Text => self.text.push_str(text),
                PartKind::Reasoning => self.reasoning.push_str(text),
            },
            ClientEvent::TextSuperseded => self.text.truncate(self.step_start),
            ClientEvent::RunFinished(report) => {
                self.report = Some(Box::new((*report).clone()));
                self.is_closed = true;
            }
            _ => {}
        }
    }

    fn pause(&mut self, _: &[&Call], _: &mut SseFrames) {
        self.is_closed = true;
    }

    fn interrupt(&mut self, reason: &str, _: &mut SseFrames) {
        self.interruption = Some(reason.to_owned());
        self.is_closed = true;
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

/// The field `switchboard` of a response: facts about the run besides its answer.
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
    warnings: &'a [Warning],
    error: Option<&'a RunError>,
}

impl<'a> RunDetails<'a> {
    pub(crate) fn new(report: &'a RunReport) -> Self {
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

    /// Omits the tool calls, because the events of the stream contained them.
    pub(crate) fn without_tool_calls(report: &'a RunReport) -> Self {
        Self {
            tool_calls: None,
            ..Self::new(report)
        }
    }
}

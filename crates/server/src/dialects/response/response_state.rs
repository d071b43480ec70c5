//! The state of responses in OpenAI's and Anthropic's formats.

use std::sync::Arc;

use switchboard_domain::Usage;
use switchboard_orchestration::{RunEventKind, RunReport, strategy::formatter::AnswerSchema};

use crate::dialects::{
    event_sequencer::{ClientEvent, ToolCallView},
    response::run_failure::RunFailure,
    tools::client_tools::build_client_call_id,
};

/// The state of one response in OpenAI's or Anthropic's format.
#[derive(Debug, Default)]
pub(crate) struct ResponseState {
    /// The sequence number of the last event in the previous response, or `None` in the first
    /// response of a run.
    pub(crate) last_seen: Option<u64>,
    /// The JSON Schema that the answer must match, or `None` for a text answer. With a schema, only
    /// the JSON answer arrives as text. Text that the model writes before the JSON answer arrives
    /// as reasoning.
    pub(crate) answer_form: Option<Arc<AnswerSchema>>,
    pub(crate) run: String,
    /// The token usage of the model calls in this response.
    pub(crate) usage: Usage,
}

impl ResponseState {
    pub(crate) fn update_from_event(&mut self, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::RunStarted { event, .. } => self.run = event.run_id.to_string(),
            ClientEvent::Other(event) => {
                if let RunEventKind::ModelCallFinished { usage, .. }
                | RunEventKind::HistorySummarised { usage, .. } = &event.kind
                {
                    self.usage.add_usage(**usage);
                }
            }
            _ => {}
        }
    }

    /// Returns the id of the response: `prefix` and the run id. If the response continues a run,
    /// the number of the last event in the previous response follows.
    pub(crate) fn response_id(&self, prefix: &str) -> String {
        let run = &self.run;
        match self.last_seen {
            None => format!("{prefix}{run}"),
            Some(after) => format!("{prefix}{run}-{after}"),
        }
    }

    /// Returns the call id that the client receives, which contains the run id.
    pub(crate) fn client_call_id(&self, call: &ToolCallView) -> String {
        build_client_call_id(&self.run, &call.tool_use_id)
    }

    /// Returns the token usage for the client. If this response contains the whole finished run, it
    /// is the usage of the run, otherwise the usage of the model calls in this response.
    pub(crate) fn response_usage<'u>(&'u self, report: Option<&'u RunReport>) -> &'u Usage {
        match (report, self.last_seen) {
            (Some(report), None) => &report.usage,
            _ => &self.usage,
        }
    }

    /// Returns the failure of a finished run, or `None` if the run has a valid answer.
    pub(crate) fn run_failure<'r>(&self, report: &'r RunReport) -> Option<RunFailure<'r>> {
        RunFailure::from_report(report).or_else(|| {
            let form = self.answer_form.as_deref()?;
            RunFailure::from_answer_mismatch(report, form)
        })
    }
}

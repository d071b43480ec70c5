//! State that OpenAI's and Anthropic's responses share. Their clients send the whole conversation.

use std::sync::Arc;

use switchboard_domain::Usage;
use switchboard_orchestration::{RunEvent, RunEventKind, RunReport, strategy::formatter::Form};

use crate::dialects::{
    response::failure::Failure,
    sequencer::ClientEvent,
    tools::client_tools::{ClientCall, ClientCalls},
};

/// Properties of a response that its format does not determine.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseOptions {
    /// The number of the last event in an earlier response, if there was one.
    pub(crate) last_seen: Option<u64>,
    /// The schema of the answer. Text before the answer is emitted as reasoning.
    pub(crate) answer_form: Option<Arc<Form>>,
}

/// The state of one response.
#[derive(Debug, Default)]
pub(crate) struct ResponseState {
    options: ResponseOptions,
    run: String,
    calls: ClientCalls,
    /// The usage of the model calls of this response.
    usage: Usage,
}

impl ResponseState {
    pub(crate) fn new(options: ResponseOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    pub(crate) fn update(&mut self, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::RunStarted { event, .. } => self.run = event.run_id.to_string(),
            ClientEvent::Other(event) => self.count(event),
            _ => {}
        }
        self.calls.update(&self.run, event);
    }

    fn count(&mut self, event: &RunEvent) {
        if let RunEventKind::ModelCallFinished { usage, .. }
        | RunEventKind::HistorySummarised { usage, .. } = &event.kind
        {
            self.usage.add(**usage);
        }
    }

    /// Returns the id of the run.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Returns the id of the response: the id of the run, and in a later response also the number
    /// of the last event before it.
    pub(crate) fn id(&self, prefix: &str) -> String {
        let run = &self.run;
        match self.options.last_seen {
            None => format!("{prefix}{run}"),
            Some(after) => format!("{prefix}{run}-{after}"),
        }
    }

    /// Returns the calls that wait for the client.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &ClientCall> {
        self.calls.waiting()
    }

    /// Returns the usage of the model calls of this response so far.
    pub(crate) fn usage_so_far(&self) -> &Usage {
        &self.usage
    }

    /// Returns the usage of the response in which the run ends.
    pub(crate) fn usage<'u>(&'u self, report: &'u RunReport) -> &'u Usage {
        match self.options.last_seen {
            None => &report.usage,
            Some(_) => &self.usage,
        }
    }

    /// Returns the error of a run without an answer.
    pub(crate) fn failure<'r>(&self, report: &'r RunReport) -> Option<Failure<'r>> {
        Failure::of(report).or_else(|| {
            let form = self.options.answer_form.as_deref()?;
            Failure::of_form(report, form)
        })
    }
}

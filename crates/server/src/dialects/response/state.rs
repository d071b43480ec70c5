//! What the dialects have in common whose clients bring the whole conversation: OpenAI's and Anthropic's.

use std::sync::Arc;

use switchboard_domain::Usage;
use switchboard_orchestration::{RunEvent, RunEventKind, RunReport, strategy::formatter::Form};

use crate::dialects::{
    tools::client_tools::{ClientCall, ClientCalls},
    response::failure::Failure,
    sequencer::ClientEvent,
};

/// What a response is to be like, beside what its client's form of it wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseOptions {
    /// The number of the last event that an earlier response told, if there was one.
    pub(crate) seen: Option<u64>,
    /// The form that the answer is to have. What a model says before it has it is told as its thinking.
    pub(crate) form: Option<Arc<Form>>,
}

/// Follows a run through one response.
#[derive(Debug, Default)]
pub(crate) struct ResponseState {
    terms: ResponseOptions,
    run: String,
    calls: ClientCalls,
    /// What the models cost that were asked for this response.
    usage: Usage,
}

impl ResponseState {
    pub(crate) fn new(terms: ResponseOptions) -> Self {
        Self {
            terms,
            ..Self::default()
        }
    }

    pub(crate) fn follow(&mut self, beat: &ClientEvent<'_>) {
        match beat {
            ClientEvent::RunStarted { event, .. } => self.run = event.run_id.to_string(),
            ClientEvent::Other(event) => self.count(event),
            _ => {}
        }
        self.calls.follow(&self.run, beat);
    }

    fn count(&mut self, event: &RunEvent) {
        if let RunEventKind::ModelCallFinished { usage, .. }
        | RunEventKind::HistorySummarised { usage, .. } = &event.kind
        {
            self.usage.add(**usage);
        }
    }

    /// The run.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// The id of the response, from which the run can be found again; one that goes on after an event has another.
    pub(crate) fn id(&self, prefix: &str) -> String {
        let run = &self.run;
        match self.terms.seen {
            None => format!("{prefix}{run}"),
            Some(after) => format!("{prefix}{run}-{after}"),
        }
    }

    /// The calls that the client is to make.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &ClientCall> {
        self.calls.asked()
    }

    /// What the models cost so far that were asked for this response.
    pub(crate) fn usage_so_far(&self) -> &Usage {
        &self.usage
    }

    /// What the response costs in which the run ends.
    pub(crate) fn usage<'u>(&'u self, report: &'u RunReport) -> &'u Usage {
        match self.terms.seen {
            None => &report.usage,
            Some(_) => &self.usage,
        }
    }

    /// Why there is no answer, if there is none.
    pub(crate) fn failure<'r>(&self, report: &'r RunReport) -> Option<Failure<'r>> {
        Failure::of(report).or_else(|| {
            let form = self.terms.form.as_deref()?;
            Failure::of_form(report, form)
        })
    }
}

//! A run for a client that wants its answer at once.

use switchboard_domain::Usage;
use switchboard_orchestration::{RunEvent, RunEventKind, RunReport};

use super::{
    client_tools::{ClientCall, ClientCalls},
    frames::Frames,
    respond::Projection,
    telling::{Beat, PartKind, Telling},
};

/// Collects what a response has to say: the run's report, or what the client is to do for it to go on.
#[derive(Debug, Default)]
pub(super) struct Whole {
    telling: Telling,
    said: Said,
}

#[derive(Debug, Default)]
pub(super) struct Said {
    /// The run.
    pub(super) run: String,
    /// When it began, in seconds since 1970.
    pub(super) began: i64,
    /// What the model thought, all steps together.
    pub(super) reasoning: String,
    /// What it said.
    pub(super) text: String,
    /// What the models cost that were asked for this response.
    pub(super) usage: Usage,
    /// How the run ended, if it did.
    pub(super) report: Option<Box<RunReport>>,
    /// Why there is nothing to say.
    pub(super) broken: Option<String>,
    /// The number of the last event that an earlier response told, if there was one.
    pub(super) seen: Option<u64>,
    calls: ClientCalls,
    step_began_at: usize,
    is_closed: bool,
}

impl Whole {
    /// The events up to this number were told in an earlier response, and are not told to this one.
    pub(super) fn after(seen: Option<u64>) -> Self {
        let mut whole = Self::default();
        whole.said.seen = seen;
        whole
    }

    /// What there is.
    pub(super) fn said(self) -> Said {
        self.said
    }
}

impl Said {
    /// The calls that the client is to make.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ClientCall> {
        self.calls.asked()
    }

    /// What this response costs.
    pub(super) fn usage(&self, report: &RunReport) -> Usage {
        match self.seen {
            None => report.usage,
            Some(_) => self.usage,
        }
    }

    fn hear(&mut self, beat: &Beat<'_>) {
        self.calls.follow(&self.run, beat);
        match beat {
            Beat::Began { event, .. } => {
                self.run = event.run_id.to_string();
                self.began = event.time.as_second();
            }
            Beat::StepBegan { .. } => self.step_began_at = self.text.len(),
            Beat::PartBegan(part) if part.is_fresh && !self.text.is_empty() => {
                self.text.push_str("\n\n");
            }
            Beat::PartGrew(part, text) => match part.kind {
                PartKind::Text => self.text.push_str(text),
                PartKind::Reasoning => self.reasoning.push_str(text),
            },
            Beat::Void => self.text.truncate(self.step_began_at),
            Beat::Note(event) => add_usage(&mut self.usage, event),
            Beat::Ended(report) => {
                self.report = Some(Box::new((*report).clone()));
                self.is_closed = true;
            }
            _ => {}
        }
    }
}

/// Adds what an event says that a model cost.
pub(super) fn add_usage(sum: &mut Usage, event: &RunEvent) {
    if let RunEventKind::ModelCallFinished { usage, .. }
    | RunEventKind::HistorySummarised { usage, .. } = &event.kind
    {
        sum.add(**usage);
    }
}

impl Projection for Whole {
    fn event(&mut self, event: &RunEvent, _: &mut Frames) {
        let Self { telling, said } = self;
        telling.event(event, &mut |beat| said.hear(&beat));
    }

    fn waits(&mut self, _: &mut Frames) {
        let Self { telling, said } = self;
        telling.rests(&mut |beat| said.hear(&beat));
        said.is_closed = true;
    }

    fn breaks(&mut self, why: &str, _: &mut Frames) {
        self.said.broken = Some(why.to_owned());
        self.said.is_closed = true;
    }

    fn is_closed(&self) -> bool {
        self.said.is_closed
    }

    fn asks(&self) -> bool {
        self.said.calls.asked().next().is_some()
    }

    fn calls(&self) -> Vec<String> {
        self.said
            .calls
            .asked()
            .map(|call| call.tool_use.clone())
            .collect()
    }
}

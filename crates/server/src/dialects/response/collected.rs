//! A run for a client that wants its answer at once.

use switchboard_orchestration::RunReport;

use crate::dialects::{
    tools::client_tools::call_id,
    response::state::{ResponseState, ResponseOptions},
    response::frames::SseFrames,
    encoder::EventEncoder,
    sequencer::{ClientEvent, Call, PartKind},
};

/// Collects what a response has to say: the run's report, or what the client is to do for it to go on.
#[derive(Debug, Default)]
pub(crate) struct CollectedResponse {
    pub(crate) course: ResponseState,
    /// When the run began, in seconds since 1970.
    pub(crate) began: i64,
    /// What the model thought, all steps together.
    pub(crate) reasoning: String,
    /// What it said.
    pub(crate) text: String,
    /// How the run ended, if it did.
    pub(crate) report: Option<Box<RunReport>>,
    /// Why there is nothing to say.
    pub(crate) broken: Option<String>,
    step_began_at: usize,
    is_closed: bool,
}

impl CollectedResponse {
    pub(crate) fn new(terms: ResponseOptions) -> Self {
        Self {
            course: ResponseState::new(terms),
            ..Self::default()
        }
    }
}

impl EventEncoder for CollectedResponse {
    fn say(&mut self, beat: &ClientEvent<'_>, _: &mut SseFrames) {
        self.course.follow(beat);
        match beat {
            ClientEvent::RunStarted { event, .. } => self.began = event.time.as_second(),
            ClientEvent::StepStarted { .. } => self.step_began_at = self.text.len(),
            ClientEvent::PartStarted(part) if part.is_fresh && !self.text.is_empty() => {
                self.text.push_str("\n\n");
            }
            ClientEvent::PartDelta(part, text) => match part.kind {
                PartKind::Text => self.text.push_str(text),
                PartKind::Reasoning => self.reasoning.push_str(text),
            },
            ClientEvent::TextSuperseded => self.text.truncate(self.step_began_at),
            ClientEvent::RunFinished(report) => {
                self.report = Some(Box::new((*report).clone()));
                self.is_closed = true;
            }
            _ => {}
        }
    }

    fn waits(&mut self, _: &[&Call], _: &mut SseFrames) {
        self.is_closed = true;
    }

    fn breaks(&mut self, why: &str, _: &mut SseFrames) {
        self.broken = Some(why.to_owned());
        self.is_closed = true;
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn ends_at(&self, call: &Call) -> bool {
        call.is_clients()
    }

    fn client_id(&self, call: &Call) -> String {
        call_id(self.course.run(), &call.tool_use)
    }
}

//! A run for a client that wants its answer at once.

use switchboard_orchestration::RunReport;

use super::{
    client_tools::call_id,
    course::{Course, Terms},
    frames::Frames,
    projection::Projection,
    telling::{Beat, Call, PartKind},
};

/// Collects what a response has to say: the run's report, or what the client is to do for it to go on.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) course: Course,
    /// When the run began, in seconds since 1970.
    pub(super) began: i64,
    /// What the model thought, all steps together.
    pub(super) reasoning: String,
    /// What it said.
    pub(super) text: String,
    /// How the run ended, if it did.
    pub(super) report: Option<Box<RunReport>>,
    /// Why there is nothing to say.
    pub(super) broken: Option<String>,
    step_began_at: usize,
    is_closed: bool,
}

impl Said {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            course: Course::new(terms),
            ..Self::default()
        }
    }
}

impl Projection for Said {
    fn say(&mut self, beat: &Beat<'_>, _: &mut Frames) {
        self.course.follow(beat);
        match beat {
            Beat::Began { event, .. } => self.began = event.time.as_second(),
            Beat::StepBegan { .. } => self.step_began_at = self.text.len(),
            Beat::PartBegan(part) if part.is_fresh && !self.text.is_empty() => {
                self.text.push_str("\n\n");
            }
            Beat::PartGrew(part, text) => match part.kind {
                PartKind::Text => self.text.push_str(text),
                PartKind::Reasoning => self.reasoning.push_str(text),
            },
            Beat::Void => self.text.truncate(self.step_began_at),
            Beat::Ended(report) => {
                self.report = Some(Box::new((*report).clone()));
                self.is_closed = true;
            }
            _ => {}
        }
    }

    fn waits(&mut self, _: &[&Call], _: &mut Frames) {
        self.is_closed = true;
    }

    fn breaks(&mut self, why: &str, _: &mut Frames) {
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

//! What a stream has made and not yet given out.

use std::collections::VecDeque;

use switchboard_domain::{ModelError, ModelEvent};

/// Events, and the error that comes after them.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    ready: VecDeque<ModelEvent>,
    failure: Option<ModelError>,
}

impl Outgoing {
    /// One more event.
    pub(crate) fn push(&mut self, event: ModelEvent) {
        self.ready.push_back(event);
    }

    /// An error after the events so far. The first one is what went wrong; later ones are its
    /// consequences.
    pub(crate) fn fail(&mut self, failure: ModelError) {
        self.failure.get_or_insert(failure);
    }

    /// What is next; `None` if nothing is there.
    pub(crate) fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        match self.ready.pop_front() {
            Some(event) => Some(Ok(event)),
            None => self.failure.take().map(Err),
        }
    }
}

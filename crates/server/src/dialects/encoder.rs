//! What makes a dialect of a run's events.

use switchboard_orchestration::RunEvent;

use super::{
    response::frames::SseFrames,
    sequencer::{ClientEvent, Call, EventSequencer},
};

/// The words of a dialect: it is given what happens, [`ClientEvent`] by beat, and writes what a client reads.
pub(crate) trait EventEncoder: Send + 'static {
    /// An event has come, whose beats are said next.
    fn hear(&mut self, _event: &RunEvent) {}

    /// Finds words for a beat.
    fn say(&mut self, beat: &ClientEvent<'_>, out: &mut SseFrames);

    /// The events before were told in an earlier response.
    fn goes_on(&mut self, _out: &mut SseFrames) {}

    /// The run waits for words about these calls, in no order, and the response ends.
    fn waits(&mut self, asked: &[&Call], out: &mut SseFrames);

    /// The response ends before the run does: the server goes down, or its store failed.
    fn breaks(&mut self, why: &str, out: &mut SseFrames);

    /// The client has the end.
    fn is_closed(&self) -> bool;

    /// The word about this call comes with another request, so that the response ends.
    fn ends_at(&self, call: &Call) -> bool;

    /// The id by which the client knows a call that it is to make.
    fn client_id(&self, call: &Call) -> String {
        call.id.clone()
    }
}

/// A run, told in a dialect.
#[derive(Debug, Default)]
pub(crate) struct SequencedEncoder<P> {
    telling: EventSequencer,
    words: P,
}

impl<P> SequencedEncoder<P> {
    pub(crate) fn new(words: P) -> Self {
        Self {
            telling: EventSequencer::default(),
            words,
        }
    }

    /// What the words know.
    pub(crate) fn into_words(self) -> P {
        self.words
    }
}

impl<P: EventEncoder> SequencedEncoder<P> {
    /// Tells an event.
    pub(crate) fn event(&mut self, event: &RunEvent, out: &mut SseFrames) {
        let Self { telling, words } = self;
        words.hear(event);
        telling.event(event, &mut |beat| words.say(&beat, out));
    }

    /// The events before were told in an earlier response.
    pub(crate) fn goes_on(&mut self, out: &mut SseFrames) {
        self.words.goes_on(out);
    }

    /// The run waits, and the response ends.
    pub(crate) fn waits(&mut self, out: &mut SseFrames) {
        let Self { telling, words } = self;
        if !words.is_closed() {
            telling.rests(&mut |beat| words.say(&beat, out));
            let asked: Vec<&Call> = telling.asked().collect();
            words.waits(&asked, out);
        }
    }

    /// The response ends before the run does.
    pub(crate) fn breaks(&mut self, why: &str, out: &mut SseFrames) {
        let Self { telling, words } = self;
        if !words.is_closed() {
            telling.rests(&mut |beat| words.say(&beat, out));
            words.breaks(why, out);
        }
    }

    /// The client has the end.
    pub(crate) fn is_closed(&self) -> bool {
        self.words.is_closed()
    }

    /// A call waits for somebody whose word comes with another request, so that the response ends.
    pub(crate) fn asks(&self) -> bool {
        self.telling.asked().any(|call| self.words.ends_at(call))
    }

    /// The calls that wait for the client: its own ids, and the run's.
    pub(crate) fn client_calls(&self) -> Vec<(String, String)> {
        let asked = self.telling.asked().filter(|call| call.is_clients());
        asked
            .map(|call| (self.words.client_id(call), call.tool_use.clone()))
            .collect()
    }
}

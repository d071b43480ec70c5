//! Encoding of run events in a protocol.

use switchboard_orchestration::RunEvent;

use super::{
    response::frames::SseFrames,
    sequencer::{Call, ClientEvent, EventSequencer},
};

/// An encoder of a protocol: it receives [`ClientEvent`]s and writes server-sent events.
pub(crate) trait EventEncoder: Send + 'static {
    /// Observes a run event before its client events are encoded.
    fn observe(&mut self, _event: &RunEvent) {}

    /// Encodes a client event.
    fn encode(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames);

    /// Continues after events that an earlier response contained.
    fn resume(&mut self, _out: &mut SseFrames) {}

    /// Ends the response because the run waits for decisions about these calls, in no order.
    fn pause(&mut self, waiting: &[&Call], out: &mut SseFrames);

    /// Ends the response before the run, because the server stops or its store failed.
    fn interrupt(&mut self, reason: &str, out: &mut SseFrames);

    /// Returns whether the response is complete.
    fn is_closed(&self) -> bool;

    /// Returns whether the decision about this call comes with another request, so that the
    /// response ends.
    fn ends_response_at(&self, call: &Call) -> bool;

    /// Returns the client's id of a call that runs at the client.
    fn client_id(&self, call: &Call) -> String {
        call.id.clone()
    }
}

/// An encoder behind an [`EventSequencer`].
#[derive(Debug, Default)]
pub(crate) struct SequencedEncoder<E> {
    sequencer: EventSequencer,
    encoder: E,
}

impl<E> SequencedEncoder<E> {
    pub(crate) fn new(encoder: E) -> Self {
        Self {
            sequencer: EventSequencer::default(),
            encoder,
        }
    }

    pub(crate) fn into_encoder(self) -> E {
        self.encoder
    }
}

impl<E: EventEncoder> SequencedEncoder<E> {
    /// Encodes a run event.
    pub(crate) fn event(&mut self, event: &RunEvent, out: &mut SseFrames) {
        let Self { sequencer, encoder } = self;
        encoder.observe(event);
        sequencer.event(event, &mut |event| encoder.encode(&event, out));
    }

    /// Continues after events that an earlier response contained.
    pub(crate) fn resume(&mut self, out: &mut SseFrames) {
        self.encoder.resume(out);
    }

    /// Ends the response because the run waits.
    pub(crate) fn pause(&mut self, out: &mut SseFrames) {
        let Self { sequencer, encoder } = self;
        if !encoder.is_closed() {
            sequencer.close_open_parts(&mut |event| encoder.encode(&event, out));
            let waiting: Vec<&Call> = sequencer.waiting_calls().collect();
            encoder.pause(&waiting, out);
        }
    }

    /// Ends the response before the run.
    pub(crate) fn interrupt(&mut self, reason: &str, out: &mut SseFrames) {
        let Self { sequencer, encoder } = self;
        if !encoder.is_closed() {
            sequencer.close_open_parts(&mut |event| encoder.encode(&event, out));
            encoder.interrupt(reason, out);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.encoder.is_closed()
    }

    /// Returns whether a call waits for a decision that comes with another request.
    pub(crate) fn needs_request(&self) -> bool {
        let mut waiting = self.sequencer.waiting_calls();
        waiting.any(|call| self.encoder.ends_response_at(call))
    }

    /// Returns the calls that wait for the client: the client's id and the run's id of each.
    pub(crate) fn client_calls(&self) -> Vec<(String, String)> {
        let waiting = self.sequencer.waiting_calls();
        waiting
            .filter(|call| call.is_client_tool())
            .map(|call| (self.encoder.client_id(call), call.tool_use_id.clone()))
            .collect()
    }
}

//! Encoding of run events in a protocol.

use switchboard_orchestration::RunEvent;

use super::{
    response::frames::SseFrames,
    sequencer::{Call, ClientEvent, EventSequencer},
    tools::client_tools::call_id,
};

/// An encoder of a protocol: it receives [`ClientEvent`]s and writes server-sent events.
pub(crate) trait EventEncoder: Send + 'static {
    /// Whether the runs belong to a session. Every decision about their calls comes with another
    /// request. Decisions of other runs come through `POST /runs/{id}/approvals/{call}`, except for
    /// results of client tools.
    const IS_DURABLE: bool = false;

    /// Observes a run event before its client events are encoded.
    fn observe(&mut self, _event: &RunEvent) {}

    /// Encodes a client event.
    fn encode(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames);

    /// Continues after events that an earlier response contained.
    fn resume(&mut self, _out: &mut SseFrames) {}

    /// Ends the response because the run waits for decisions about these calls.
    fn pause(&mut self, waiting: &[&Call], out: &mut SseFrames);

    /// Ends the response before the run, because the server stops or its store failed.
    fn interrupt(&mut self, reason: &str, out: &mut SseFrames);
}

/// An encoder behind an [`EventSequencer`].
#[derive(Debug)]
pub(crate) struct SequencedEncoder<E> {
    sequencer: EventSequencer,
    pub(crate) encoder: E,
    run: String,
    /// Whether the response ended before the run.
    is_paused: bool,
}

impl<E: EventEncoder> SequencedEncoder<E> {
    pub(crate) fn new(encoder: E) -> Self {
        Self {
            sequencer: EventSequencer::default(),
            encoder,
            run: String::new(),
            is_paused: false,
        }
    }

    /// Encodes a run event.
    pub(crate) fn event(&mut self, event: &RunEvent, out: &mut SseFrames) {
        if self.run.is_empty() {
            self.run = event.run_id.to_string();
        }
        self.encoder.observe(event);
        let encoder = &mut self.encoder;
        let mut emit = |event: ClientEvent<'_>| encoder.encode(&event, out);
        self.sequencer.event(event, &mut emit);
    }

    /// Continues after events that an earlier response contained.
    pub(crate) fn resume(&mut self, out: &mut SseFrames) {
        self.is_paused = false;
        self.encoder.resume(out);
    }

    /// Ends the response because the run waits.
    pub(crate) fn pause(&mut self, out: &mut SseFrames) {
        if self.close(out) {
            let waiting: Vec<&Call> = self.sequencer.waiting_calls().collect();
            self.encoder.pause(&waiting, out);
        }
    }

    /// Ends the response before the run.
    pub(crate) fn interrupt(&mut self, reason: &str, out: &mut SseFrames) {
        if self.close(out) {
            self.encoder.interrupt(reason, out);
        }
    }

    /// Closes open parts. Returns `false` if the response is already complete.
    fn close(&mut self, out: &mut SseFrames) -> bool {
        if self.is_closed() {
            return false;
        }
        self.is_paused = true;
        let encoder = &mut self.encoder;
        let mut emit = |event: ClientEvent<'_>| encoder.encode(&event, out);
        self.sequencer.close_open_parts(&mut emit);
        true
    }

    /// Returns whether the response is complete.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_paused || self.sequencer.is_finished()
    }

    /// Returns whether a call waits for a decision that comes with another request.
    pub(crate) fn needs_request(&self) -> bool {
        let mut waiting = self.sequencer.waiting_calls();
        waiting.any(|call| E::IS_DURABLE || call.is_client_tool())
    }

    /// Returns the calls that wait for the client: the client's id and the run's id of each.
    pub(crate) fn client_calls(&self) -> Vec<(String, String)> {
        let waiting = self.sequencer.waiting_calls();
        waiting
            .filter(|call| call.is_client_tool())
            .map(|call| {
                let id = if E::IS_DURABLE {
                    call.id.clone()
                } else {
                    call_id(&self.run, &call.tool_use_id)
                };
                (id, call.tool_use_id.clone())
            })
            .collect()
    }
}

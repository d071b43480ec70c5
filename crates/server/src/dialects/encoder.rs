//! Encodes run events as server-sent events of a client protocol.

use switchboard_orchestration::RunEvent;

use super::{
    response::frames::SseFrames,
    sequencer::{ClientEvent, EventSequencer, ToolCallView},
    tools::client_tools::build_client_call_id,
};

/// An encoder for one client protocol. It converts [`ClientEvent`]s to server-sent events.
pub(crate) trait EventEncoder: Send + 'static {
    /// Whether runs of this protocol belong to a session. If so, every approval decision comes with
    /// another request of the protocol. Otherwise decisions come through `POST
    /// /runs/{id}/approvals/{call}`, except for results of client tools.
    const IS_DURABLE: bool = false;

    /// Observes a run event before its client events are encoded.
    fn observe_event(&mut self, _event: &RunEvent) {}

    /// Encodes a client event.
    fn encode_event(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames);

    /// Starts the response of a run whose earlier events were in an earlier response.
    fn encode_resume(&mut self, _out: &mut SseFrames) {}

    /// Ends the response because the run waits for decisions about the calls in `waiting`.
    fn encode_pause(&mut self, waiting: &[&ToolCallView], out: &mut SseFrames);

    /// Ends the response before the run has finished, because the server stops or its store failed.
    fn encode_interruption(&mut self, reason: &str, out: &mut SseFrames);
}

/// An encoder that receives its events from an [`EventSequencer`].
#[derive(Debug)]
pub(crate) struct SequencedEncoder<E> {
    sequencer: EventSequencer,
    pub(crate) encoder: E,
    run: String,
    /// Whether the response ended before the run finished.
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

    /// Passes a run event through the sequencer and encodes the resulting client events.
    pub(crate) fn encode_event(&mut self, event: &RunEvent, out: &mut SseFrames) {
        if self.run.is_empty() {
            self.run = event.run_id.to_string();
        }
        self.encoder.observe_event(event);
        let encoder = &mut self.encoder;
        let mut emit = |event: ClientEvent<'_>| encoder.encode_event(&event, out);
        self.sequencer.process_event(event, &mut emit);
    }

    /// Starts the response of a run whose earlier events were in an earlier response.
    pub(crate) fn encode_resume(&mut self, out: &mut SseFrames) {
        self.is_paused = false;
        self.encoder.encode_resume(out);
    }

    /// Ends the response because the run waits for decisions about calls.
    pub(crate) fn encode_pause(&mut self, out: &mut SseFrames) {
        if self.close_response(out) {
            let waiting: Vec<&ToolCallView> = self.sequencer.waiting_calls().collect();
            self.encoder.encode_pause(&waiting, out);
        }
    }

    /// Ends the response before the run has finished. `reason` is the message for the client.
    pub(crate) fn encode_interruption(&mut self, reason: &str, out: &mut SseFrames) {
        if self.close_response(out) {
            self.encoder.encode_interruption(reason, out);
        }
    }

    /// Closes open parts of the response. Returns `false` if the response is already complete.
    fn close_response(&mut self, out: &mut SseFrames) -> bool {
        if self.is_closed() {
            return false;
        }
        self.is_paused = true;
        let encoder = &mut self.encoder;
        let mut emit = |event: ClientEvent<'_>| encoder.encode_event(&event, out);
        self.sequencer.close_open_parts(&mut emit);
        true
    }

    /// Returns whether the response is complete: its run has finished or waits.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_paused || self.sequencer.is_finished()
    }

    /// Returns whether a call waits for a decision or result that must come with another request.
    pub(crate) fn needs_next_request(&self) -> bool {
        let mut waiting = self.sequencer.waiting_calls();
        waiting.any(|call| E::IS_DURABLE || call.is_client_tool())
    }

    /// Returns the waiting calls of client tools, as pairs of the client's call id and the run's
    /// call id.
    pub(crate) fn waiting_client_calls(&self) -> Vec<(String, String)> {
        let waiting = self.sequencer.waiting_calls();
        waiting
            .filter(|call| call.is_client_tool())
            .map(|call| {
                let id = if E::IS_DURABLE {
                    call.id.clone()
                } else {
                    build_client_call_id(&self.run, &call.tool_use_id)
                };
                (id, call.tool_use_id.clone())
            })
            .collect()
    }
}

//! Encodes run events as server-sent events of a client protocol, such as AG-UI.

use switchboard_orchestration::RunEvent;

use super::{
    event_sequencer::{ClientEvent, EventSequencer, ToolCallView},
    response::sse_frames::SseFrames,
    tools::client_tools::build_client_call_id,
};

/// An encoder for one client protocol. It converts [`ClientEvent`]s to server-sent events.
pub(crate) trait EventEncoder: Send + 'static {
    /// Whether runs of this protocol are durable and belong to a session. If so, clients send
    /// approval decisions in their next request of this protocol. Otherwise, approval decisions
    /// arrive at `POST /runs/{id}/approvals/{call}`.
    const IS_DURABLE: bool = false;

    /// Receives a run event before the client events that result from it are encoded.
    fn observe_event(&mut self, _event: &RunEvent) {}

    /// Appends the encoding of a client event to `out`.
    fn encode_event(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames);

    /// Appends the start of a response that continues a run whose earlier events were in another
    /// response.
    fn encode_run_resume(&mut self, _out: &mut SseFrames) {}

    /// Appends the end of a response that ends because the run waits. `waiting` are the tool calls
    /// that need an approval decision, or a result from the client.
    fn encode_run_pause(&mut self, waiting: &[&ToolCallView], out: &mut SseFrames);

    /// Appends the end of a response that ends before the run has finished, because the server
    /// stops or its store failed. `reason` is the error message for the client.
    fn encode_run_interruption(&mut self, reason: &str, out: &mut SseFrames);
}

/// An encoder of a client protocol, and the [`EventSequencer`] that orders its events.
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
        self.sequencer.handle_event(event, &mut emit);
    }

    /// Appends the start of a response that continues a run whose earlier events were in another
    /// response.
    pub(crate) fn encode_run_resume(&mut self, out: &mut SseFrames) {
        self.is_paused = false;
        self.encoder.encode_run_resume(out);
    }

    /// Ends the response because the run waits for approval decisions, or for results of client
    /// tools. Does nothing if the response is already complete.
    pub(crate) fn encode_run_pause(&mut self, out: &mut SseFrames) {
        if self.close_response(out) {
            let waiting: Vec<&ToolCallView> = self.sequencer.waiting_tool_calls().collect();
            self.encoder.encode_run_pause(&waiting, out);
        }
    }

    /// Ends the response before the run has finished. `reason` is the error message for the client.
    /// Does nothing if the response is already complete.
    pub(crate) fn encode_run_interruption(&mut self, reason: &str, out: &mut SseFrames) {
        if self.close_response(out) {
            self.encoder.encode_run_interruption(reason, out);
        }
    }

    /// Ends the answer part and the step that are still open. Returns `false` if the response is
    /// already complete.
    fn close_response(&mut self, out: &mut SseFrames) -> bool {
        if self.is_closed() {
            return false;
        }
        self.is_paused = true;
        let encoder = &mut self.encoder;
        let mut emit = |event: ClientEvent<'_>| encoder.encode_event(&event, out);
        self.sequencer.emit_closing_events(&mut emit);
        true
    }

    /// Returns whether the response is complete: its run has finished, waits, or was interrupted.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_paused || self.sequencer.is_finished()
    }

    /// Returns whether a tool call waits for an approval decision or a result that the client sends
    /// in its next request.
    pub(crate) fn waits_for_client_request(&self) -> bool {
        let mut waiting = self.sequencer.waiting_tool_calls();
        waiting.any(|call| E::IS_DURABLE || call.is_client_tool())
    }

    /// Returns the client tool calls that wait for a result, as pairs of the client's call id and
    /// the run's call id.
    pub(crate) fn waiting_client_calls(&self) -> Vec<(String, String)> {
        let waiting = self.sequencer.waiting_tool_calls();
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

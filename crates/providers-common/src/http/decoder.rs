//! The seam between a wire's own events and the domain's.

use switchboard_domain::{ModelError, ModelEvent};

/// A provider's stream state machine: wire frames in, domain events out, no I/O inside.
///
/// It says [`ModelEvent::Finished`] when the wire is done: what comes later is not waited for.
///
/// It holds what the wire's grammar needs (which index is open, what was said before), never the
/// assembled content: that is the accumulator's.
pub trait WireDecoder: Send {
    /// Takes one frame and appends what it means to `events`.
    ///
    /// `name` is the SSE event name (empty where the wire has none, and for NDJSON), `data` the
    /// payload. An in-band error of the provider is an `Err`; nothing is fed after it.
    fn frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError>;

    /// The transport ended. Appends what was held back, or fails with
    /// [`ModelErrorKind::Interrupted`](switchboard_domain::ModelErrorKind::Interrupted) if the wire
    /// had not said that it was done.
    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError>;
}

//! Conversion of the frames of a streamed answer into domain events.

use switchboard_domain::{ModelError, ModelEvent};

/// A state machine that converts the frames of one answer into domain events. It does no I/O.
///
/// It emits [`ModelEvent::Finished`] when the answer is complete. The stream then does not wait for
/// further frames. The state machine stores only protocol state, such as the parts that have not
/// ended. [`ResponseAccumulator`](switchboard_domain::ResponseAccumulator) assembles the content.
pub trait WireDecoder: Send {
    /// Converts one frame into domain events and appends them to `events`.
    ///
    /// `name` is the name of an SSE event. It is empty for an event without a name and for a JSON
    /// line. `data` is the content of the frame. If the provider reports an error in the frame,
    /// this error is returned, and no further frame is decoded.
    fn decode_frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError>;

    /// Returns whether the last frame left the decoder's state unchanged. The next frames are then
    /// converted without the decoder if they differ from that frame only in their text. Used only
    /// after a frame whose only event was a text or reasoning delta. Default: `false`.
    fn is_decoder_state_unchanged(&self) -> bool {
        false
    }

    /// Ends the answer after the last frame. Appends the remaining events, or fails with
    /// [`ModelErrorKind::Interrupted`](switchboard_domain::ModelErrorKind::Interrupted) if the
    /// answer is incomplete.
    fn finish_decoding(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Emits text and tool inputs that the decoder still buffers. It is called when the answer is
    /// interrupted, so that the report of the run contains them. Default: nothing is buffered.
    fn emit_buffered_output(&mut self, _events: &mut Vec<ModelEvent>) {}
}

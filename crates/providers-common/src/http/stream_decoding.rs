//! Conversion of a response body into a stream of model events.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use switchboard_domain::{
    ChatResponse, EventOrderChecker, GrammarViolation, ModelError, ModelEvent, ModelStream,
    ResponseAccumulator,
};

use crate::{
    ByteStream, MAX_FRAME_BYTES, ResponseErrorContext, WireDecoder,
    http::{
        byte_stream::{FrameReader, FrameStream},
        ndjson::LineReader,
        sse::SseReader,
        text_fast_path::TextDeltaFastPath,
    },
};

/// Decodes a response body of server-sent events from `provider` into model events.
///
/// - If the body ends without [`ModelEvent::Finished`], the stream fails with
///   [`ModelErrorKind::Interrupted`](switchboard_domain::ModelErrorKind), also if the decoder
///   returns no error.
/// - The events before an error are emitted first. The stream ends after an error.
/// - After `Finished` the stream does not wait: frames that have arrived are decoded, an open
///   connection is dropped, and errors are ignored.
/// - Text deltas of frames that arrived together become one event.
/// - Every event is checked against the event grammar. The first invalid event ends the stream with
///   an error.
pub fn decode_sse(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let frames = FrameStream::new(body, SseReader::new(provider, MAX_FRAME_BYTES));
    decode_frames(provider, None, frames, decoder)
}

/// Decodes server-sent events like [`decode_sse`]. `context` adds the HTTP status and the request
/// id to errors, and redacts the secrets of the request in them.
pub fn decode_sse_with_context(
    context: ResponseErrorContext,
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let frames = FrameStream::new(body, SseReader::new(provider, MAX_FRAME_BYTES));
    decode_frames(provider, Some(context), frames, decoder)
}

/// Decodes a response body of JSON lines into model events, with the rules of [`decode_sse`]. The
/// decoder receives each line as a frame without a name.
pub fn decode_ndjson(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let frames = FrameStream::new(body, LineReader::new(provider, MAX_FRAME_BYTES));
    decode_frames(provider, None, frames, decoder)
}

/// Assembles the events of one answer of `provider` into a response.
///
/// Fails with [`ModelError::from_violation`] if the events are not in a valid order, for example if
/// `Finished` is missing.
pub fn assemble_response(
    provider: &str,
    events: &[ModelEvent],
) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    let end = events.iter().try_for_each(|event| answer.push(event));
    end.and_then(|()| answer.finish())
        .map_err(|fault| ModelError::from_violation(provider, fault))
}

/// Stream of the model events of an answer. It implements `poll_next` itself, because
/// `stream::unfold` would move the whole state for every token.
struct DecodedEvents<R, D> {
    provider: String,
    /// Context that adds the HTTP status and the request id to errors. `None` if the caller of
    /// [`decode_frames`] adds them.
    context: Option<ResponseErrorContext>,
    frames: FrameStream<R>,
    decoder: D,
    repeated_text: TextDeltaFastPath,
    grammar: EventOrderChecker,
    /// Buffer for the events that the decoder appends while it converts one frame.
    decoded: Vec<ModelEvent>,
    /// Decoded events that are not emitted yet.
    events: VecDeque<ModelEvent>,
    /// Error that ends the stream after all of `events` were emitted. Discarded if `events` contain
    /// `Finished`, because the answer is then complete.
    error: Option<ModelError>,
    /// Whether decoding has ended, so that no further frame is read.
    has_ended: bool,
}

/// No field is pinned in place, so the stream can move after it was polled.
impl<R, D> Unpin for DecodedEvents<R, D> {}

fn decode_frames(
    provider: &str,
    context: Option<ResponseErrorContext>,
    frames: FrameStream<impl FrameReader + 'static>,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    Box::pin(DecodedEvents {
        provider: provider.to_owned(),
        context,
        frames,
        decoder,
        repeated_text: TextDeltaFastPath::default(),
        grammar: EventOrderChecker::default(),
        decoded: Vec::new(),
        events: VecDeque::new(),
        error: None,
        has_ended: false,
    })
}

impl<R: FrameReader, D: WireDecoder> DecodedEvents<R, D> {
    /// Ends the decoding and closes the connection.
    fn end_stream(&mut self) {
        self.has_ended = true;
        self.frames.close_connection();
    }

    /// Processes the result of reading a frame: `Ok(true)` is a frame to decode, `Ok(false)` is the
    /// end of the body, and an error ends the stream. Only the first error is reported, because
    /// later errors are its consequences.
    fn handle_frame_result(&mut self, frame: Result<bool, ModelError>) {
        let is_frame = matches!(frame, Ok(true));
        let result = match frame {
            Ok(true) => self.decode_frame(),
            Ok(false) => self.decoder.finish_decoding(&mut self.decoded),
            Err(error) => Err(error),
        };
        if result.is_err() {
            self.decoder.emit_buffered_output(&mut self.decoded);
        }
        for event in self.decoded.drain(..) {
            let rest = match self.events.back_mut() {
                Some(last) => last.append_delta(event),
                None => Some(event),
            };
            self.events.extend(rest);
        }
        if !is_frame || result.is_err() {
            self.end_stream();
            let incomplete =
                || ModelError::from_violation(&self.provider, GrammarViolation::NoFinish);
            self.error = Some(result.err().unwrap_or_else(incomplete));
        }
    }

    fn decode_frame(&mut self) -> Result<(), ModelError> {
        let (name, data) = self.frames.current_frame();
        if let Some(event) = self.repeated_text.read_frame(name, data) {
            self.decoded.push(event);
            return Ok(());
        }
        let result = self.decoder.decode_frame(name, data, &mut self.decoded);
        let can_repeat = result.is_ok() && self.decoder.is_decoder_state_unchanged();
        let events: &[_] = if can_repeat { &self.decoded } else { &[] };
        self.repeated_text.set_decoded_frame(name, data, events);
        result
    }

    /// Returns the next decoded event. After the last event, returns the error that ended the
    /// stream, if there is one. An event that [`EventOrderChecker`] does not allow at this point is
    /// a bug in the adapter: the violation is always returned as an error and ends the stream.
    fn next_event(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let error = match self.events.pop_front() {
            Some(event) => match self.grammar.check_event(&event) {
                Ok(()) => return Some(Ok(event)),
                Err(fault) => {
                    self.end_stream();
                    self.events.clear();
                    self.error = None;
                    ModelError::from_violation(&self.provider, fault)
                }
            },
            None => self.error.take().filter(|_| !self.grammar.is_finished())?,
        };
        Some(Err(match &self.context {
            Some(context) => context.add_context_to_error(error),
            None => error,
        }))
    }
}

impl<R: FrameReader, D: WireDecoder> Stream for DecodedEvents<R, D> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.next_event() {
                return Poll::Ready(Some(event));
            }
            if this.has_ended {
                return Poll::Ready(None);
            }
            let frame = match this.frames.poll_next_frame(context) {
                Poll::Ready(frame) => frame,
                // After the end of the answer, the stream does not wait for further frames.
                Poll::Pending if this.grammar.is_finished() => Ok(false),
                Poll::Pending => return Poll::Pending,
            };
            this.handle_frame_result(frame);
            // Frames that have already arrived are decoded together, so that their text becomes one
            // event.
            while !this.has_ended {
                match this.frames.read_buffered_frame() {
                    Ok(false) => break,
                    frame => this.handle_frame_result(frame),
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "stream_decoding_tests.rs"]
mod tests;

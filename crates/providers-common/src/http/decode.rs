//! Conversion of a response body into a stream of model events.

use std::pin::Pin;

use futures_core::Stream;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use switchboard_domain::{
    ChatResponse, EventGrammar, GrammarViolation, ModelError, ModelEvent, ModelStream,
    ResponseAccumulator,
};

use crate::{
    AnswerContext, ByteStream, MAX_FRAME_BYTES, WireDecoder,
    http::{
        ndjson,
        sse::{self, SseFrame},
    },
};

/// Decodes a body of server-sent events of `provider`.
///
/// - If the body ends without [`ModelEvent::Finished`], the stream fails with
///   [`ModelErrorKind::Interrupted`](switchboard_domain::ModelErrorKind), also if the decoder
///   returns no error.
/// - The events before an error are emitted first. The stream ends after an error.
/// - After `Finished` the stream does not wait: frames that have arrived are decoded, an open
///   connection is dropped, and errors are ignored.
/// - Every event is checked against the event grammar. The first invalid event ends the stream with
///   an error.
pub fn decode_sse(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let frames = sse::split_sse_frames(provider, body, MAX_FRAME_BYTES);
    decode_frames(provider, Box::pin(frames), decoder)
}

/// Decodes server-sent events like [`decode_sse`]. `context` adds status and request id to errors.
pub fn decode_sse_with_context(
    context: AnswerContext,
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let events = decode_sse(provider, body, decoder);
    Box::pin(events.map_err(move |error| context.complete_error(error)))
}

/// Decodes a response body of JSON lines. The rules are those of [`decode_sse`]. Frames have no
/// name.
pub fn decode_ndjson(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let lines = ndjson::split_lines(provider, body, MAX_FRAME_BYTES);
    let frames = lines.map_ok(|data| {
        let name = String::new();
        SseFrame { name, data }
    });
    decode_frames(provider, Box::pin(frames), decoder)
}

/// Assembles the events of one answer of `provider` into a response.
///
/// Fails with [`ModelError::from_grammar_violation`] if the events violate the grammar or are incomplete.
pub fn assemble_response(
    provider: &str,
    events: &[ModelEvent],
) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    let end = events.iter().try_for_each(|event| answer.push(event));
    end.and_then(|()| answer.finish())
        .map_err(|fault| ModelError::from_grammar_violation(provider, fault))
}

/// Stream of the frames of an answer. JSON lines are frames with an empty name.
type Frames = Pin<Box<dyn Stream<Item = Result<SseFrame, ModelError>> + Send>>;

struct Decoding<D> {
    provider: String,
    /// Frames that are not decoded yet. `None` after the end of the answer.
    frames: Option<Frames>,
    decoder: D,
    grammar: EventGrammar,
}

fn decode_frames(
    provider: &str,
    frames: Frames,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let decoding = Decoding {
        provider: provider.to_owned(),
        frames: Some(frames),
        decoder,
        grammar: EventGrammar::default(),
    };
    let batches = stream::unfold(decoding, |mut decoding| async move {
        let items = decoding.next_items().await?;
        Some((stream::iter(items), decoding))
    });
    Box::pin(batches.flatten().fuse())
}

impl<D: WireDecoder> Decoding<D> {
    /// Decodes the next frame or the end of the answer. Only the first error is reported, because
    /// later errors are its consequences. A grammar violation is a fault of the adapter and always
    /// reported.
    async fn next_items(&mut self) -> Option<Vec<Result<ModelEvent, ModelError>>> {
        let frames = self.frames.as_mut()?;
        let frame = if self.grammar.is_finished() {
            frames.next().now_or_never().flatten()
        } else {
            frames.next().await
        };
        let is_end = frame.is_none();
        let mut events = Vec::new();
        let result = match frame {
            Some(Ok(frame)) => self
                .decoder
                .decode_frame(&frame.name, &frame.data, &mut events),
            Some(Err(error)) => Err(error),
            None => self.decoder.finish_decoding(&mut events),
        };
        if is_end || result.is_err() {
            self.frames = None;
        }
        let mut items = Vec::with_capacity(events.len());
        for event in events {
            if let Err(fault) = self.grammar.check_event(&event) {
                self.frames = None;
                items.push(Err(ModelError::from_grammar_violation(
                    &self.provider,
                    fault,
                )));
                return Some(items);
            }
            items.push(Ok(event));
        }
        if !self.grammar.is_finished() {
            let incomplete =
                || ModelError::from_grammar_violation(&self.provider, GrammarViolation::NoFinish);
            let error = result.err().or_else(|| is_end.then(incomplete));
            items.extend(error.map(Err));
        }
        Some(items)
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

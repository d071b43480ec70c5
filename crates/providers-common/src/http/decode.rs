//! Conversion of a body into a model's stream.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_util::TryStreamExt as _;
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
    let frames = sse::frames(provider, body, MAX_FRAME_BYTES);
    Box::pin(Decoding::new(provider, Box::pin(frames), decoder))
}

/// As [`decode_sse`], with errors completed by [`AnswerContext::apply`].
pub fn decode_sse_of(
    context: AnswerContext,
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    with_context(context, decode_sse(provider, body, decoder))
}

/// Decodes a body of JSON lines of `provider`. As [`decode_sse`], with frames without a name.
pub fn decode_ndjson(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let lines = ndjson::lines(provider, body, MAX_FRAME_BYTES);
    let frames = lines.map_ok(|data| {
        let name = String::new();
        SseFrame { name, data }
    });
    Box::pin(Decoding::new(provider, Box::pin(frames), decoder))
}

/// As [`decode_ndjson`], with errors completed by [`AnswerContext::apply`].
pub fn decode_ndjson_of(
    context: AnswerContext,
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    with_context(context, decode_ndjson(provider, body, decoder))
}

fn with_context(context: AnswerContext, events: ModelStream) -> ModelStream {
    Box::pin(events.map_err(move |error| context.apply(error)))
}

/// Assembles the response of events of `provider`.
///
/// Fails with [`ModelError::from_grammar`] if they violate the grammar or are incomplete.
pub fn assembled(provider: &str, events: &[ModelEvent]) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    let end = events.iter().try_for_each(|event| answer.push(event));
    end.and_then(|()| answer.finish())
        .map_err(|fault| ModelError::from_grammar(provider, fault))
}

/// The source of frames. Frames without a name have an empty one.
type Frames = Pin<Box<dyn Stream<Item = Result<SseFrame, ModelError>> + Send>>;

struct Decoding<D> {
    provider: String,
    /// `None` after the end.
    frames: Option<Frames>,
    decoder: D,
    /// The decoded events, the last first.
    decoded: Vec<ModelEvent>,
    /// The error that follows the events.
    failure: Option<ModelError>,
    grammar: EventGrammar,
}

/// No field is pinned.
impl<D> Unpin for Decoding<D> {}

impl<D: WireDecoder> Stream for Decoding<D> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.decoded.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(failure) = this.failure.take() {
                return Poll::Ready(Some(Err(failure)));
            }
            let Some(frames) = &mut this.frames else {
                return Poll::Ready(None);
            };
            let next = match frames.as_mut().poll_next(context) {
                Poll::Pending if this.grammar.is_finished() => None,
                other => ready!(other),
            };
            let (decoder, events) = (&mut this.decoder, &mut this.decoded);
            let next = next.map(|frame| {
                frame.and_then(|frame| decoder.frame(&frame.name, &frame.data, events))
            });
            if let Some(result) = next {
                this.accept(result);
            } else {
                this.frames = None;
                let result = this.decoder.end(&mut this.decoded);
                this.accept(result);
                this.close();
            }
        }
    }
}

impl<D: WireDecoder> Decoding<D> {
    fn new(provider: &str, frames: Frames, decoder: D) -> Self {
        Self {
            provider: provider.to_owned(),
            frames: Some(frames),
            decoder,
            decoded: Vec::new(),
            failure: None,
            grammar: EventGrammar::default(),
        }
    }

    /// Checks the decoded events and stores the first error. Later errors are its consequences.
    fn accept(&mut self, result: Result<(), ModelError>) {
        let mut fault = None;
        let allowed = self.decoded.iter().position(|event| {
            fault = self.grammar.check(event).err();
            fault.is_some()
        });
        if let Some(fault) = fault {
            // A grammar violation is a fault of the adapter and always reported.
            self.decoded.truncate(allowed.unwrap_or_default());
            self.failure = Some(ModelError::from_grammar(&self.provider, fault));
        }
        self.decoded.reverse();
        if self.failure.is_some() || result.is_err() {
            self.frames = None;
        }
        if let Err(error) = result
            && !self.grammar.is_finished()
        {
            self.failure.get_or_insert(error);
        }
    }

    /// Fails if the answer is incomplete.
    fn close(&mut self) {
        if self.failure.is_none() && !self.grammar.is_finished() {
            let fault = GrammarViolation::NoFinish;
            self.failure = Some(ModelError::from_grammar(&self.provider, fault));
        }
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

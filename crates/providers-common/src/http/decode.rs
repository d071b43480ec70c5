//! A body and a decoder make a model's stream.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use switchboard_domain::{
    ChatResponse, EventGrammar, GrammarViolation, ModelError, ModelEvent, ModelStream,
    ResponseAccumulator,
};

use crate::{
    AnswerContext, ByteStream, MAX_FRAME_BYTES, WireDecoder, http::ndjson, http::sse,
    http::sse::SseFrames,
};

/// The events that `decoder` makes of a body of server-sent events of `provider`.
///
/// - When the body ends the decoder is told. If [`ModelEvent::Finished`] has not come by then, the
///   stream fails with [`ModelErrorKind::Interrupted`](switchboard_domain::ModelErrorKind), even if
///   the decoder has no objection: it never ends quietly in the middle of an answer.
/// - An error comes after the events that were made before it. After it nothing follows.
/// - Once `Finished` is out, the stream no longer waits: what is there at once is still decoded, a
///   connection that stays open is dropped, and neither one that breaks nor a frame that cannot be
///   decoded takes the answer back.
/// - Every event is checked against the grammar where it is made, so that an adapter's fault shows
///   with its cause and not in some consumer. The event at fault and what follows are not given out.
pub fn decode_sse(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    Box::pin(Decoding::of_sse(provider, body, decoder))
}

/// The same for the body of an answer: an error is told as [`AnswerContext::apply`] says.
pub fn decode_sse_of(
    context: AnswerContext,
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let decoding = Decoding::of_sse(provider, body, decoder);
    Box::pin(decoding.within(context))
}

/// The events that `decoder` makes of a body of JSON lines of `provider`. As [`decode_sse`]; frames
/// have no name.
pub fn decode_ndjson(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    Box::pin(Decoding::of_ndjson(provider, body, decoder))
}

/// The same for the body of an answer: an error is told as [`AnswerContext::apply`] says.
pub fn decode_ndjson_of(
    context: AnswerContext,
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let decoding = Decoding::of_ndjson(provider, body, decoder);
    Box::pin(decoding.within(context))
}

/// What events of `provider` add up to.
///
/// Fails with [`ModelError::from_grammar`] if they break the grammar, or do not come to an end.
pub fn assembled(provider: &str, events: &[ModelEvent]) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    let end = events.iter().try_for_each(|event| answer.push(event));
    end.and_then(|()| answer.finish())
        .map_err(|fault| ModelError::from_grammar(provider, fault))
}

/// Where frames come from.
enum Frames {
    Sse(SseFrames),
    Lines(Pin<Box<dyn Stream<Item = Result<String, ModelError>> + Send>>),
}

struct Decoding<D> {
    provider: String,
    /// Which answer it is.
    context: Option<AnswerContext>,
    /// `None` when there will be no more.
    frames: Option<Frames>,
    decoder: D,
    /// What is next to be given out, the last first: what a frame comes to is mostly one event.
    made: Vec<ModelEvent>,
    /// Comes after that.
    failure: Option<ModelError>,
    grammar: EventGrammar,
}

/// Nothing in it is pinned.
impl<D> Unpin for Decoding<D> {}

impl<D: WireDecoder> Stream for Decoding<D> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.made.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(failure) = this.failure.take() {
                let failure = match &this.context {
                    Some(context) => context.apply(failure),
                    None => failure,
                };
                return Poll::Ready(Some(Err(failure)));
            }
            let Some(frames) = &mut this.frames else {
                return Poll::Ready(None);
            };
            let (decoder, made) = (&mut this.decoder, &mut this.made);
            let next = match frames {
                Frames::Sse(frames) => frames.poll_frame(context).map(|next| {
                    next.map(|frame| {
                        frame.and_then(|frame| decoder.frame(&frame.name, &frame.data, made))
                    })
                }),
                Frames::Lines(lines) => lines.as_mut().poll_next(context).map(|next| {
                    next.map(|line| line.and_then(|line| decoder.frame("", &line, made)))
                }),
            };
            let next = match next {
                Poll::Pending if this.grammar.is_finished() => None,
                other => ready!(other),
            };
            if let Some(result) = next {
                this.take(result);
            } else {
                this.frames = None;
                let result = this.decoder.end(&mut this.made);
                this.take(result);
                this.close();
            }
        }
    }
}

impl<D: WireDecoder> Decoding<D> {
    fn of_sse(provider: &str, body: ByteStream, decoder: D) -> Self {
        let frames = sse::frames(provider, body, MAX_FRAME_BYTES);
        Self::new(provider, Frames::Sse(frames), decoder)
    }

    fn of_ndjson(provider: &str, body: ByteStream, decoder: D) -> Self {
        let lines = ndjson::lines(provider, body, MAX_FRAME_BYTES);
        Self::new(provider, Frames::Lines(Box::pin(lines)), decoder)
    }

    fn new(provider: &str, frames: Frames, decoder: D) -> Self {
        Self {
            provider: provider.to_owned(),
            context: None,
            frames: Some(frames),
            decoder,
            made: Vec::new(),
            failure: None,
            grammar: EventGrammar::default(),
        }
    }

    /// Says which answer it is.
    fn within(self, context: AnswerContext) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }

    /// Takes what was just made, and how it went. The first thing that goes wrong is what went wrong; later
    /// ones are its consequences.
    fn take(&mut self, result: Result<(), ModelError>) {
        let mut fault = None;
        let allowed = self.made.iter().position(|event| {
            fault = self.grammar.check(event).err();
            fault.is_some()
        });
        if let Some(fault) = fault {
            // An adapter's own fault is told in any case.
            self.made.truncate(allowed.unwrap_or_default());
            self.failure = Some(ModelError::from_grammar(&self.provider, fault));
        }
        self.made.reverse();
        if self.failure.is_some() || result.is_err() {
            self.frames = None;
        }
        if let Err(error) = result
            && !self.grammar.is_finished()
        {
            self.failure.get_or_insert(error);
        }
    }

    /// Makes sure that the end is one.
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

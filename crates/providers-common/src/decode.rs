//! A body and a decoder make a model's stream.

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

use crate::{ByteStream, MAX_FRAME_BYTES, WireDecoder, ndjson, sse, sse::SseFrame};

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
    let frames = sse::frames(provider, body, MAX_FRAME_BYTES);
    decode(provider, Box::pin(frames), decoder)
}

/// The events that `decoder` makes of a body of JSON lines of `provider`. As [`decode_sse`]; frames
/// have no name.
pub fn decode_ndjson(
    provider: &str,
    body: ByteStream,
    decoder: impl WireDecoder + 'static,
) -> ModelStream {
    let frames = ndjson::lines(provider, body, MAX_FRAME_BYTES).map_ok(|data| SseFrame {
        name: String::new(),
        data,
    });
    decode(provider, Box::pin(frames), decoder)
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

type Frames = Pin<Box<dyn Stream<Item = Result<SseFrame, ModelError>> + Send>>;

fn decode(provider: &str, frames: Frames, decoder: impl WireDecoder + 'static) -> ModelStream {
    Box::pin(Decoding {
        provider: provider.to_owned(),
        frames: Some(frames),
        decoder: Box::new(decoder),
        made: Vec::new(),
        failure: None,
        grammar: EventGrammar::default(),
    })
}

struct Decoding {
    provider: String,
    /// `None` when there will be no more.
    frames: Option<Frames>,
    decoder: Box<dyn WireDecoder>,
    /// What is next to be given out, the last first: what a frame comes to is mostly one event.
    made: Vec<ModelEvent>,
    /// Comes after that.
    failure: Option<ModelError>,
    grammar: EventGrammar,
}

impl Stream for Decoding {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.made.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(failure) = this.failure.take() {
                return Poll::Ready(Some(Err(failure)));
            }
            let Some(frames) = &mut this.frames else {
                return Poll::Ready(None);
            };
            let finished = this.grammar.is_finished();
            let next = match frames.as_mut().poll_next(context) {
                Poll::Pending if finished => None,
                other => ready!(other),
            };
            match next {
                Some(Ok(SseFrame { name, data })) => {
                    let result = this.decoder.frame(&name, &data, &mut this.made);
                    this.take(result);
                }
                Some(Err(error)) => this.take(Err(error)),
                None => {
                    this.frames = None;
                    let result = this.decoder.end(&mut this.made);
                    this.take(result);
                    this.close();
                }
            }
        }
    }
}

impl Decoding {
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

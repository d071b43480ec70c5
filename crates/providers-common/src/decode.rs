//! A body and a decoder make a model's stream.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_util::TryStreamExt as _;
use switchboard_domain::{
    ChatResponse, GrammarViolation, ModelError, ModelEvent, ModelStream, Part, PartStart,
    ResponseAccumulator, Text,
};

use crate::{
    ByteStream, MAX_FRAME_BYTES, WireDecoder, ndjson, outgoing::Outgoing, sse, sse::SseFrame,
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
        fresh: Vec::new(),
        outgoing: Outgoing::default(),
        grammar: Grammar::default(),
    })
}

struct Decoding {
    provider: String,
    /// `None` when there will be no more.
    frames: Option<Frames>,
    decoder: Box<dyn WireDecoder>,
    /// What the decoder just made; kept for its memory.
    fresh: Vec<ModelEvent>,
    outgoing: Outgoing,
    grammar: Grammar,
}

impl Stream for Decoding {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(next) = this.outgoing.next() {
                return Poll::Ready(Some(next));
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
                    let result = this.decoder.frame(&name, &data, &mut this.fresh);
                    this.take(result);
                }
                Some(Err(error)) => this.take(Err(error)),
                None => {
                    this.frames = None;
                    let result = this.decoder.end(&mut this.fresh);
                    this.take(result);
                    this.close();
                }
            }
        }
    }
}

impl Decoding {
    /// Takes what was just made, and how it went.
    fn take(&mut self, result: Result<(), ModelError>) {
        for event in self.fresh.drain(..) {
            if let Err(fault) = self.grammar.check(&event) {
                // An adapter's own fault is told in any case.
                let failure = ModelError::from_grammar(&self.provider, fault);
                self.outgoing.fail(failure);
                break;
            }
            self.outgoing.push(event);
        }
        if self.outgoing.is_failing() || result.is_err() {
            self.frames = None;
        }
        if let Err(error) = result
            && !self.grammar.is_finished()
        {
            self.outgoing.fail(error);
        }
    }

    /// Makes sure that the end is one.
    fn close(&mut self) {
        if !self.outgoing.is_failing() && !self.grammar.is_finished() {
            let fault = GrammarViolation::NoFinish;
            let failure = ModelError::from_grammar(&self.provider, fault);
            self.outgoing.fail(failure);
        }
    }
}

/// The accumulator's grammar without its content: it is fed the events' outlines, so an answer is
/// not held twice.
#[derive(Debug, Default)]
struct Grammar(ResponseAccumulator);

impl Grammar {
    fn check(&mut self, event: &ModelEvent) -> Result<(), GrammarViolation> {
        let outline = match event {
            // Allowed everywhere.
            ModelEvent::Usage { .. } | ModelEvent::Warning { .. } => return Ok(()),
            ModelEvent::TextDelta { index, .. } => ModelEvent::TextDelta {
                index: *index,
                text: String::new(),
            },
            ModelEvent::ReasoningDelta { index, .. } => ModelEvent::ReasoningDelta {
                index: *index,
                text: String::new(),
            },
            ModelEvent::ToolInputDelta { index, .. } => ModelEvent::ToolInputDelta {
                index: *index,
                json: String::new(),
            },
            ModelEvent::PartStarted {
                index,
                part: PartStart::Whole { .. },
            } => ModelEvent::PartStarted {
                index: *index,
                part: PartStart::Whole {
                    part: Part::Text(Text {
                        text: String::new(),
                        provider_state: None,
                    }),
                },
            },
            // Small, or rare.
            other => return self.0.push(other),
        };
        self.0.push(&outline)
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

//! Feeds a stored stream to a decoder in every way a network may cut it.
//!
//! What a stream means does not depend on where its bytes were cut. [`replay`] checks this for every
//! place there is, together with the grammar of [`ModelEvent`]. And what is there of a stream that
//! ends too early is no answer: [`break_off`] checks that for every place.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use futures_core::Stream;
use serde::Serialize;
use switchboard_domain::{
    ChatResponse, GrammarViolation, ModelError, ModelErrorKind, ModelEvent, ModelStream,
    ResponseAccumulator,
};

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;

/// A body as it arrives: what a provider's transport gives.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, ModelError>> + Send>>;

/// What a stream came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// Its events.
    pub events: Vec<ModelEvent>,
    /// The error it ended with, if it did.
    pub failure: Option<Failure>,
    /// What the events add up to; of a stream that failed, what there was.
    pub response: ChatResponse,
}

/// A [`ModelError`], comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Its kind, as in [`ModelErrorKind::as_str`](switchboard_domain::ModelErrorKind::as_str).
    pub kind: String,
    /// The whole message.
    pub message: String,
}

impl From<&ModelError> for Failure {
    fn from(error: &ModelError) -> Self {
        Self {
            kind: error.kind.as_str().to_owned(),
            message: error.to_string(),
        }
    }
}

/// How the bytes of a transcript were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cutting {
    /// In one piece.
    Whole,
    /// In two, the first of so many bytes.
    InTwo(usize),
    /// Each byte alone.
    Bytes,
    /// Each byte alone, with an empty piece before each.
    BytesAndNothing,
    /// Only so many, in one piece, and then the end as if nothing were missing.
    EndAfter(usize),
    /// Only so many, in one piece, and then an error of the transport.
    ErrorAfter(usize),
}

/// Whether the next piece is there when the last one is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is.
    AtOnce,
    /// It is not, and neither is the end: the decoder has to wait for each.
    Later,
}

/// A handing over at which something was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Where the bytes were cut.
    pub cutting: Cutting,
    /// When the pieces came.
    pub arrival: Arrival,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cutting {
            Cutting::Whole => f.write_str("in one piece")?,
            Cutting::InTwo(at) => write!(f, "cut after byte {at}")?,
            Cutting::Bytes => f.write_str("byte by byte")?,
            Cutting::BytesAndNothing => f.write_str("byte by byte with empty pieces")?,
            Cutting::EndAfter(bytes) => write!(f, "ended after {bytes} bytes")?,
            Cutting::ErrorAfter(bytes) => write!(f, "broken after {bytes} bytes")?,
        }
        match self.arrival {
            Arrival::AtOnce => Ok(()),
            Arrival::Later => f.write_str(", waiting for each piece"),
        }
    }
}

/// A law that a decoder broke.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The events break the grammar.
    #[error("{delivery}: event {number}: {source}")]
    Grammar {
        /// How the bytes came.
        delivery: Delivery,
        /// The event's number from 0; their count if the end itself is wrong.
        number: usize,
        /// What is wrong.
        source: GrammarViolation,
    },
    /// The events differ from those of the transcript in one piece.
    #[error("{delivery}: event {number} is {found}, in one piece it is {expected}")]
    Differs {
        /// How the bytes came.
        delivery: Delivery,
        /// The event's number from 0; their count if the end differs.
        number: usize,
        /// What came, as JSON.
        found: String,
        /// What came of the transcript in one piece, as JSON.
        expected: String,
    },
    /// A part of the transcript passes for an answer, or fails as if something else were wrong.
    #[error("{delivery}: it came to {found}, whole it is {expected}")]
    BrokenOff {
        /// How the bytes came.
        delivery: Delivery,
        /// What it came to, as JSON.
        found: String,
        /// What comes of the whole transcript, as JSON.
        expected: String,
    },
    /// Something followed an error.
    #[error("{delivery}: the stream goes on after its error")]
    AfterFailure {
        /// How the bytes came.
        delivery: Delivery,
    },
    /// The decoder waits, though nothing will wake it.
    #[error("{delivery}: the stream waits for nothing after {events} events")]
    Stalled {
        /// How the bytes came.
        delivery: Delivery,
        /// The events before.
        events: usize,
    },
}

/// Decodes a transcript in one piece, cut in two at every byte, and byte by byte; with the pieces
/// there at once, and with the decoder waiting for each.
///
/// `decode` makes a model's stream of a body, as an adapter does: `decode_sse` or `decode_ndjson`
/// with its decoder.
///
/// Fails on the first law that is broken. An error in the stream breaks none: it is part of the
/// [outcome](Replayed), and has to be the same every time.
pub fn replay(
    transcript: &[u8],
    decode: impl Fn(Body) -> ModelStream,
) -> Result<Replayed, ReplayError> {
    let bytes = Bytes::copy_from_slice(transcript);
    let whole = Delivery {
        cutting: Cutting::Whole,
        arrival: Arrival::AtOnce,
    };
    let expected = play_bytes(&bytes, whole, &decode)?;
    let cut = (1..bytes.len()).map(Cutting::InTwo);
    // Where pieces come at once, a cut in two is no other than one of the cuts of byte by byte.
    let waited_for = [Cutting::Whole, Cutting::Bytes].into_iter().chain(cut);
    let later = waited_for.map(|cutting| (cutting, Arrival::Later));
    let at_once = [Cutting::Bytes, Cutting::BytesAndNothing].map(|it| (it, Arrival::AtOnce));
    for (cutting, arrival) in at_once.into_iter().chain(later) {
        let delivery = Delivery { cutting, arrival };
        let found = play_bytes(&bytes, delivery, &decode)?;
        same(delivery, &found, &expected)?;
    }
    Ok(expected)
}

/// Decodes every beginning of a transcript, once ended quietly and once by an error of the transport.
///
/// Each has to fail as interrupted, or come to the message and the finish reason of the whole: then
/// only what does not count was missing, such as a report of the usage. A whole that fails may fail
/// early in its own way.
///
/// Fails on the first beginning that does neither, or breaks the grammar.
pub fn break_off(
    transcript: &[u8],
    decode: impl Fn(Body) -> ModelStream,
) -> Result<(), ReplayError> {
    let bytes = Bytes::copy_from_slice(transcript);
    let arrival = Arrival::AtOnce;
    let cutting = Cutting::Whole;
    let whole = play_bytes(&bytes, Delivery { cutting, arrival }, &decode)?;
    let ends = (0..bytes.len()).flat_map(|at| [Cutting::EndAfter(at), Cutting::ErrorAfter(at)]);
    for cutting in ends {
        let delivery = Delivery { cutting, arrival };
        let found = play_bytes(&bytes, delivery, &decode)?;
        let fair = match (&found.failure, &whole.failure) {
            (Some(failure), _) if failure.kind == ModelErrorKind::Interrupted.as_str() => true,
            (None, None) => {
                let (found, whole) = (&found.response, &whole.response);
                found.message == whole.message && found.finish == whole.finish
            }
            (found, whole) => found == whole,
        };
        if !fair {
            return Err(ReplayError::BrokenOff {
                delivery,
                found: summary(&found),
                expected: summary(&whole),
            });
        }
    }
    Ok(())
}

fn summary(replayed: &Replayed) -> String {
    let shown = match &replayed.failure {
        Some(failure) => serde_json::to_string(failure),
        None => serde_json::to_string(&replayed.response),
    };
    shown.unwrap_or_else(|error| error.to_string())
}

/// Decodes a transcript once.
///
/// Fails if that breaks the grammar, goes on after an error, or waits for nothing.
pub fn play(
    transcript: &[u8],
    delivery: Delivery,
    decode: impl Fn(Body) -> ModelStream,
) -> Result<Replayed, ReplayError> {
    play_bytes(&Bytes::copy_from_slice(transcript), delivery, decode)
}

fn play_bytes(
    bytes: &Bytes,
    delivery: Delivery,
    decode: impl Fn(Body) -> ModelStream,
) -> Result<Replayed, ReplayError> {
    let body = Pieces::of(bytes, delivery);
    let mut stream = decode(Box::pin(body));
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    let mut events = Vec::new();
    let mut answer = ResponseAccumulator::default();
    let violation = |number, source| ReplayError::Grammar {
        delivery,
        number,
        source,
    };
    loop {
        match stream.as_mut().poll_next(&mut context) {
            Poll::Ready(Some(Ok(event))) => {
                answer
                    .push(&event)
                    .map_err(|source| violation(events.len(), source))?;
                events.push(event);
            }
            Poll::Ready(Some(Err(error))) => {
                if !matches!(stream.as_mut().poll_next(&mut context), Poll::Ready(None)) {
                    return Err(ReplayError::AfterFailure { delivery });
                }
                return Ok(Replayed {
                    events,
                    failure: Some(Failure::from(&error)),
                    response: answer.interrupted(),
                });
            }
            Poll::Ready(None) => {
                let response = answer
                    .finish()
                    .map_err(|source| violation(events.len(), source))?;
                return Ok(Replayed {
                    events,
                    failure: None,
                    response,
                });
            }
            Poll::Pending if alarm.0.swap(false, Ordering::Relaxed) => {}
            Poll::Pending => {
                let events = events.len();
                return Err(ReplayError::Stalled { delivery, events });
            }
        }
    }
}

fn same(delivery: Delivery, found: &Replayed, expected: &Replayed) -> Result<(), ReplayError> {
    // Their sum follows from the events.
    if found.events == expected.events && found.failure == expected.failure {
        return Ok(());
    }
    let pairs = found.events.iter().zip(&expected.events);
    let number = pairs
        .take_while(|(found, expected)| found == expected)
        .count();
    let show = |replayed: &Replayed| {
        let shown = match replayed.events.get(number) {
            Some(event) => serde_json::to_string(event),
            None => serde_json::to_string(&replayed.failure),
        };
        shown.unwrap_or_else(|error| error.to_string())
    };
    Err(ReplayError::Differs {
        delivery,
        number,
        found: show(found),
        expected: show(expected),
    })
}

/// A body whose pieces are all there, but may have to be waited for.
struct Pieces {
    rest: VecDeque<Bytes>,
    /// Comes after them.
    error: Option<ModelError>,
    arrival: Arrival,
    waited: bool,
}

impl Pieces {
    fn of(bytes: &Bytes, delivery: Delivery) -> Self {
        let each = || (0..bytes.len()).map(|at| bytes.slice(at..=at));
        let pieces = match delivery.cutting {
            Cutting::Whole => VecDeque::from([bytes.clone()]),
            Cutting::InTwo(at) => {
                let at = at.min(bytes.len());
                VecDeque::from([bytes.slice(..at), bytes.slice(at..)])
            }
            Cutting::Bytes => each().collect(),
            Cutting::BytesAndNothing => each().flat_map(|byte| [Bytes::new(), byte]).collect(),
            Cutting::EndAfter(at) | Cutting::ErrorAfter(at) => {
                VecDeque::from([bytes.slice(..at.min(bytes.len()))])
            }
        };
        let broken = || {
            let message = "the connection was cut";
            ModelError::new("transport", ModelErrorKind::Interrupted, message)
        };
        Self {
            rest: pieces,
            error: matches!(delivery.cutting, Cutting::ErrorAfter(_)).then(broken),
            arrival: delivery.arrival,
            waited: false,
        }
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.arrival == Arrival::Later && !self.waited {
            self.waited = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.waited = false;
        let this = &mut *self;
        let next = this.rest.pop_front().map(Ok);
        Poll::Ready(next.or_else(|| this.error.take().map(Err)))
    }
}

/// Notes that it was woken.
#[derive(Default)]
struct Alarm(AtomicBool);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

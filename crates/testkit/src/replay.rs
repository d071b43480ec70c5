//! Feeds a stored stream to a decoder in every way that a network may split it.
//!
//! The result must not depend on the positions of the cuts. [`replay`] checks this and the grammar
//! of [`ModelEvent`] for every position. A stream that ends early must not pass for a complete
//! answer: [`break_off`] checks this for every position.

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

/// A body as a provider's transport returns it.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, ModelError>> + Send>>;

/// The result of a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// The events.
    pub events: Vec<ModelEvent>,
    /// The final error, if any.
    pub failure: Option<Failure>,
    /// The response accumulated from the events. It is partial if the stream failed.
    pub response: ChatResponse,
}

/// A comparable form of [`ModelError`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The kind, as in [`ModelErrorKind::as_str`](switchboard_domain::ModelErrorKind::as_str).
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

/// The split of a transcript's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cutting {
    /// All bytes in one piece.
    Whole,
    /// Two pieces. The number is the length of the first piece in bytes.
    InTwo(usize),
    /// One piece for each byte.
    Bytes,
    /// One piece for each byte, and an empty piece before each of them.
    BytesAndNothing,
    /// One piece with only this many bytes of the transcript, and then the normal end of a body.
    EndAfter(usize),
    /// One piece with only this many bytes of the transcript, and then a connection error.
    ErrorAfter(usize),
}

/// The availability of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Every piece is available immediately.
    AtOnce,
    /// The decoder must wait for every piece and for the end.
    Later,
}

/// The delivery of a transcript's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The split of the bytes.
    pub cutting: Cutting,
    /// The availability of the pieces.
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

/// A requirement that a decoder violated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{delivery}: {problem}")]
pub struct ReplayError {
    /// The delivery of the bytes.
    pub delivery: Delivery,
    /// The violation, with the number of the event from 0.
    pub problem: String,
}

/// Decodes a transcript in one piece, in two pieces split at every byte, and byte by byte. Pieces
/// are available immediately or only after a wait.
///
/// `decode` creates a model's stream from a body, like an adapter: `decode_sse` or `decode_ndjson`
/// with its decoder.
///
/// Fails on the first violation. An error in the stream is not a violation: it is part of the
/// [outcome](Replayed) and must be equal for every delivery.
pub fn replay(
    transcript: &[u8],
    decode: impl Fn(Body) -> ModelStream,
) -> Result<Replayed, ReplayError> {
    // The result of the delivery in single bytes is the expected result of all other deliveries.
    let single = Delivery {
        cutting: Cutting::Bytes,
        arrival: Arrival::AtOnce,
    };
    let expected = play(transcript, single, &decode)?;
    let cut = (1..transcript.len()).map(Cutting::InTwo);
    // `InTwo` is needed only for pieces that arrive later. If all pieces are available immediately,
    // the delivery in single bytes already contains every cut.
    let waited_for = [Cutting::Whole, Cutting::Bytes].into_iter().chain(cut);
    let later = waited_for.map(|cutting| (cutting, Arrival::Later));
    let at_once = [Cutting::Whole, Cutting::BytesAndNothing].map(|it| (it, Arrival::AtOnce));
    for (cutting, arrival) in at_once.into_iter().chain(later) {
        let delivery = Delivery { cutting, arrival };
        let found = play(transcript, delivery, &decode)?;
        compare(delivery, &found, &expected)?;
    }
    Ok(expected)
}

/// Decodes every prefix of a transcript, once with the normal end of a body and once with a
/// connection error after it.
///
/// Each prefix must fail with the kind [`ModelErrorKind::Interrupted`] or have the result of the
/// whole transcript: the same error, or the same message and finish reason. A prefix can have the
/// same message if only an optional part is missing, such as the usage.
///
/// Fails on the first prefix with another result, or with events that violate the grammar.
pub fn break_off(
    transcript: &[u8],
    decode: impl Fn(Body) -> ModelStream,
) -> Result<(), ReplayError> {
    let arrival = Arrival::AtOnce;
    let cutting = Cutting::Whole;
    let whole = play(transcript, Delivery { cutting, arrival }, &decode)?;
    let lengths = 0..transcript.len();
    for cutting in lengths.flat_map(|at| [Cutting::EndAfter(at), Cutting::ErrorAfter(at)]) {
        let delivery = Delivery { cutting, arrival };
        let found = play(transcript, delivery, &decode)?;
        let fair = match (&found.failure, &whole.failure) {
            (Some(failure), _) if failure.kind == ModelErrorKind::Interrupted.as_str() => true,
            (None, None) => {
                let (found, whole) = (&found.response, &whole.response);
                found.message == whole.message && found.finish == whole.finish
            }
            (found, whole) => found == whole,
        };
        if !fair {
            let (found, whole) = (describe(&found), describe(&whole));
            let problem = format!("the result is {found}, but {whole} for the whole body");
            return Err(ReplayError { delivery, problem });
        }
    }
    Ok(())
}

fn describe(replayed: &Replayed) -> String {
    match &replayed.failure {
        Some(failure) => to_json(failure),
        None => to_json(&replayed.response),
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

/// Decodes a transcript once.
///
/// Fails if the stream violates the grammar, continues after an error, or waits without a wake-up.
pub fn play(
    transcript: &[u8],
    delivery: Delivery,
    decode: impl Fn(Body) -> ModelStream,
) -> Result<Replayed, ReplayError> {
    let body = Pieces::cut(&Bytes::copy_from_slice(transcript), delivery);
    let mut stream = decode(Box::pin(body));
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    let mut events = Vec::new();
    let mut answer = ResponseAccumulator::default();
    let fail = |problem| Err(ReplayError { delivery, problem });
    let violation = |number: usize, source: GrammarViolation| ReplayError {
        delivery,
        problem: format!("event {number}: {source}"),
    };
    let (failure, response) = loop {
        match stream.as_mut().poll_next(&mut context) {
            Poll::Ready(Some(Ok(event))) => {
                answer
                    .push(&event)
                    .map_err(|source| violation(events.len(), source))?;
                events.push(event);
            }
            Poll::Ready(Some(Err(error))) => {
                if !matches!(stream.as_mut().poll_next(&mut context), Poll::Ready(None)) {
                    return fail("the stream continues after its error".to_owned());
                }
                break (
                    Some(Failure::from(&error)),
                    answer.into_interrupted_response(),
                );
            }
            Poll::Ready(None) => {
                let response = answer
                    .finish()
                    .map_err(|source| violation(events.len(), source))?;
                break (None, response);
            }
            Poll::Pending if alarm.0.swap(false, Ordering::Relaxed) => {}
            Poll::Pending => {
                let count = events.len();
                return fail(format!("the stream hangs after {count} events"));
            }
        }
    };
    Ok(Replayed {
        events,
        failure,
        response,
    })
}

/// Joins consecutive deltas of the same part. A decoder also does so if they arrive in one piece.
fn join_deltas(events: &[ModelEvent]) -> Vec<ModelEvent> {
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in events {
        let rest = match joined.last_mut() {
            Some(last) => last.append_delta(event.clone()),
            None => Some(event.clone()),
        };
        joined.extend(rest);
    }
    joined
}

fn compare(delivery: Delivery, found: &Replayed, expected: &Replayed) -> Result<(), ReplayError> {
    let events = [found, expected].map(|replayed| join_deltas(&replayed.events));
    // Equal events have equal responses, so the responses need no comparison.
    if events[0] == events[1] && found.failure == expected.failure {
        return Ok(());
    }
    let pairs = events[0].iter().zip(&events[1]);
    let number = pairs
        .take_while(|(found, expected)| found == expected)
        .count();
    let show = |replayed: &Replayed, events: &[ModelEvent]| match events.get(number) {
        Some(event) => to_json(event),
        None => to_json(&replayed.failure),
    };
    let (found, expected) = (show(found, &events[0]), show(expected, &events[1]));
    let problem = format!("event {number} is {found}, byte by byte it is {expected}");
    Err(ReplayError { delivery, problem })
}

/// A body with the given pieces. With [`Arrival::Later`], each is pending at its first poll.
struct Pieces {
    rest: VecDeque<Bytes>,
    /// The error that the body returns after the pieces.
    error: Option<ModelError>,
    arrival: Arrival,
    waited: bool,
}

impl Pieces {
    fn cut(bytes: &Bytes, delivery: Delivery) -> Self {
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

/// Records a wake-up.
#[derive(Default)]
struct Alarm(AtomicBool);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

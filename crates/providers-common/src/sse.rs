//! Server-sent events: a body cut into frames.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use sse_stream::SseByteStream;
use switchboard_domain::{ModelError, ModelErrorKind};

use crate::ByteStream;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseFrame {
    /// Its name, empty if it has none.
    pub name: String,
    /// Its data, several lines joined by `\n`.
    pub data: String,
}

/// The events of a body of `provider`, at most about `max_frame_bytes` each.
///
/// Line ends may be LF, CRLF or CR; comments, a byte-order mark, `id`, `retry` and unknown fields
/// are skipped, and so are events without data. An event that is complete but for its closing empty
/// line counts when the body ends; one that breaks off within a line does not.
///
/// Fails with what the body fails with, and with [`ModelErrorKind::Protocol`] on text that is not
/// UTF-8 or a frame that is too long. After an error nothing follows.
pub fn frames(provider: &str, body: ByteStream, max_frame_bytes: usize) -> SseFrames {
    let unframed = Arc::new(AtomicUsize::new(0));
    let guarded = Guarded {
        provider: provider.to_owned(),
        body: Some(body),
        unframed: Arc::clone(&unframed),
        max_frame_bytes,
        at_line_end: false,
    };
    SseFrames {
        provider: provider.to_owned(),
        events: SseByteStream::new(guarded),
        unframed,
    }
}

/// See [`frames`].
pub struct SseFrames {
    provider: String,
    events: SseByteStream<Guarded>,
    unframed: Arc<AtomicUsize>,
}

impl std::fmt::Debug for SseFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseFrames")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl Stream for SseFrames {
    type Item = Result<SseFrame, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let event = match ready!(Pin::new(&mut self.events).poll_next(context)) {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Poll::Ready(Some(Err(self.own(error)))),
                None => return Poll::Ready(None),
            };
            self.unframed.store(0, Ordering::Relaxed);
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                let name = event.event.unwrap_or_default();
                return Poll::Ready(Some(Ok(SseFrame { name, data })));
            }
        }
    }
}

impl SseFrames {
    fn own(&self, error: sse_stream::Error) -> ModelError {
        let protocol = |source: Box<dyn std::error::Error + Send + Sync>| {
            let message = format!("no event stream: {source}");
            ModelError::new(&self.provider, ModelErrorKind::Protocol, message).with_source(source)
        };
        match error {
            sse_stream::Error::Body(source) => match source.downcast::<ModelError>() {
                Ok(error) => *error,
                Err(source) => protocol(source),
            },
            other => protocol(Box::new(other)),
        }
    }
}

/// The body, watched: the decoder itself reads an event of any length, and discards one that lacks
/// its closing empty line.
struct Guarded {
    provider: String,
    /// `None` when it has ended.
    body: Option<ByteStream>,
    /// Bytes read since the last event.
    unframed: Arc<AtomicUsize>,
    max_frame_bytes: usize,
    at_line_end: bool,
}

impl Stream for Guarded {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        // Not checked when a piece comes: it may hold many events.
        let unframed = this.unframed.load(Ordering::Relaxed);
        if unframed > this.max_frame_bytes {
            this.body = None;
            let message = format!("an event is longer than {} bytes", this.max_frame_bytes);
            let error = ModelError::new(&this.provider, ModelErrorKind::Protocol, message);
            return Poll::Ready(Some(Err(error)));
        }
        let piece = match ready!(body.as_mut().poll_next(context)) {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => {
                this.body = None;
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                this.body = None;
                // The first of the two may be taken for the second half of a CRLF.
                let closing = this.at_line_end.then(|| Ok(Bytes::from_static(b"\n\n")));
                return Poll::Ready(closing);
            }
        };
        if let Some(last) = piece.last() {
            this.at_line_end = matches!(last, b'\n' | b'\r');
        }
        this.unframed
            .store(unframed.saturating_add(piece.len()), Ordering::Relaxed);
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;

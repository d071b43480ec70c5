//! Framing of server-sent events.

use std::{
    mem,
    pin::Pin,
    str::Utf8Error,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use memchr::{memchr, memchr2};
use switchboard_domain::{ModelError, ModelErrorKind};

use crate::ByteStream;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseFrame {
    /// The name, empty if there is none.
    pub name: String,
    /// The data lines, joined by `\n`.
    pub data: String,
}

/// Returns the events of a body of `provider`.
///
/// Line ends are LF, CRLF or CR. Comments, a byte-order mark, `id`, `retry`, unknown fields and
/// events without data are skipped. At the end of the body, an event without its closing empty line
/// counts, and an event that ends within a line does not.
///
/// Fails with the body's error, and with [`ModelErrorKind::Protocol`] on text that is not UTF-8 or
/// an event of more than about `max_frame_bytes`. The stream ends after an error.
pub fn frames(provider: &str, body: ByteStream, max_frame_bytes: usize) -> SseFrames {
    SseFrames {
        provider: provider.to_owned(),
        body: Some(body),
        max_frame_bytes,
        piece: Bytes::new(),
        begun: Vec::new(),
        after_cr: false,
        unframed: 0,
        event: Event::default(),
    }
}

/// The stream of [`frames`].
pub struct SseFrames {
    provider: String,
    /// `None` after the end.
    body: Option<ByteStream>,
    max_frame_bytes: usize,
    /// The unread rest of the last piece of the body.
    piece: Bytes,
    /// A line that began in earlier pieces.
    begun: Vec<u8>,
    /// Whether a line feed at this position belongs to the line end before.
    after_cr: bool,
    /// Number of bytes since the last empty line.
    unframed: usize,
    event: Event,
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
        let frame = ready!(self.poll_frame(context));
        Poll::Ready(frame.map(Result::<&SseFrame, _>::cloned))
    }
}

impl SseFrames {
    /// Returns the next event. Its buffers are reused for the following one.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<&SseFrame, ModelError>>> {
        loop {
            match self.read() {
                Ok(true) => return Poll::Ready(Some(Ok(&self.event.frame))),
                Ok(false) => {}
                Err(fault) => {
                    let error = self.broken(format!("the body is not an event stream: {fault}"));
                    return Poll::Ready(Some(Err(error.with_source(fault))));
                }
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(None);
            };
            // A piece may contain many events, so that its own size does not count.
            if self.unframed > self.max_frame_bytes {
                let message = format!("an event is longer than {} bytes", self.max_frame_bytes);
                return Poll::Ready(Some(Err(self.broken(message))));
            }
            match ready!(body.as_mut().poll_next(context)) {
                Some(Ok(piece)) => {
                    self.unframed = self.unframed.saturating_add(piece.len());
                    self.piece = piece;
                }
                Some(Err(error)) => {
                    self.body = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.body = None;
                    // An event that ends within a line is dropped.
                    if self.begun.is_empty() && !self.event.ended && self.event.is_complete() {
                        return Poll::Ready(Some(Ok(&self.event.frame)));
                    }
                }
            }
        }
    }

    /// Reads the piece up to the end of an event. Returns whether there is one.
    fn read(&mut self) -> Result<bool, Utf8Error> {
        while let Some(first) = self.piece.first() {
            if mem::take(&mut self.after_cr) && *first == b'\n' {
                self.skip(1);
                continue;
            }
            let Some(length) = memchr2(b'\n', b'\r', &self.piece) else {
                self.begun.extend_from_slice(&self.piece);
                self.piece = Bytes::new();
                break;
            };
            let (line, rest) = self.piece.split_at(length);
            self.after_cr = rest.first() == Some(&b'\r');
            let is_empty = line.is_empty() && self.begun.is_empty();
            let ends = if self.begun.is_empty() {
                self.event.line(line)
            } else {
                self.begun.extend_from_slice(line);
                let ends = self.event.line(&self.begun);
                self.begun.clear();
                ends
            };
            self.skip(length + 1);
            if is_empty {
                self.unframed = 0;
            }
            if ends? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn skip(&mut self, bytes: usize) {
        bytes::Buf::advance(&mut self.piece, bytes);
    }

    /// Ends the stream and returns the error.
    fn broken(&mut self, message: String) -> ModelError {
        self.body = None;
        self.piece = Bytes::new();
        ModelError::new(&self.provider, ModelErrorKind::Protocol, message)
    }
}

/// The current event.
#[derive(Default)]
struct Event {
    frame: SseFrame,
    /// Whether there is a line of data, also an empty one.
    has_data: bool,
    /// Whether an empty line has ended the event, so that the next line begins another.
    ended: bool,
    /// Whether the first line of the body was read.
    begun: bool,
}

impl Event {
    /// Reads a line. Returns whether it ends an event with data. Skipped lines are not checked for
    /// UTF-8.
    fn line(&mut self, mut line: &[u8]) -> Result<bool, Utf8Error> {
        if mem::take(&mut self.ended) {
            self.frame.name.clear();
            self.frame.data.clear();
            self.has_data = false;
        }
        if !mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.ended = true;
            return Ok(self.is_complete());
        }
        let (field, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(str::from_utf8(value)?);
            }
            b"event" => str::from_utf8(value)?.clone_into(&mut self.frame.name),
            _ => {}
        }
        Ok(false)
    }

    /// Whether the event has data.
    fn is_complete(&self) -> bool {
        !self.frame.data.is_empty()
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;

//! Framing of server-sent events.

use std::{io, mem, str::Utf8Error};

use bytes::{Buf as _, BytesMut};
use futures_core::Stream;
use memchr::{memchr, memchr2};
use switchboard_domain::{ModelError, ModelErrorKind};
use tokio_util::codec::Decoder;

use crate::{ByteStream, http::byte_stream::split_frames};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseFrame {
    /// Name of the event. Empty if the event has no name.
    pub name: String,
    /// Data lines of the event, joined by `\n`.
    pub data: String,
}

/// Returns the server-sent events in a response body of `provider`.
///
/// Line ends are LF, CRLF or CR. Comments, a byte-order mark, `id`, `retry`, unknown fields and
/// events without data are skipped. At the end of the body, an event that lacks only its closing
/// empty line is returned. An event with an incomplete last line is dropped.
///
/// Fails with the body's error, and with [`ModelErrorKind::Protocol`] on text that is not UTF-8 or
/// an event of more than about `max_frame_bytes`. The stream ends after an error.
pub fn split_sse_frames(
    provider: &str,
    body: ByteStream,
    max_frame_bytes: usize,
) -> impl Stream<Item = Result<SseFrame, ModelError>> + Send + use<> {
    let events = SseCodec {
        provider: provider.to_owned(),
        max_frame_bytes,
        event: SseFrame::default(),
        has_data: false,
        is_first_line: true,
        after_cr: false,
        searched: 0,
        event_bytes: 0,
    };
    split_frames(provider, body, events)
}

/// Codec that splits bytes into server-sent events, for [`split_sse_frames`].
struct SseCodec {
    provider: String,
    max_frame_bytes: usize,
    /// Event whose lines are being read.
    event: SseFrame,
    /// Whether the current event has a `data` line, even an empty one.
    has_data: bool,
    is_first_line: bool,
    /// Whether the previous line ended with CR, so that a line feed here belongs to that line end.
    after_cr: bool,
    /// Number of buffered bytes that were already searched for a line end.
    searched: usize,
    /// Number of bytes in the complete lines of the current event.
    event_bytes: usize,
}

impl Decoder for SseCodec {
    type Item = SseFrame;
    type Error = io::Error;

    fn decode(&mut self, unread: &mut BytesMut) -> Result<Option<SseFrame>, io::Error> {
        loop {
            if self.after_cr && !unread.is_empty() {
                self.after_cr = false;
                if unread.starts_with(b"\n") {
                    unread.advance(1);
                }
            }
            let rest = unread.get(self.searched..).unwrap_or_default();
            let Some(length) = memchr2(b'\n', b'\r', rest) else {
                self.searched = unread.len();
                if self.event_bytes.saturating_add(unread.len()) > self.max_frame_bytes {
                    let message = format!("an event is longer than {} bytes", self.max_frame_bytes);
                    return Err(self.protocol_error(message));
                }
                return Ok(None);
            };
            let line = unread.split_to(self.searched + length);
            self.searched = 0;
            self.after_cr = unread.get_u8() == b'\r';
            self.event_bytes = self.event_bytes.saturating_add(line.len() + 1);
            if line.is_empty() {
                self.event_bytes = 0;
            }
            let is_end = self.read_line(&line).map_err(|fault| {
                self.protocol_error(format!("the body is not an event stream: {fault}"))
            })?;
            if is_end && let Some(event) = self.take_event() {
                return Ok(Some(event));
            }
        }
    }

    fn decode_eof(&mut self, unread: &mut BytesMut) -> Result<Option<SseFrame>, io::Error> {
        if let Some(event) = self.decode(unread)? {
            return Ok(Some(event));
        }
        let is_cut = !unread.is_empty();
        unread.clear();
        Ok(self.take_event().filter(|_| !is_cut))
    }
}

impl SseCodec {
    /// Reads one line of an event. Returns whether the line ends the event. Skipped lines are not
    /// checked for UTF-8.
    fn read_line(&mut self, mut line: &[u8]) -> Result<bool, Utf8Error> {
        if mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(true);
        }
        let (field, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(str::from_utf8(value)?);
            }
            b"event" => str::from_utf8(value)?.clone_into(&mut self.event.name),
            _ => {}
        }
        Ok(false)
    }

    /// Returns the current event, or `None` if it has no data. Begins the next event.
    fn take_event(&mut self) -> Option<SseFrame> {
        self.has_data = false;
        Some(mem::take(&mut self.event)).filter(|event| !event.data.is_empty())
    }

    fn protocol_error(&self, message: String) -> io::Error {
        let error = ModelError::new(&self.provider, ModelErrorKind::Protocol, message);
        io::Error::other(error)
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;

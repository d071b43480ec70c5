//! Framing of server-sent events.

use std::{mem, str::Utf8Error};

use bytes::{Buf as _, BytesMut};
use memchr::{memchr, memchr2};
use switchboard_domain::{ModelError, ModelErrorKind};

use crate::http::byte_stream::FrameReader;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reader of the server-sent events in a response body.
///
/// Line ends are LF, CRLF or CR. Comments, a byte-order mark, `id`, `retry`, unknown fields and
/// events without data are skipped. At the end of the body, an event that lacks only its closing
/// empty line is returned. An event with an incomplete last line is dropped.
///
/// Fails with [`ModelErrorKind::Protocol`] on text that is not UTF-8 and on an event of more than
/// about `max_event_bytes`.
#[derive(Default)]
pub(crate) struct SseReader {
    provider: String,
    max_event_bytes: usize,
    /// Name of the current event. Empty if the event has no name.
    name: String,
    /// Data lines of the current event, joined by `\n`.
    data: String,
    /// Whether the current event has a `data` line, even an empty one.
    has_data: bool,
    /// Whether the current event has ended, so that the next line begins another event.
    is_returned: bool,
    is_first_line: bool,
    /// Whether the previous line ended with CR. An LF as the next byte then belongs to the same
    /// line end.
    after_cr: bool,
    /// Number of unread bytes that were already searched for a line end.
    searched: usize,
    /// Number of bytes in the complete lines of the current event.
    event_bytes: usize,
}

impl SseReader {
    pub(crate) fn new(provider: &str, max_event_bytes: usize) -> Self {
        Self {
            provider: provider.to_owned(),
            max_event_bytes,
            is_first_line: true,
            ..Self::default()
        }
    }

    /// Reads one line of an event. Returns whether it is the empty line that ends the event. Fails
    /// if the value of a `data` or `event` field is not UTF-8. Other lines are not checked.
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
                    self.data.push('\n');
                }
                self.data.push_str(str::from_utf8(value)?);
            }
            b"event" => str::from_utf8(value)?.clone_into(&mut self.name),
            _ => {}
        }
        Ok(false)
    }

    /// Ends the current event. Returns whether it has data; otherwise it is discarded.
    fn end_event(&mut self) -> bool {
        if self.data.is_empty() {
            self.clear_event();
            return false;
        }
        self.is_returned = true;
        true
    }

    fn clear_event(&mut self) {
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        self.is_returned = false;
    }

    fn protocol_error(&self, message: String) -> ModelError {
        ModelError::new(&self.provider, ModelErrorKind::Protocol, message)
    }
}

impl FrameReader for SseReader {
    fn read_frame(&mut self, unread: &mut BytesMut) -> Result<bool, ModelError> {
        if self.is_returned {
            self.clear_event();
        }
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
                if self.event_bytes.saturating_add(unread.len()) > self.max_event_bytes {
                    let message = format!("an event is longer than {} bytes", self.max_event_bytes);
                    return Err(self.protocol_error(message));
                }
                return Ok(false);
            };
            let (line, rest) = unread.split_at(self.searched + length);
            self.searched = 0;
            self.after_cr = rest.starts_with(b"\r");
            self.event_bytes = self.event_bytes.saturating_add(line.len() + 1);
            if line.is_empty() {
                self.event_bytes = 0;
            }
            let consumed = line.len() + 1;
            let is_end = self.read_line(line).map_err(|fault| {
                self.protocol_error(format!("the body is not an event stream: {fault}"))
            })?;
            unread.advance(consumed);
            if is_end && self.end_event() {
                return Ok(true);
            }
        }
    }

    fn read_last_frame(&mut self, unread: &mut BytesMut) -> Result<bool, ModelError> {
        Ok(unread.is_empty() && self.end_event())
    }

    fn current_frame(&self) -> (&str, &str) {
        (&self.name, &self.data)
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;

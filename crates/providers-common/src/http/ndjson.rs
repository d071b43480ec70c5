//! Splitting of a response body into JSON lines.

use std::mem;

use bytes::{Buf as _, BytesMut};
use memchr::memchr;
use switchboard_domain::{ModelError, ModelErrorKind};

use crate::http::byte_stream::{FrameReader, invalid_utf8_error};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reader of the JSON lines in a response body. Skips empty lines. The last line needs no line end,
/// and a byte-order mark at the beginning is skipped.
///
/// Fails with [`ModelErrorKind::Protocol`] on text that is not UTF-8 and on a line of more than
/// `max_line_bytes`, and with [`ModelErrorKind::Interrupted`] if the body ends within a character.
pub(crate) struct LineReader {
    provider: String,
    max_line_bytes: usize,
    line: String,
    is_first_line: bool,
    /// Number of unread bytes that were already searched for a line end.
    searched: usize,
}

impl LineReader {
    pub(crate) fn new(provider: &str, max_line_bytes: usize) -> Self {
        Self {
            provider: provider.to_owned(),
            max_line_bytes,
            line: String::new(),
            is_first_line: true,
            searched: 0,
        }
    }

    /// Stores a line. Returns whether it has visible characters.
    fn store_line(&mut self, line: &str) -> bool {
        let is_first = mem::take(&mut self.is_first_line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = line
            .strip_prefix(BYTE_ORDER_MARK)
            .filter(|_| is_first)
            .unwrap_or(line);
        line.clone_into(&mut self.line);
        !line.trim().is_empty()
    }

    fn check_length(&self, length: usize) -> Result<(), ModelError> {
        if length <= self.max_line_bytes {
            return Ok(());
        }
        let message = format!("a line is longer than {} bytes", self.max_line_bytes);
        Err(self.protocol_error(message))
    }

    fn protocol_error(&self, message: String) -> ModelError {
        ModelError::new(&self.provider, ModelErrorKind::Protocol, message)
    }
}

impl FrameReader for LineReader {
    fn read_frame(&mut self, unread: &mut BytesMut) -> Result<bool, ModelError> {
        loop {
            let rest = unread.get(self.searched..).unwrap_or_default();
            let Some(length) = memchr(b'\n', rest) else {
                self.searched = unread.len();
                return self.check_length(unread.len()).map(|()| false);
            };
            let (line, _) = unread.split_at(mem::take(&mut self.searched) + length);
            self.check_length(line.len())?;
            let consumed = line.len() + 1;
            let line = str::from_utf8(line).map_err(|fault| {
                self.protocol_error(format!("the body is not newline-delimited JSON: {fault}"))
            })?;
            let is_visible = self.store_line(line);
            unread.advance(consumed);
            if is_visible {
                return Ok(true);
            }
        }
    }

    fn read_last_frame(&mut self, unread: &mut BytesMut) -> Result<bool, ModelError> {
        let line = str::from_utf8(unread);
        let line = line.map_err(|fault| invalid_utf8_error(&self.provider, fault))?;
        Ok(self.store_line(line))
    }

    fn current_frame(&self) -> (&str, &str) {
        ("", &self.line)
    }
}

#[cfg(test)]
#[path = "ndjson_tests.rs"]
mod tests;

//! Framing of JSON lines.

use std::io;

use bytes::BytesMut;
use futures_core::Stream;
use futures_util::{TryStreamExt as _, future};
use switchboard_domain::{ModelError, ModelErrorKind};
use tokio_util::codec::{Decoder, LinesCodec, LinesCodecError};

use crate::{
    ByteStream,
    http::byte_stream::{invalid_utf8_error, split_frames},
};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the lines of a body of `provider`, without empty lines. The last line needs no line end,
/// and a byte-order mark at the beginning is skipped.
///
/// Fails with the body's error, with [`ModelErrorKind::Protocol`] on text that is not UTF-8 or a
/// line of more than `max_line_bytes`, and with [`ModelErrorKind::Interrupted`] if the body ends
/// within a character. The stream ends after an error.
pub fn split_lines(
    provider: &str,
    body: ByteStream,
    max_line_bytes: usize,
) -> impl Stream<Item = Result<String, ModelError>> + Send + use<> {
    let codec = NdjsonCodec {
        provider: provider.to_owned(),
        codec: LinesCodec::new_with_max_length(max_line_bytes),
    };
    let mut first = true;
    split_frames(provider, body, codec)
        .map_ok(move |mut line| {
            if std::mem::take(&mut first) && line.starts_with(BYTE_ORDER_MARK) {
                line.remove(0);
            }
            line
        })
        .try_filter(|line| future::ready(!line.trim().is_empty()))
}

/// A line codec that distinguishes a truncated last line from invalid UTF-8.
struct NdjsonCodec {
    provider: String,
    codec: LinesCodec,
}

impl NdjsonCodec {
    fn protocol_error(&self, error: LinesCodecError) -> io::Error {
        let message = format!("the body is not JSON lines: {error}");
        let kind = ModelErrorKind::Protocol;
        io::Error::other(ModelError::new(&self.provider, kind, message).with_source(error))
    }
}

impl Decoder for NdjsonCodec {
    type Item = String;
    type Error = io::Error;

    fn decode(&mut self, read: &mut BytesMut) -> Result<Option<String>, io::Error> {
        self.codec
            .decode(read)
            .map_err(|error| self.protocol_error(error))
    }

    fn decode_eof(&mut self, read: &mut BytesMut) -> Result<Option<String>, io::Error> {
        if let Some(line) = self.decode(read)? {
            return Ok(Some(line));
        }
        match std::str::from_utf8(read) {
            Ok(_) => self
                .codec
                .decode_eof(read)
                .map_err(|error| self.protocol_error(error)),
            Err(fault) => Err(io::Error::other(invalid_utf8_error(&self.provider, fault))),
        }
    }
}

#[cfg(test)]
#[path = "ndjson_tests.rs"]
mod tests;

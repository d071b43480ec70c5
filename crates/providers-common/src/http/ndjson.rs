//! Framing of JSON lines.

use std::io;

use bytes::BytesMut;
use futures_core::Stream;
use futures_util::{StreamExt as _, TryStreamExt as _, future};
use switchboard_domain::{ModelError, ModelErrorKind};
use tokio_util::{
    codec::{Decoder, FramedRead, LinesCodec, LinesCodecError},
    io::StreamReader,
};

use crate::{ByteStream, http::byte_stream::no_text};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the lines of a body of `provider`, without empty lines. The last line needs no line end,
/// and a byte-order mark at the beginning is skipped.
///
/// Fails with the body's error, with [`ModelErrorKind::Protocol`] on text that is not UTF-8 or a
/// line of more than `max_line_bytes`, and with [`ModelErrorKind::Interrupted`] if the body ends
/// within a character. The stream ends after an error.
pub fn lines(
    provider: &str,
    body: ByteStream,
    max_line_bytes: usize,
) -> impl Stream<Item = Result<String, ModelError>> + Send + use<> {
    let provider = provider.to_owned();
    let reader = StreamReader::new(body.map_err(io::Error::other));
    let codec = Lines {
        provider: provider.clone(),
        codec: LinesCodec::new_with_max_length(max_line_bytes),
    };
    let mut first = true;
    // `FramedRead` ends after an error.
    FramedRead::new(reader, codec)
        .map_ok(move |mut line| {
            if std::mem::take(&mut first) && line.starts_with(BYTE_ORDER_MARK) {
                line.remove(0);
            }
            line
        })
        .map_err(move |error| model_error(&provider, error))
        .try_filter(|line| future::ready(!line.trim().is_empty()))
        .fuse()
}

/// A line codec that distinguishes a truncated last line from invalid UTF-8.
struct Lines {
    provider: String,
    codec: LinesCodec,
}

impl Decoder for Lines {
    type Item = String;
    type Error = LinesCodecError;

    fn decode(&mut self, read: &mut BytesMut) -> Result<Option<String>, LinesCodecError> {
        self.codec.decode(read)
    }

    fn decode_eof(&mut self, read: &mut BytesMut) -> Result<Option<String>, LinesCodecError> {
        if let Some(line) = self.codec.decode(read)? {
            return Ok(Some(line));
        }
        match std::str::from_utf8(read) {
            Ok(_) => self.codec.decode_eof(read),
            Err(fault) => Err(io::Error::other(no_text(&self.provider, fault)).into()),
        }
    }
}

fn model_error(provider: &str, error: LinesCodecError) -> ModelError {
    let protocol = |source: Box<dyn std::error::Error + Send + Sync>| {
        let message = format!("the body is not JSON lines: {source}");
        ModelError::new(provider, ModelErrorKind::Protocol, message).with_source(source)
    };
    match error {
        LinesCodecError::Io(error) => match error.downcast::<ModelError>() {
            Ok(error) => error,
            Err(error) => protocol(Box::new(error)),
        },
        error @ LinesCodecError::MaxLineLengthExceeded => protocol(Box::new(error)),
    }
}

#[cfg(test)]
#[path = "ndjson_tests.rs"]
mod tests;

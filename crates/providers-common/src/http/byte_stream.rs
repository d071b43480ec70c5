//! Response bodies as streams of bytes.

use std::{io, pin::Pin, str::Utf8Error};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use switchboard_domain::{ModelError, ModelErrorKind};
use tokio_util::{
    codec::{Decoder, FramedRead},
    io::StreamReader,
};

/// Body of an HTTP response, in pieces as they arrive. Dropping the stream aborts the request. The
/// stream ends after an error.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, ModelError>> + Send>>;

/// Reads a whole response body of `provider`.
///
/// Fails with the stream's error, and with [`ModelErrorKind::Protocol`] if the body has more than
/// `max_bytes`.
pub async fn read_to_end(
    provider: &str,
    mut body: ByteStream,
    max_bytes: usize,
) -> Result<Bytes, ModelError> {
    let mut whole = BytesMut::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        if whole.len().saturating_add(piece.len()) > max_bytes {
            let message = format!("the answer is longer than {max_bytes} bytes");
            return Err(ModelError::new(provider, ModelErrorKind::Protocol, message));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Splits a response body of `provider` into frames. The stream ends after an error. `codec`
/// reports its errors as a [`ModelError`] inside an [`io::Error`].
pub(crate) fn split_frames<C>(
    provider: &str,
    body: ByteStream,
    codec: C,
) -> impl Stream<Item = Result<C::Item, ModelError>> + Send + use<C>
where
    C: Decoder<Error = io::Error> + Send,
    C::Item: Send,
{
    let provider = provider.to_owned();
    let reader = StreamReader::new(body.map_err(io::Error::other));
    FramedRead::new(reader, codec)
        .map_err(move |error| {
            error.downcast::<ModelError>().unwrap_or_else(|error| {
                ModelError::new(&provider, ModelErrorKind::Protocol, error.to_string())
            })
        })
        .fuse()
}

/// Converts a response body of `provider` into text.
///
/// Fails with [`ModelErrorKind::Protocol`] on invalid UTF-8, and with
/// [`ModelErrorKind::Interrupted`] if the body ends inside a multi-byte character.
pub fn as_text<'a>(provider: &str, body: &'a [u8]) -> Result<&'a str, ModelError> {
    let text = str::from_utf8(body).map_err(|fault| invalid_utf8_error(provider, fault))?;
    // Some servers begin with a byte-order mark, which JSON does not allow.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns the error for a response body that is not UTF-8. If only the last character is
/// incomplete, the body was truncated.
pub(crate) fn invalid_utf8_error(provider: &str, fault: Utf8Error) -> ModelError {
    let (kind, message) = match fault.error_len() {
        None => (ModelErrorKind::Interrupted, "it ends within a character"),
        Some(_) => (ModelErrorKind::Protocol, "the answer is not UTF-8 text"),
    };
    ModelError::new(provider, kind, message).with_source(fault)
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};

    use super::*;

    fn read(pieces: &[&[u8]], max_bytes: usize) -> Result<String, ModelErrorKind> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|it| Ok(Bytes::copy_from_slice(it)))
            .collect();
        let body = read_to_end("acme", Box::pin(stream::iter(pieces)), max_bytes);
        // These bodies are ready at once.
        let body = body.now_or_never().expect("the body is there");
        let text = body.and_then(|body| as_text("acme", &body).map(str::to_owned));
        text.map_err(|error| error.kind)
    }

    #[test]
    fn truncated_text_is_distinguished_from_invalid_text() {
        let text = "näh 🦀";
        assert_eq!(read(&[text.as_bytes()], 9).as_deref(), Ok(text));
        assert_eq!(read(&[], 0).as_deref(), Ok(""));
        for cut in 0..text.len() {
            let (begun, rest) = text.as_bytes().split_at(cut);
            assert_eq!(read(&[begun, rest], 9).as_deref(), Ok(text), "{cut}");
            let expected = if text.is_char_boundary(cut) {
                Ok(begun)
            } else {
                Err(&ModelErrorKind::Interrupted)
            };
            let found = read(&[begun], 9);
            assert_eq!(found.as_ref().map(String::as_bytes), expected, "{cut}");
        }
        assert_eq!(read(&[b"a", b"", b"b", b"c"], 3).as_deref(), Ok("abc"));
        assert_eq!(read(&[b"", b"abc", b""], 3).as_deref(), Ok("abc"));
        let marked = "\u{feff}{}".as_bytes();
        assert_eq!(read(&[marked], 9).as_deref(), Ok("{}"));
        let protocol = Err(ModelErrorKind::Protocol);
        assert_eq!(read(&[b"ab", b"cd"], 3), protocol);
        assert_eq!(read(&[b"a\xff"], 9), protocol);
        assert_eq!(read(&[b"\xc3\xff"], 9), protocol);
        assert_eq!(read(&[text.as_bytes()], 8), protocol);
    }
}

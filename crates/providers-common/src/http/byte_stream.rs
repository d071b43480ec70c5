//! Response bodies as streams of bytes.

use std::{
    pin::Pin,
    str::Utf8Error,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::StreamExt as _;
use switchboard_domain::{ModelError, ModelErrorKind};

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

/// A reader that splits the bytes of a response body into frames (SSE events or JSON lines). Stores
/// the current frame in a buffer that it reuses, because an answer has a frame for every token.
pub(crate) trait FrameReader: Send {
    /// Reads the next frame and removes its bytes from `unread`. Returns `false` if `unread` does
    /// not contain a complete frame yet.
    fn read_frame(&mut self, unread: &mut BytesMut) -> Result<bool, ModelError>;

    /// Reads the last frame after the end of the body. This frame may lack the line end or the
    /// empty line that normally ends a frame. Returns `false` if there is none.
    fn read_last_frame(&mut self, unread: &mut BytesMut) -> Result<bool, ModelError>;

    /// Returns the last frame that was read: its SSE event name, which is empty for a JSON line,
    /// and its data.
    fn current_frame(&self) -> (&str, &str);
}

/// A response body that the reader `R` splits into frames.
pub(crate) struct FrameStream<R> {
    /// Stream of the response body. `None` after its end, after an error and after
    /// `close_connection` was called.
    body: Option<ByteStream>,
    /// Received bytes of the frames that were not read yet.
    unread: BytesMut,
    reader: R,
}

impl<R: FrameReader> FrameStream<R> {
    pub(crate) fn new(body: ByteStream, reader: R) -> Self {
        Self {
            body: Some(body),
            unread: BytesMut::new(),
            reader,
        }
    }

    /// Drops the body, which closes an open connection.
    pub(crate) fn close_connection(&mut self) {
        self.body = None;
    }

    /// Reads the next frame, which [`current_frame`](Self::current_frame) then returns. Returns
    /// `false` at the end of the body and after an error.
    pub(crate) fn poll_next_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, ModelError>> {
        loop {
            let Some(body) = &mut self.body else {
                return Poll::Ready(Ok(false));
            };
            let read = match self.reader.read_frame(&mut self.unread) {
                Ok(false) => match ready!(body.as_mut().poll_next(context)) {
                    Some(Ok(piece)) => {
                        self.unread.extend_from_slice(&piece);
                        continue;
                    }
                    Some(Err(error)) => Err(error),
                    None => {
                        self.body = None;
                        self.reader.read_last_frame(&mut self.unread)
                    }
                },
                read => read,
            };
            if read.is_err() {
                self.body = None;
            }
            return Poll::Ready(read);
        }
    }

    /// Reads the next frame if all of its bytes have already been received. Otherwise returns
    /// `false` and does not wait for more bytes.
    pub(crate) fn read_buffered_frame(&mut self) -> Result<bool, ModelError> {
        let read = self.reader.read_frame(&mut self.unread);
        if read.is_err() {
            self.body = None;
        }
        read
    }

    /// Returns the last frame that was read: its SSE event name, which is empty for a JSON line,
    /// and its data.
    pub(crate) fn current_frame(&self) -> (&str, &str) {
        self.reader.current_frame()
    }
}

/// Converts a response body of `provider` into text.
///
/// Fails with [`ModelErrorKind::Protocol`] on invalid UTF-8, and with
/// [`ModelErrorKind::Interrupted`] if the body ends inside a multi-byte character.
pub fn decode_body_text<'a>(provider: &str, body: &'a [u8]) -> Result<&'a str, ModelError> {
    let text = str::from_utf8(body).map_err(|fault| invalid_utf8_error(provider, fault))?;
    // The byte-order mark that some servers send is removed, because JSON does not allow it.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns the error for a response body that is not UTF-8. A body that ends within a character was
/// truncated, so the error kind is then `Interrupted`.
pub(crate) fn invalid_utf8_error(provider: &str, fault: Utf8Error) -> ModelError {
    let (kind, message) = match fault.error_len() {
        None => (
            ModelErrorKind::Interrupted,
            "the body ends in the middle of a character",
        ),
        Some(_) => (ModelErrorKind::Protocol, "the answer is not UTF-8 text"),
    };
    ModelError::new(provider, kind, message).with_source(fault)
}

#[cfg(test)]
pub(crate) mod tests {
    use futures_util::{FutureExt as _, stream};

    use super::*;

    /// Returns all frames of a complete body, and the error at its end.
    pub(crate) fn read_all(
        mut frames: FrameStream<impl FrameReader>,
    ) -> (Vec<(String, String)>, Option<ModelError>) {
        let mut read = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        loop {
            match frames.poll_next_frame(&mut context) {
                Poll::Pending => panic!("the body waits"),
                Poll::Ready(Ok(true)) => {
                    let (name, data) = frames.current_frame();
                    read.push((name.to_owned(), data.to_owned()));
                }
                Poll::Ready(end) => {
                    let next = frames.poll_next_frame(&mut context);
                    assert!(
                        matches!(next, Poll::Ready(Ok(false))),
                        "a frame after the end"
                    );
                    return (read, end.err());
                }
            }
        }
    }

    fn read(pieces: &[&[u8]], max_bytes: usize) -> Result<String, ModelErrorKind> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|it| Ok(Bytes::copy_from_slice(it)))
            .collect();
        let body = read_to_end("acme", Box::pin(stream::iter(pieces)), max_bytes);
        let body = body.now_or_never().expect("the body is there");
        let text = body.and_then(|body| decode_body_text("acme", &body).map(str::to_owned));
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

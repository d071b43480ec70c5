//! A body as it arrives.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::StreamExt as _;
use switchboard_domain::{ModelError, ModelErrorKind};

/// The body of an answer, piece by piece as the network gives it. Dropping it aborts the request.
/// After an error nothing follows.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, ModelError>> + Send>>;

/// Reads a whole body of `provider`, at most `max_bytes` of it.
///
/// Fails with what the stream fails with, and with [`ModelErrorKind::Protocol`] if there is more.
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

//! The body of an answer, watched.

use std::{pin::Pin, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use switchboard_domain::{ModelError, ModelErrorKind, TimeoutPhase};
use tokio::time::timeout;

use super::failure;
use crate::ByteStream;

/// A body as reqwest gives it.
pub(super) type RawBody = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// The first piece that holds anything; `None` if the body is empty.
pub(super) async fn first_piece(body: &mut RawBody) -> reqwest::Result<Option<Bytes>> {
    while let Some(piece) = body.next().await {
        let piece = piece?;
        if !piece.is_empty() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// The beginning of a body, at most `max_bytes` of it, and what came within `limit`. It is read to
/// explain a failure, so that it breaks off is no failure of its own.
pub(super) async fn beginning(mut body: RawBody, max_bytes: usize, limit: Duration) -> Bytes {
    let mut read = BytesMut::new();
    let reading = async {
        while let Some(Ok(piece)) = body.next().await {
            let room = max_bytes.saturating_sub(read.len());
            read.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if read.len() >= max_bytes {
                break;
            }
        }
    };
    timeout(limit, reading).await.ok();
    read.freeze()
}

/// Which answer broke off.
pub(super) struct Origin {
    pub(super) provider: String,
    pub(super) status: u16,
    pub(super) request_id: Option<String>,
}

impl Origin {
    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(&self.provider, kind, message)
            .with_status(self.status)
            .with_request_id(self.request_id.clone())
    }
}

/// A body of which `first` is read, with a time limit for each further piece. The time runs while
/// a piece is waited for, not while the reader is busy.
pub(super) fn watched(
    first: Option<Bytes>,
    rest: RawBody,
    idle_timeout: Duration,
    origin: Origin,
) -> ByteStream {
    let rest = stream::unfold(Some((rest, origin)), move |state| async move {
        let (mut rest, origin) = state?;
        match timeout(idle_timeout, rest.next()).await {
            Ok(Some(Ok(piece))) => Some((Ok(piece), Some((rest, origin)))),
            Ok(Some(Err(error))) => {
                let cause = failure::root_cause(&error);
                let error = origin
                    .error(ModelErrorKind::Interrupted, cause)
                    .with_source(error.without_url());
                Some((Err(error), None))
            }
            Ok(None) => None,
            Err(_) => {
                let kind = ModelErrorKind::Timeout {
                    phase: TimeoutPhase::Idle,
                    after: idle_timeout,
                };
                Some((Err(origin.error(kind, "")), None))
            }
        }
    });
    // `unfold` must not be polled after its end.
    Box::pin(stream::iter(first.map(Ok)).chain(rest).fuse())
}

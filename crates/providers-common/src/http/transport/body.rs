//! Reading of response bodies with time limits.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use switchboard_domain::{ModelError, ModelErrorKind, TimeoutPhase};
use tokio::time::timeout;

use super::{ResponseErrorContext, TransportSettings, connection_errors::root_cause};
use crate::ByteStream;

/// Reads the first non-empty piece of a response body. Returns `None` if the body is empty.
pub(super) async fn read_first_chunk(
    response: &mut reqwest::Response,
) -> reqwest::Result<Option<Bytes>> {
    while let Some(piece) = response.chunk().await? {
        if !piece.is_empty() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Reads the beginning of a failed response's body: at most `max_bytes` bytes, for at most `limit`.
/// Returns what has arrived until then. Read errors are ignored, because the text only explains the
/// failure.
pub(super) async fn read_error_body(
    mut response: reqwest::Response,
    max_bytes: usize,
    limit: Duration,
) -> Bytes {
    let mut read = BytesMut::new();
    let reading = async {
        while let Ok(Some(piece)) = response.chunk().await {
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

/// Returns a body that begins with `first`. If the consumer waits for a further piece longer than
/// the idle time-out, the body ends with a time-out error.
pub(super) fn with_idle_timeout(
    first: Bytes,
    rest: impl Stream<Item = reqwest::Result<Bytes>> + Send + Unpin + 'static,
    shared: Arc<TransportSettings>,
    context: ResponseErrorContext,
) -> ByteStream {
    let rest = stream::unfold(Some((rest, shared, context)), |state| async move {
        let (mut rest, shared, context) = state?;
        let after = shared.config.idle_timeout;
        let error = match timeout(after, rest.next()).await {
            Ok(Some(Ok(piece))) => return Some((Ok(piece), Some((rest, shared, context)))),
            Ok(Some(Err(error))) => {
                let (kind, cause) = (ModelErrorKind::Interrupted, root_cause(&error));
                ModelError::new(&shared.provider, kind, cause).with_source(error.without_url())
            }
            Ok(None) => return None,
            Err(_) => {
                let phase = TimeoutPhase::Idle;
                ModelError::new(
                    &shared.provider,
                    ModelErrorKind::Timeout { phase, after },
                    "",
                )
            }
        };
        Some((Err(context.add_context_to_error(error)), None))
    });
    let first = Some(first).filter(|first| !first.is_empty());
    Box::pin(stream::iter(first.map(Ok)).chain(rest).fuse())
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _, stream};
    use tokio::{
        sync::mpsc,
        time::{Instant, advance},
    };

    use switchboard_domain::redact::Redactor;

    use super::*;
    use crate::{HttpTransport, TransportConfig};

    const IDLE: Duration = Duration::from_secs(10);

    type Sender = mpsc::UnboundedSender<&'static str>;

    /// Returns a body with an idle timeout and the sender of its pieces.
    fn watched(idle_timeout: Duration) -> (Sender, impl Stream<Item = Result<Bytes, ModelError>>) {
        let config = TransportConfig {
            idle_timeout,
            ..TransportConfig::default()
        };
        let transport = HttpTransport::new("acme", &config).unwrap();
        let (send, mut pieces) = mpsc::unbounded_channel();
        let rest = stream::poll_fn(move |context| {
            let piece = pieces.poll_recv(context);
            piece.map(|piece: Option<&'static str>| piece.map(|it| Ok(Bytes::from(it))))
        });
        let context = ResponseErrorContext {
            status: 200,
            request_id: Some("req_1".to_owned()),
            redactor: Redactor::default(),
        };
        let watched = with_idle_timeout(Bytes::from("first"), rest, transport.shared, context);
        (send, watched)
    }

    #[tokio::test(start_paused = true)]
    async fn the_timeout_restarts_for_each_piece() {
        let (send, mut body) = watched(IDLE);
        assert_eq!(body.next().await.unwrap().unwrap(), "first");
        for _ in 0..5 {
            let next = body.next();
            let mut next = std::pin::pin!(next);
            assert!(next.as_mut().now_or_never().is_none());
            advance(Duration::from_millis(9_998)).await;
            assert!(next.as_mut().now_or_never().is_none());
            send.send("more").unwrap();
            assert_eq!(next.await.unwrap().unwrap(), "more");
        }
        let began = Instant::now();
        let error = body.next().await.unwrap().unwrap_err();
        let waited = began.elapsed();
        assert!((IDLE..IDLE + Duration::from_millis(2)).contains(&waited));
        let (phase, after) = (TimeoutPhase::Idle, IDLE);
        assert_eq!(error.kind, ModelErrorKind::Timeout { phase, after });
        assert_eq!(
            (error.http_status(), error.request_id()),
            (Some(200), Some("req_1"))
        );
        // The body has closed the channel after the error.
        assert!(send.send("too late").is_err());
        assert!(body.next().await.is_none() && body.next().await.is_none());
    }
}

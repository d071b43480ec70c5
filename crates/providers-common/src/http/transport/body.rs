//! The body of an answer, with a time limit.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::Version;
use switchboard_domain::{ModelError, ModelErrorKind, TimeoutPhase};
use tokio::time::{Instant, Sleep, timeout};

use super::{Shared, failure};

/// Replacement for a time that the clock cannot represent: 30 years.
const FAR_AWAY: Duration = Duration::from_hours(30 * 365 * 24);

/// Reads the first piece that is not empty. Returns `None` if the body is empty.
pub(super) async fn first_piece(
    response: &mut reqwest::Response,
) -> reqwest::Result<Option<Bytes>> {
    while let Some(piece) = response.chunk().await? {
        if !piece.is_empty() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Returns the rest of the body. `None`: the first piece is the whole body.
pub(super) fn rest_of(
    response: reqwest::Response,
    first: Option<&Bytes>,
) -> Option<reqwest::Response> {
    // Not with HTTP/2: dropping a stream before its end frame would cancel it.
    let is_counted = response.version() < Version::HTTP_2;
    let is_all = first.is_none() || (is_counted && response.content_length() == Some(0));
    (!is_all).then_some(response)
}

/// Reads the beginning of a body, at most `max_bytes` and within `limit`. It explains a failure, so
/// that errors of the body are ignored.
pub(super) async fn beginning(
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

/// The answer that an error in the body belongs to.
pub(super) struct Origin {
    pub(super) shared: Arc<Shared>,
    pub(super) status: u16,
    pub(super) request_id: Option<String>,
}

impl Origin {
    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(&self.shared.provider, kind, message)
            .with_status(self.status)
            .with_request_id(self.request_id.clone())
    }

    fn broken(&self, error: reqwest::Error) -> ModelError {
        let cause = failure::root_cause(&error);
        self.error(ModelErrorKind::Interrupted, cause)
            .with_source(error.without_url())
    }

    fn stalled(&self) -> ModelError {
        let kind = ModelErrorKind::Timeout {
            phase: TimeoutPhase::Idle,
            after: self.shared.config.idle_timeout,
        };
        self.error(kind, "")
    }
}

/// A body whose first piece is `first`, with a time limit for each further piece. The time runs
/// while the stream waits for a piece, not while the reader is busy.
pub(super) struct Watched<S> {
    pub(super) first: Option<Bytes>,
    /// `None` after the end.
    pub(super) rest: Option<S>,
    /// The timer of the whole body, reset for each wait.
    pub(super) timer: Pin<Box<Sleep>>,
    /// Whether the timer runs for the next piece.
    pub(super) waits: bool,
    pub(super) origin: Origin,
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> Stream for Watched<S> {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let Some(rest) = &mut this.rest else {
            return Poll::Ready(None);
        };
        let last = match Pin::new(rest).poll_next(context) {
            Poll::Ready(Some(Ok(piece))) => {
                this.waits = false;
                return Poll::Ready(Some(Ok(piece)));
            }
            Poll::Ready(Some(Err(error))) => Some(this.origin.broken(error)),
            Poll::Ready(None) => None,
            Poll::Pending => {
                if !this.waits {
                    this.waits = true;
                    let end = deadline(this.origin.shared.config.idle_timeout);
                    this.timer.as_mut().reset(end);
                }
                ready!(this.timer.as_mut().poll(context));
                Some(this.origin.stalled())
            }
        };
        this.rest = None;
        Poll::Ready(last.map(Err))
    }
}

/// Returns the end of a time that starts now.
fn deadline(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after).unwrap_or_else(|| now + FAR_AWAY)
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _, stream};
    use tokio::{
        sync::mpsc,
        time::{advance, sleep},
    };

    use super::*;
    use crate::{HttpTransport, TransportConfig};

    const IDLE: Duration = Duration::from_secs(10);

    type Sender = mpsc::UnboundedSender<&'static str>;

    /// A body that says what is sent, and one whose idle time runs on the paused clock.
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
        let watched = Watched {
            first: Some(Bytes::from("first")),
            rest: Some(rest),
            // sleep: the clock is paused; it is what is left of the time for the first byte.
            timer: Box::pin(sleep(Duration::from_millis(1))),
            waits: false,
            origin: Origin {
                shared: Arc::clone(&transport.shared),
                status: 200,
                request_id: Some("req_1".to_owned()),
            },
        };
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
            (error.status(), error.request_id()),
            (Some(200), Some("req_1"))
        );
        // The connection is closed.
        assert!(send.send("too late").is_err());
        assert!(body.next().await.is_none() && body.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_arrived_piece_precedes_the_timeout() {
        let (send, mut body) = watched(IDLE);
        assert_eq!(body.next().await.unwrap().unwrap(), "first");
        assert!(body.next().now_or_never().is_none());
        // The reader is busy for longer than the limit.
        send.send("there").unwrap();
        advance(3 * IDLE).await;
        assert_eq!(body.next().await.unwrap().unwrap(), "there");
        drop(send);
        assert!(body.next().await.is_none() && body.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_infinite_timeout_never_expires() {
        let (send, mut body) = watched(Duration::MAX);
        assert_eq!(body.next().await.unwrap().unwrap(), "first");
        assert!(body.next().now_or_never().is_none());
        advance(Duration::from_hours(1000)).await;
        assert!(body.next().now_or_never().is_none());
        send.send("last").unwrap();
        assert_eq!(body.next().await.unwrap().unwrap(), "last");
    }
}

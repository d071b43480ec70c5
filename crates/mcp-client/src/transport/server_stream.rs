//! The stream on which an HTTP server of the older era says what it says outside its answers.
//!
//! rmcp opens it after the handshake, when the first call may already be on its way. Many servers put
//! their questions there, also those that belong to a call, and what they send while nobody listens
//! is lost: the call then hangs until its deadline. So a server is not ready before it has answered the
//! request for that stream, in whatever way.

use std::sync::Arc;

use tokio::{
    sync::watch,
    time::{Duration, timeout},
};

/// How long that may take. A server that sends no headers before it has something to say is not waited
/// for longer.
const TO_OPEN: Duration = Duration::from_millis(500);

/// Shared between the HTTP client, which sees the requests, and whoever connects.
#[derive(Clone, Default)]
pub(crate) struct ServerStream(Arc<watch::Sender<Seen>>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Seen {
    /// No session, so no stream is asked for.
    #[default]
    Nothing,
    Session,
    Answer,
}

impl ServerStream {
    /// The server began a session, so it will be asked for a stream.
    pub(crate) fn has_session(&self) {
        self.0.send_if_modified(|seen| {
            let first = *seen == Seen::Nothing;
            if first {
                *seen = Seen::Session;
            }
            first
        });
    }

    /// It gave the stream, or said that it has none.
    pub(crate) fn has_answer(&self) {
        self.0.send_replace(Seen::Answer);
    }

    /// Waits until the server can say something, if it is to be asked for a stream at all.
    pub(crate) async fn settled(&self) {
        let mut seen = self.0.subscribe();
        let settled = seen.wait_for(|seen| *seen != Seen::Session);
        if timeout(TO_OPEN, settled).await.is_err() {
            tracing::debug!("the server does not say whether it has a stream of its own");
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_is_waited_for_only_where_a_stream_is_asked_for() {
        let stream = ServerStream::default();
        assert!(stream.settled().now_or_never().is_some());
        stream.has_session();
        assert!(stream.settled().now_or_never().is_none());
        stream.has_answer();
        stream.has_session();
        assert!(stream.settled().now_or_never().is_some());

        let silent = ServerStream::default();
        silent.has_session();
        let begun = Instant::now();
        silent.settled().await;
        assert_eq!(begun.elapsed(), TO_OPEN);
    }
}

//! The stream for messages outside answers, of an HTTP server of 2025-11-25 or older.
//!
//! rmcp opens it after the handshake, possibly after the first call. Many servers send their
//! requests there, also during a call, and lose them while the stream is not open: the call then
//! hangs until its deadline. So a server is ready only when it has answered the request for the
//! stream.

use std::sync::Arc;

use tokio::{
    sync::watch,
    time::{Duration, timeout},
};

/// How long the answer may take. Some servers send no headers before the first message.
const OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// The state of the stream, shared by the HTTP client and the code that connects.
#[derive(Clone, Default)]
pub(crate) struct ServerStream(Arc<watch::Sender<StreamState>>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StreamState {
    /// No session, so no stream is requested.
    #[default]
    NoSession,
    Requested,
    Answered,
}

impl ServerStream {
    /// Records that the server started a session, so that rmcp requests the stream.
    pub(crate) fn session_started(&self) {
        self.0.send_if_modified(|state| {
            let first = *state == StreamState::NoSession;
            if first {
                *state = StreamState::Requested;
            }
            first
        });
    }

    /// Records that the server answered the request for the stream.
    pub(crate) fn answered(&self) {
        self.0.send_replace(StreamState::Answered);
    }

    /// Waits for the answer to the request for the stream, if there is one.
    pub(crate) async fn settled(&self) {
        let mut state = self.0.subscribe();
        let settled = state.wait_for(|state| *state != StreamState::Requested);
        if timeout(OPEN_TIMEOUT, settled).await.is_err() {
            tracing::debug!("no answer to the request for the stream");
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_requested_stream_is_waited_for() {
        let stream = ServerStream::default();
        assert!(stream.settled().now_or_never().is_some());
        stream.session_started();
        assert!(stream.settled().now_or_never().is_none());
        stream.answered();
        stream.session_started();
        assert!(stream.settled().now_or_never().is_some());

        let silent = ServerStream::default();
        silent.session_started();
        let begun = Instant::now();
        silent.settled().await;
        assert_eq!(begun.elapsed(), OPEN_TIMEOUT);
    }
}

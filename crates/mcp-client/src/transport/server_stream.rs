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

/// Time limit for the response headers of the stream. Some servers send no headers before the first
/// message.
const OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// State of the stream for messages of the server, shared by the HTTP client and the code that
/// connects. The value tells whether the request for the stream was answered. `None` without a
/// session, because then no stream is requested.
#[derive(Clone, Default)]
pub(crate) struct ServerStream(Arc<watch::Sender<Option<bool>>>);

impl ServerStream {
    /// Records that the server started a session. rmcp then requests the stream.
    pub(crate) fn session_started(&self) {
        self.0.send_modify(|is_answered| {
            is_answered.get_or_insert(false);
        });
    }

    /// Records that the server answered the request for the stream.
    pub(crate) fn answered(&self) {
        self.0.send_replace(Some(true));
    }

    /// Waits until the server has answered the request for the stream. Returns immediately if no
    /// stream was requested.
    pub(crate) async fn settled(&self) {
        let mut state = self.0.subscribe();
        let settled = state.wait_for(|is_answered| *is_answered != Some(false));
        if timeout(OPEN_TIMEOUT, settled).await.is_err() {
            tracing::debug!("no answer to the request for the stream");
        }
    }
}

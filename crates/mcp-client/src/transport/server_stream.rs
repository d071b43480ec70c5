//! The event stream on which an HTTP server of version 2025-11-25 or older sends its own messages.
//!
//! rmcp opens the stream after the handshake, possibly after the first call. Many servers send
//! their requests on this stream, even during a call, and lose them while it is not open. The call
//! then hangs until its deadline. So a server is ready only after it has answered the request for
//! the stream.

use std::sync::Arc;

use tokio::{
    sync::watch,
    time::{Duration, timeout},
};

/// Time limit to wait for the response headers of the stream. Some servers send no headers before
/// the first message.
const OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// State of a server's event stream, which the HTTP client updates and the connecting code reads.
/// The value is whether the request for the stream was answered. It is `None` without a session,
/// because no stream is requested then.
#[derive(Clone, Default)]
pub(crate) struct ServerStream(Arc<watch::Sender<Option<bool>>>);

impl ServerStream {
    /// Records that the server started a session, for which rmcp then requests the stream.
    pub(crate) fn record_session_start(&self) {
        self.0.send_modify(|is_answered| {
            is_answered.get_or_insert(false);
        });
    }

    /// Records that the server answered the request for the stream, possibly with an error.
    pub(crate) fn record_answer(&self) {
        self.0.send_replace(Some(true));
    }

    /// Waits until the server has answered the request for the stream, at most for
    /// [`OPEN_TIMEOUT`]. Returns immediately if no stream was requested.
    pub(crate) async fn wait_for_answer(&self) {
        let mut state = self.0.subscribe();
        let settled = state.wait_for(|is_answered| *is_answered != Some(false));
        if timeout(OPEN_TIMEOUT, settled).await.is_err() {
            tracing::debug!("no answer to the request for the stream");
        }
    }
}

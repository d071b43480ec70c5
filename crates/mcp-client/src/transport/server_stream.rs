//! The HTTP GET event stream, on which servers up to 2025-11-25 send requests and notifications.
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

/// Time limit to wait for the response headers of the HTTP GET event stream. Some servers send no
/// headers before the first event.
const OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// State of a server's HTTP GET event stream. The HTTP client updates the state, and the connecting
/// code waits for an answer. The value is `None` if no stream was requested, `Some(false)` if the
/// request for the stream has no answer yet, and `Some(true)` after the answer.
#[derive(Clone, Default)]
pub(crate) struct ServerStream(Arc<watch::Sender<Option<bool>>>);

impl ServerStream {
    /// Records that the server started a session. rmcp then requests the stream of this session.
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
            tracing::debug!("the server did not answer the request for the stream");
        }
    }
}

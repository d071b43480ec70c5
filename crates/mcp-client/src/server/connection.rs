//! Connection to a server after the handshake, and the cancellation of its requests.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{
        CancelTaskParams, CancelTaskRequest, CancelledNotificationParam, ClientRequest, RequestId,
        RequestMetaObject, ServerResult,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    time::timeout,
};
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

use crate::primitives::sync::lock_mutex;

/// Time limit to send the cancellation of a request or task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Connection to an MCP server after the handshake.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    /// Tracker of the requests that wait for an answer, and of the cancellations that are being
    /// sent. The supervisor waits briefly for their end before it closes the connection.
    pub(crate) requests: TaskTracker,
    /// Signal that a call on this connection timed out, which starts the hang detection.
    pub(crate) timed_out: Notify,
    /// Number of watchers by resource URI, for servers of versions up to 2025-11-25. The lock is
    /// held during a subscribe or unsubscribe request, so that the server receives these requests
    /// in order.
    pub(crate) watchers: tokio::sync::Mutex<HashMap<String, usize>>,
    /// Reason why the connection ended. `None` while the connection is open.
    end: watch::Sender<Option<String>>,
    /// Reason why the connection is unusable, such as an expired session. `None` while usable.
    stale: watch::Sender<Option<String>>,
    /// Tools whose calls failed because the connection ended. For each of these tools, its circuit
    /// breaker counts the end of the connection once.
    blamed_tools: Mutex<HashSet<String>>,
}

/// Request or task that is cancelled when the caller stops waiting for the result.
pub(crate) enum CancelTarget {
    Request(RequestId),
    Task(String),
}

impl Connection {
    pub(crate) fn new(peer: Peer<RoleClient>) -> Self {
        Self {
            peer,
            requests: TaskTracker::new(),
            timed_out: Notify::new(),
            watchers: tokio::sync::Mutex::default(),
            end: watch::Sender::new(None),
            stale: watch::Sender::new(None),
            blamed_tools: Mutex::default(),
        }
    }

    /// Sends a request and waits for the result. Dropping the future cancels the request.
    pub(crate) async fn send_request(
        &self,
        request: ClientRequest,
        meta: Option<RequestMetaObject>,
    ) -> Result<ServerResult, ServiceError> {
        let mut options = PeerRequestOptions::no_options();
        if let Some(meta) = meta {
            options = options.with_meta(meta);
        }
        let handle = self.peer.send_request_with_option(request, options).await?;
        let mut guard = self.cancel_on_drop(CancelTarget::Request(handle.id));
        // The method `await_response` of rmcp waits for this answer too, but its future is large.
        let answer = handle.rx.await;
        guard.disarm();
        answer.map_err(|_| ServiceError::TransportClosed)?
    }

    pub(crate) fn cancel_on_drop(&self, cancellation: CancelTarget) -> CancelGuard {
        CancelGuard {
            peer: self.peer.clone(),
            cancellation: Some(cancellation),
            token: self.requests.token(),
        }
    }

    /// Returns whether the negotiated protocol version is older than 2026-07-28.
    pub(crate) fn is_legacy_version(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| info.protocol_version.has_initialize())
    }

    /// Records that the connection ended during a call of a tool. Returns whether this is the first
    /// record for the tool.
    pub(crate) fn record_interrupted_tool(&self, tool: &str) -> bool {
        lock_mutex(&self.blamed_tools).insert(tool.to_owned())
    }

    /// Returns whether the connection has ended or is unusable, so that a retry needs a new one.
    pub(crate) fn is_unusable(&self) -> bool {
        self.has_ended() || self.stale.borrow().is_some()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    pub(crate) fn mark_ended(&self, reason: String) {
        self.end.send_replace(Some(reason));
    }

    pub(crate) fn mark_stale(&self, reason: String) {
        self.stale.send_replace(Some(reason));
    }

    /// Waits until the connection ends and returns the reason.
    pub(crate) async fn wait_until_ended(&self) -> String {
        wait_for_failure_reason(&self.end).await
    }

    /// Waits until the connection is marked as unusable and returns the reason.
    pub(crate) async fn wait_until_stale(&self) -> String {
        wait_for_failure_reason(&self.stale).await
    }
}

async fn wait_for_failure_reason(sender: &watch::Sender<Option<String>>) -> String {
    let mut receiver = sender.subscribe();
    // Waiting fails only if the sender is dropped, which this function prevents by borrowing it.
    let reason = receiver.wait_for(Option::is_some).await;
    reason
        .ok()
        .and_then(|reason| reason.clone())
        .unwrap_or_default()
}

/// Guard that cancels a request or a task when it is dropped, unless the result has arrived.
pub(crate) struct CancelGuard {
    peer: Peer<RoleClient>,
    cancellation: Option<CancelTarget>,
    /// Tracker token that keeps the connection open until the cancellation was sent.
    token: TaskTrackerToken,
}

impl CancelGuard {
    pub(crate) fn disarm(&mut self) {
        self.cancellation = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        // Without a tokio runtime the connection is closed, so the server has nothing to cancel.
        let (Some(cancellation), Ok(runtime)) = (self.cancellation.take(), Handle::try_current())
        else {
            return;
        };
        if self.peer.is_transport_closed() {
            return;
        }
        let (peer, token) = (self.peer.clone(), self.token.clone());
        runtime.spawn(async move {
            let _ = timeout(CANCEL_TIMEOUT, send_cancellation(&peer, cancellation)).await;
            drop(token);
        });
    }
}

async fn send_cancellation(
    peer: &Peer<RoleClient>,
    cancellation: CancelTarget,
) -> Result<(), ServiceError> {
    match cancellation {
        CancelTarget::Request(id) => {
            let reason = "the client no longer waits for the result".to_owned();
            let params = CancelledNotificationParam::new(Some(id), Some(reason));
            peer.notify_cancelled(params).await
        }
        CancelTarget::Task(id) => {
            let request = CancelTaskRequest::new(CancelTaskParams::new(id));
            let request = ClientRequest::CancelTaskRequest(request);
            let options = PeerRequestOptions::no_options();
            let handle = peer.send_request_with_option(request, options).await?;
            handle.await_response().await.map(|_| ())
        }
    }
}

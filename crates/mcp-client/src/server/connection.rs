//! A connection to a server after the handshake.

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

use crate::common::sync::lock;

/// How long sending a cancellation may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection to a server after the handshake.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    /// Requests that wait for their answer or for their cancellation. The connection is closed
    /// after them.
    pub(crate) requests: TaskTracker,
    /// Notified when a call timed out.
    pub(crate) timed_out: Notify,
    /// The number of watchers by resource URI, for servers of 2025-11-25 and older. Locked while a
    /// subscription is sent, so that the server receives them in order.
    pub(crate) watchers: tokio::sync::Mutex<HashMap<String, usize>>,
    /// Why the connection ended.
    end: watch::Sender<Option<String>>,
    /// Why the connection is unusable, for example an expired session.
    stale: watch::Sender<Option<String>>,
    /// Tools that were called when the connection ended. The end counts once for each of them.
    blamed_tools: Mutex<HashSet<String>>,
}

/// What to cancel.
pub(crate) enum Cancellation {
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
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        meta: Option<RequestMetaObject>,
    ) -> Result<ServerResult, ServiceError> {
        let mut options = PeerRequestOptions::no_options();
        if let Some(meta) = meta {
            options = options.with_meta(meta);
        }
        let handle = self.peer.send_request_with_option(request, options).await?;
        let mut guard = self.cancel_on_drop(Cancellation::Request(handle.id.clone()));
        let answer = handle.await_response().await;
        guard.disarm();
        answer
    }

    pub(crate) fn cancel_on_drop(&self, cancellation: Cancellation) -> CancelGuard {
        CancelGuard {
            peer: self.peer.clone(),
            cancellation: Some(cancellation),
            token: self.requests.token(),
        }
    }

    /// Returns whether the protocol version is older than 2026-07-28.
    pub(crate) fn is_legacy(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| info.protocol_version.has_initialize())
    }

    /// Returns whether this is the first time that the end of the connection counts for this tool.
    pub(crate) fn blame(&self, tool: &str) -> bool {
        lock(&self.blamed_tools).insert(tool.to_owned())
    }

    /// Returns whether the connection ended or is unusable.
    pub(crate) fn is_gone(&self) -> bool {
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

    /// Waits for the end of the connection and returns its reason.
    pub(crate) async fn ended(&self) -> String {
        reason(&self.end).await
    }

    /// Waits until the connection is unusable and returns the reason.
    pub(crate) async fn became_stale(&self) -> String {
        reason(&self.stale).await
    }
}

async fn reason(sender: &watch::Sender<Option<String>>) -> String {
    let mut receiver = sender.subscribe();
    // Fails only without a sender, which is borrowed.
    let reason = receiver.wait_for(Option::is_some).await;
    reason
        .ok()
        .and_then(|reason| reason.clone())
        .unwrap_or_default()
}

/// Cancels a request or a task on drop, unless it was disarmed.
pub(crate) struct CancelGuard {
    peer: Peer<RoleClient>,
    cancellation: Option<Cancellation>,
    /// Keeps the connection open until the cancellation was sent.
    token: TaskTrackerToken,
}

impl CancelGuard {
    pub(crate) fn disarm(&mut self) {
        self.cancellation = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        // Without a runtime the connection does not exist any more.
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
    cancellation: Cancellation,
) -> Result<(), ServiceError> {
    match cancellation {
        Cancellation::Request(id) => {
            let reason = "the client does not wait for the result any more".to_owned();
            let params = CancelledNotificationParam::new(Some(id), Some(reason));
            peer.notify_cancelled(params).await
        }
        Cancellation::Task(id) => {
            let request = CancelTaskRequest::new(CancelTaskParams::new(id));
            let request = ClientRequest::CancelTaskRequest(request);
            let options = PeerRequestOptions::no_options();
            let handle = peer.send_request_with_option(request, options).await?;
            handle.await_response().await.map(|_| ())
        }
    }
}

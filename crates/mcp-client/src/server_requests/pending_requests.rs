//! Requests of a server that wait for a person or a model. They pause the deadline of their call.

use std::sync::Arc;

use tokio::sync::watch;

use crate::transport::call_context::{CallContext, RequestContext};

/// Maximum number of pending requests per server, from all users. Further requests are rejected.
const MAX_PENDING: usize = 256;

/// Contexts of the server requests, such as elicitations, that wait for a person or a model. Each
/// context lists the calls that its request may belong to.
pub(crate) type PendingRequests = Vec<Arc<RequestContext>>;

/// Receiver of a server's pending requests. It shows whether any of them may belong to `call`.
pub(crate) struct PendingCallRequests {
    pub(super) requests: watch::Receiver<PendingRequests>,
    pub(super) call: Arc<CallContext>,
}

impl PendingCallRequests {
    /// Waits until a server request is pending that may belong to the call. If `is_pending` is
    /// `false`, waits until no such request is pending.
    pub(crate) async fn wait_for_pending_requests(&mut self, is_pending: bool) {
        let Self { requests, call } = self;
        let changed = requests.wait_for(|requests| {
            let mut calls = requests.iter().flat_map(|context| &context.calls);
            calls.any(|it| Arc::ptr_eq(&it.call, call)) == is_pending
        });
        if changed.await.is_err() {
            // The sender was dropped, so the pending requests can no longer change.
            std::future::pending::<()>().await;
        }
    }
}

/// Registers a pending request until the returned guard is dropped. Returns `None` if
/// [`MAX_PENDING`] requests are already pending.
pub(super) fn register_pending<'a>(
    requests: &'a watch::Sender<PendingRequests>,
    context: &RequestContext,
) -> Option<PendingGuard<'a>> {
    let context = Arc::new(context.clone());
    let is_registered = requests.send_if_modified(|requests| {
        let has_room = requests.len() < MAX_PENDING;
        if has_room {
            requests.push(Arc::clone(&context));
        }
        has_room
    });
    is_registered.then_some(PendingGuard { requests, context })
}

/// Guard of a registered pending request. Dropping the guard removes the request from the pending
/// requests.
pub(super) struct PendingGuard<'a> {
    requests: &'a watch::Sender<PendingRequests>,
    context: Arc<RequestContext>,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        let is_other = |it: &Arc<RequestContext>| !Arc::ptr_eq(it, &self.context);
        self.requests
            .send_modify(|requests| requests.retain(is_other));
    }
}

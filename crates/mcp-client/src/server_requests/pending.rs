//! Requests of a server that wait for a person or a model. They pause the deadlines of their calls.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{calls::context::CallContext, server_requests::context::RequestContext};

/// Maximum number of pending requests of one server. They may be for many people.
const MAX_PENDING: usize = 256;

/// The requests of one server that wait for an answer.
#[derive(Default)]
pub(crate) struct PendingRequests {
    pending: Vec<Pending>,
    next_number: u64,
}

struct Pending {
    number: u64,
    context: RequestContext,
}

impl PendingRequests {
    fn concerns(&self, call: &Arc<CallContext>) -> bool {
        let mut calls = self.pending.iter().flat_map(|it| &it.context.calls);
        calls.any(|it| Arc::ptr_eq(&it.call, call))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }
}

/// The pending requests that concern one call.
pub(crate) struct PendingForCall {
    requests: watch::Receiver<PendingRequests>,
    call: Arc<CallContext>,
}

impl PendingForCall {
    pub(crate) fn new(requests: watch::Receiver<PendingRequests>, call: &Arc<CallContext>) -> Self {
        Self {
            requests,
            call: Arc::clone(call),
        }
    }

    /// Waits until a request is pending, or until none is.
    pub(crate) async fn until(&mut self, is_pending: bool) {
        let Self { requests, call } = self;
        let changed = requests.wait_for(|requests| requests.concerns(call) == is_pending);
        if changed.await.is_err() {
            // The sender was dropped, so nothing changes any more.
            std::future::pending::<()>().await;
        }
    }
}

/// Registers a pending request until the guard is dropped. Returns `None` if there are too many.
pub(crate) fn register<'a>(
    requests: &'a watch::Sender<PendingRequests>,
    context: &RequestContext,
) -> Option<PendingGuard<'a>> {
    let mut number = None;
    requests.send_if_modified(|requests| {
        if requests.pending.len() >= MAX_PENDING {
            return false;
        }
        requests.pending.push(Pending {
            number: requests.next_number,
            context: context.clone(),
        });
        number = Some(requests.next_number);
        requests.next_number += 1;
        true
    });
    number.map(|number| PendingGuard { requests, number })
}

/// A registered pending request.
pub(crate) struct PendingGuard<'a> {
    requests: &'a watch::Sender<PendingRequests>,
    number: u64,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.requests
            .send_modify(|requests| requests.pending.retain(|it| it.number != self.number));
    }
}

//! The requests of the client on one connection that the server has not answered yet.

use std::{future::pending, sync::Arc, time::Duration};

use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use switchboard_domain::{ProgressSink, ToolProgress};
use tokio::{sync::watch, time::Instant};

use crate::transport::call_context::{CallContext, CandidateCall, RequestContext};

/// Time during which the server may still send requests for a call that the client cancelled.
const ABANDONED_TIME: Duration = Duration::from_mins(10);

/// Client requests on one connection that the server has not answered. The transport records
/// requests and answers in order, and the handlers of server requests read them. A server may send
/// requests only during a call (MCP 2026-07-28, "Request association").
#[derive(Clone, Default)]
pub(crate) struct OpenRequests(Arc<watch::Sender<Vec<OpenRequest>>>);

/// Progress token of a request, and the receiver of its progress reports.
type Listener = (ProgressToken, ProgressSink);

struct OpenRequest {
    id: RequestId,
    /// Call that this request belongs to. `None` if the server must not send its own requests
    /// before it answers this request.
    call: Option<Arc<CallContext>>,
    /// Receiver of progress reports for this request. `None` if the caller needs no reports.
    progress: Option<Listener>,
    /// Time until which the server may send requests for a call that was cancelled or timed out.
    /// `None` while the request is open.
    abandoned_until: Option<Instant>,
}

impl OpenRequest {
    fn is_open(&self) -> bool {
        self.abandoned_until.is_none()
    }
}

impl OpenRequests {
    /// Records a sent request. `call` is set if the server may send its own requests before it
    /// answers this request.
    pub(crate) fn record_request(
        &self,
        id: RequestId,
        call: Option<Arc<CallContext>>,
        progress: Option<Listener>,
    ) {
        self.0.send_if_modified(|requests| {
            requests.push(OpenRequest {
                id,
                call,
                progress,
                abandoned_until: None,
            });
            // Returning `false` wakes no waiting task. Tasks wait only for the end of requests, not
            // for new ones.
            false
        });
    }

    /// Passes a progress report to the receiver that belongs to its progress token.
    pub(crate) fn report_progress(&self, report: &ProgressNotificationParam) {
        let requests = self.0.borrow();
        let open = requests.iter().filter(|request| request.is_open());
        let mut listeners = open.filter_map(|request| request.progress.as_ref());
        let token = &report.progress_token.0;
        let listener = listeners.find(|(known, _)| is_same_id(&known.0, token));
        let listener = listener.cloned();
        drop(requests);
        if let Some((_, sink)) = listener {
            sink.report_progress(ToolProgress {
                progress: report.progress,
                total: report.total,
                message: report.message.clone(),
            });
        }
    }

    /// Records that the server answered a request, and removes the request from the list.
    pub(crate) fn record_answer(&self, id: &RequestId) {
        self.0
            .send_modify(|requests| requests.retain(|request| !is_same_id(&request.id, id)));
    }

    /// Records that the client cancelled a request, for example after a time-out. A cancelled call
    /// stays recorded for [`ABANDONED_TIME`], because the server may still send requests for it.
    /// Other requests are removed.
    pub(crate) fn mark_abandoned(&self, id: &RequestId) {
        self.0.send_modify(|requests| {
            let now = Instant::now();
            requests.retain(|request| {
                let expired = request.abandoned_until.is_some_and(|until| until <= now);
                !expired && (request.call.is_some() || !is_same_id(&request.id, id))
            });
            if let Some(call) = requests.iter_mut().find(|it| is_same_id(&it.id, id)) {
                call.abandoned_until = Some(now + ABANDONED_TIME);
            }
        });
    }

    /// Removes all requests, because the server will not answer them.
    pub(crate) fn remove_all(&self) {
        self.0.send_replace(Vec::new());
    }

    /// Returns the id of the open request. Returns `None` if several or no requests are open.
    pub(crate) fn only_open_request_id(&self) -> Option<RequestId> {
        let requests = self.0.borrow();
        let mut open = requests.iter().filter(|request| request.is_open());
        let only = open.next()?;
        open.next().is_none().then(|| only.id.clone())
    }

    /// Returns the open call whose client request has this id. Returns `None` if the call is not
    /// open.
    pub(crate) fn find_call_by_id(&self, id: &RequestId) -> Option<CandidateCall> {
        self.find_open_call(|request, _| request.id == *id)
    }

    /// Returns the open call that has this idempotency key. Returns `None` if the call is not open.
    pub(crate) fn find_call_by_key(&self, key: &str) -> Option<CandidateCall> {
        self.find_open_call(|_, call| call.idempotency_key.as_deref() == Some(key))
    }

    fn find_open_call(
        &self,
        matches: impl Fn(&OpenRequest, &CallContext) -> bool,
    ) -> Option<CandidateCall> {
        let requests = self.0.borrow();
        let mut open = requests.iter().filter(|request| request.is_open());
        open.find_map(|request| {
            let call = request.call.as_ref()?;
            matches(request, call).then(|| to_candidate_call(request, call))
        })
    }

    /// Returns all calls that a server request may belong to: open calls, and calls that were
    /// abandoned in the last ten minutes.
    pub(crate) fn candidate_calls(&self) -> RequestContext {
        let now = Instant::now();
        let requests = self.0.borrow();
        let calls = requests
            .iter()
            .filter(|request| request.abandoned_until.is_none_or(|until| until > now))
            .filter_map(|request| Some(to_candidate_call(request, request.call.as_ref()?)));
        RequestContext {
            calls: calls.collect(),
            others: false,
        }
    }

    /// Waits until all calls in `context` have been answered or abandoned. If the server put its
    /// request into the result of a call, no call is open, and the function never returns.
    pub(crate) async fn wait_until_calls_end(&self, context: &RequestContext) {
        for candidate in &context.calls {
            match &candidate.request {
                Some(request) => self.wait_until_request_ends(request).await,
                None => pending().await,
            }
        }
    }

    /// Waits until the request with this id has been answered or abandoned.
    async fn wait_until_request_ends(&self, id: &RequestId) {
        let mut requests = self.0.subscribe();
        let is_closed = |requests: &Vec<OpenRequest>| {
            let mut open = requests.iter().filter(|request| request.is_open());
            open.all(|request| request.id != *id)
        };
        // Waiting fails only if the sender is dropped, and this function borrows the sender.
        let _ = requests.wait_for(is_closed).await;
    }
}

fn to_candidate_call(request: &OpenRequest, call: &Arc<CallContext>) -> CandidateCall {
    CandidateCall {
        request: Some(request.id.clone()),
        call: Arc::clone(call),
    }
}

/// Returns whether a received id equals the id of a sent request. The text `"1"` equals the number
/// 1, because some servers return a number as text.
pub(crate) fn is_same_id(sent: &RequestId, received: &RequestId) -> bool {
    match (sent, received) {
        (RequestId::Number(number), RequestId::String(text)) => text.parse() == Ok(*number),
        _ => sent == received,
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_unanswered_cancelled_call_stays_a_candidate_for_ten_minutes() {
        let open = OpenRequests::default();
        let begin = |id, key: &str| {
            let call = CallContext::new(Some(key.to_owned()));
            open.record_request(RequestId::Number(id), Some(call), None);
        };
        let keys = || {
            let calls = open.candidate_calls().calls.into_iter();
            let keys = calls.filter_map(|it| it.call.idempotency_key.clone());
            keys.collect::<Vec<_>>()
        };
        for (id, key) in [(0, "a"), (1, "b"), (2, "c")] {
            begin(id, key);
        }
        open.mark_abandoned(&RequestId::Number(0));
        open.mark_abandoned(&RequestId::Number(2));
        assert_eq!(keys(), ["a", "b", "c"]);
        assert_eq!(open.only_open_request_id(), Some(RequestId::Number(1)));
        // The server answers one of the cancelled calls.
        open.record_answer(&RequestId::Number(2));
        assert_eq!(keys(), ["a", "b"]);
        advance(ABANDONED_TIME).await;
        assert_eq!(keys(), ["b"]);
    }
}

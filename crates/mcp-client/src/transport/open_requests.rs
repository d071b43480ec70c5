//! The requests of the client that a server has not answered yet, on one connection.

use std::{future::pending, sync::Arc, time::Duration};

use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use switchboard_domain::{ProgressSink, ToolProgress};
use tokio::{sync::watch, time::Instant};

use crate::transport::call_context::{CallContext, CandidateCall, RequestContext};

/// How long a server may send requests for a call that it did not answer after its cancellation.
const ABANDONED_TIME: Duration = Duration::from_mins(10);

/// Shared by the transport, which sees requests and answers in order, and the handlers of server
/// requests. A server may send requests only during a call (2026-07-28, "Request association").
#[derive(Clone, Default)]
pub(crate) struct OpenRequests(Arc<watch::Sender<Vec<OpenRequest>>>);

/// The receiver of progress with this token.
type Listener = (ProgressToken, ProgressSink);

struct OpenRequest {
    id: RequestId,
    /// The call, if the server may send requests during it.
    call: Option<Arc<CallContext>>,
    /// The receiver of its progress.
    progress: Option<Listener>,
    /// Set for a call that was cancelled or timed out: until when the server may send requests for
    /// it, because a server need not stop then.
    abandoned_until: Option<Instant>,
}

impl OpenRequest {
    fn is_open(&self) -> bool {
        self.abandoned_until.is_none()
    }
}

impl OpenRequests {
    /// Records a request. `call` is the call, if the server may send requests during it.
    pub(crate) fn begin(
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
            // Waiters are only interested in ends.
            false
        });
    }

    /// Passes progress to its receiver.
    pub(crate) fn report_progress(&self, report: &ProgressNotificationParam) {
        let requests = self.0.borrow();
        let open = requests.iter().filter(|request| request.is_open());
        let mut listeners = open.filter_map(|request| request.progress.as_ref());
        let token = &report.progress_token.0;
        let listener = listeners
            .find(|(known, _)| is_same(&known.0, token))
            .cloned();
        drop(requests);
        if let Some((_, sink)) = listener {
            sink.report(ToolProgress {
                progress: report.progress,
                total: report.total,
                message: report.message.clone(),
            });
        }
    }

    /// Records that the server answered.
    pub(crate) fn answered(&self, id: &RequestId) {
        self.0
            .send_modify(|requests| requests.retain(|request| !is_same(&request.id, id)));
    }

    /// Records that a request was cancelled or timed out.
    pub(crate) fn abandoned(&self, id: &RequestId) {
        self.0.send_modify(|requests| {
            let now = Instant::now();
            requests.retain(|request| {
                let expired = request.abandoned_until.is_some_and(|until| until <= now);
                !expired && (request.call.is_some() || !is_same(&request.id, id))
            });
            if let Some(call) = requests.iter_mut().find(|it| is_same(&it.id, id)) {
                call.abandoned_until = Some(now + ABANDONED_TIME);
            }
        });
    }

    /// Records the end of the connection.
    pub(crate) fn end_all(&self) {
        self.0.send_replace(Vec::new());
    }

    /// Returns the id of the only open request.
    pub(crate) fn only_open(&self) -> Option<RequestId> {
        let requests = self.0.borrow();
        let mut open = requests.iter().filter(|request| request.is_open());
        let only = open.next()?;
        open.next().is_none().then(|| only.id.clone())
    }

    /// Returns the open call with this request id.
    pub(crate) fn call(&self, id: &RequestId) -> Option<CandidateCall> {
        self.open_call(|request, _| request.id == *id)
    }

    /// Returns the open call with this idempotency key.
    pub(crate) fn call_by_key(&self, key: &str) -> Option<CandidateCall> {
        self.open_call(|_, call| call.idempotency_key.as_deref() == Some(key))
    }

    fn open_call(
        &self,
        matches: impl Fn(&OpenRequest, &CallContext) -> bool,
    ) -> Option<CandidateCall> {
        let requests = self.0.borrow();
        let mut open = requests.iter().filter(|request| request.is_open());
        open.find_map(|request| {
            let call = request.call.as_ref()?;
            matches(request, call).then(|| candidate(request, call))
        })
    }

    /// Returns the calls that a request of the server may belong to: every open call, and every
    /// abandoned call that has no answer.
    pub(crate) fn candidates(&self) -> RequestContext {
        let now = Instant::now();
        let requests = self.0.borrow();
        let calls = requests
            .iter()
            .filter(|request| request.abandoned_until.is_none_or(|until| until > now))
            .filter_map(|request| Some(candidate(request, request.call.as_ref()?)));
        RequestContext {
            calls: calls.collect(),
            others: false,
        }
    }

    /// Waits until the calls of a server request have ended, so that no answer is needed.
    pub(crate) async fn all_closed(&self, context: &RequestContext) {
        for candidate in &context.calls {
            match &candidate.request {
                Some(request) => self.closed(request).await,
                None => pending().await,
            }
        }
    }

    /// Waits until this request is not open.
    async fn closed(&self, id: &RequestId) {
        let mut requests = self.0.subscribe();
        let is_closed = |requests: &Vec<OpenRequest>| {
            let mut open = requests.iter().filter(|request| request.is_open());
            open.all(|request| request.id != *id)
        };
        // Fails only without a sender, which is borrowed.
        let _ = requests.wait_for(is_closed).await;
    }
}

fn candidate(request: &OpenRequest, call: &Arc<CallContext>) -> CandidateCall {
    CandidateCall {
        request: Some(request.id.clone()),
        call: Arc::clone(call),
    }
}

/// Compares the id of a request with a received id. Some servers send the number 1 as the text "1".
pub(crate) fn is_same(sent: &RequestId, received: &RequestId) -> bool {
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
            open.begin(RequestId::Number(id), Some(call), None);
        };
        let keys = || {
            let calls = open.candidates().calls.into_iter();
            let keys = calls.filter_map(|it| it.call.idempotency_key.clone());
            keys.collect::<Vec<_>>()
        };
        for (id, key) in [(0, "a"), (1, "b"), (2, "c")] {
            begin(id, key);
        }
        open.abandoned(&RequestId::Number(0));
        open.abandoned(&RequestId::Number(2));
        assert_eq!(keys(), ["a", "b", "c"]);
        assert_eq!(open.only_open(), Some(RequestId::Number(1)));
        // The server answers one of the cancelled calls.
        open.answered(&RequestId::Number(2));
        assert_eq!(keys(), ["a", "b"]);
        advance(ABANDONED_TIME).await;
        assert_eq!(keys(), ["b"]);
    }
}

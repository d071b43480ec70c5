//! Which of our requests a server has not answered yet, on one connection.

use std::sync::Arc;

use rmcp::model::RequestId;
use tokio::sync::watch;

/// Shared between the wire, which sees requests and answers in order, and those who must know whether
/// a call goes on: a server may ask something only within one (2026-07-28, "Request association").
#[derive(Clone, Default)]
pub(crate) struct OpenRequests(Arc<watch::Sender<Vec<Open>>>);

struct Open {
    id: RequestId,
    may_ask: bool,
    /// The call of a tool that it is, by its idempotency key.
    call: Option<Arc<str>>,
}

impl OpenRequests {
    /// `may_ask`: whether the server may ask something before it answers; `call`: the idempotency key of the call
    /// that it is, if it is one.
    pub(crate) fn begin(&self, id: RequestId, may_ask: bool, call: Option<&str>) {
        let call = call.map(Arc::from);
        self.0.send_if_modified(|open| {
            open.push(Open { id, may_ask, call });
            // Nobody waits for a beginning, so nobody is woken.
            false
        });
    }

    pub(crate) fn end(&self, is_it: impl Fn(&RequestId) -> bool) {
        self.0.send_if_modified(|open| {
            let before = open.len();
            open.retain(|open| !is_it(&open.id));
            // Mostly nobody waits; and whoever comes later reads what is open then.
            open.len() < before && self.0.receiver_count() > 0
        });
    }

    /// The connection is no more, so nothing will be answered.
    pub(crate) fn end_all(&self) {
        self.0.send_if_modified(|open| {
            let any = !open.is_empty();
            open.clear();
            any
        });
    }

    /// The only one there is.
    pub(crate) fn sole(&self) -> Option<RequestId> {
        match self.0.borrow().as_slice() {
            [sole] => Some(sole.id.clone()),
            _ => None,
        }
    }

    /// Those within which the server may ask something.
    pub(crate) fn calls(&self) -> Vec<RequestId> {
        let open = self.0.borrow();
        let calls = open.iter().filter(|open| open.may_ask);
        calls.map(|open| open.id.clone()).collect()
    }

    /// The call that is this request, if it is open.
    pub(crate) fn call(&self, id: &RequestId) -> Option<Arc<str>> {
        let open = self.0.borrow();
        let found = open.iter().find(|open| open.id == *id)?;
        found.call.clone()
    }

    /// The call within which the server asks something, where it does not say so: the only request within which
    /// it may.
    pub(crate) fn sole_call(&self) -> Option<Arc<str>> {
        let open = self.0.borrow();
        let mut may_ask = open.iter().filter(|open| open.may_ask);
        match (may_ask.next(), may_ask.next()) {
            (Some(sole), None) => sole.call.clone(),
            _ => None,
        }
    }

    /// Waits until none of `requests` is open any more; at once if they are none.
    pub(crate) async fn ended(&self, requests: &[RequestId]) {
        let mut open = self.0.subscribe();
        // Fails only without a sender, which is borrowed.
        let _ = open
            .wait_for(|open| !open.iter().any(|open| requests.contains(&open.id)))
            .await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_end_of_all_of_them_is_heard_and_no_other() {
        let open = OpenRequests::default();
        let ids: Vec<RequestId> = (0..3).map(RequestId::Number).collect();
        for id in &ids {
            open.begin(id.clone(), *id != ids[2], None);
        }
        let first_two = &ids[..2];
        assert_eq!(open.calls(), first_two);
        assert_eq!(open.sole(), None);
        open.end(|id| *id == ids[0]);
        assert!(open.ended(first_two).now_or_never().is_none());
        open.end(|id| *id == ids[1]);
        assert!(open.ended(first_two).now_or_never().is_some());
        assert_eq!(open.sole(), Some(ids[2].clone()));
        assert!(open.ended(&ids).now_or_never().is_none());
        open.end_all();
        assert!(open.ended(&ids).now_or_never().is_some());
        assert_eq!(open.sole(), None);
    }

    #[test]
    fn a_question_belongs_to_a_call_only_where_that_is_certain() {
        let open = OpenRequests::default();
        let ids: Vec<RequestId> = (0..4).map(RequestId::Number).collect();
        assert_eq!(open.sole_call(), None, "none is under way");
        open.begin(ids[0].clone(), true, Some("run/1/a"));
        // Within these a server asks nothing.
        open.begin(ids[1].clone(), false, None);
        assert_eq!(open.sole_call().as_deref(), Some("run/1/a"));
        open.begin(ids[2].clone(), true, Some("other/1/b"));
        assert_eq!(open.sole_call(), None, "it may be either of them");
        assert_eq!(open.call(&ids[2]).as_deref(), Some("other/1/b"));
        open.end(|id| *id == ids[0]);
        assert_eq!(open.sole_call().as_deref(), Some("other/1/b"));
        assert_eq!(open.call(&ids[0]), None, "it is over");
        // A resource is being read: its questions are no call's.
        open.begin(ids[3].clone(), true, None);
        assert_eq!(open.sole_call(), None);
        open.end(|id| *id == ids[2]);
        assert_eq!(open.sole_call(), None);
    }
}

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
}

impl OpenRequests {
    /// `may_ask`: whether the server may ask something before it answers.
    pub(crate) fn begin(&self, id: RequestId, may_ask: bool) {
        self.0.send_if_modified(|open| {
            open.push(Open { id, may_ask });
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
            open.begin(id.clone(), *id != ids[2]);
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
}

use futures_util::FutureExt;
use tokio::time::advance;

use super::*;

fn call(key: &str) -> Arc<CallContext> {
    CallContext::new(Some(key.to_owned()))
}

impl OpenRequests {
    fn begin_calls(&self, calls: &[(i64, &str)]) {
        for (id, key) in calls {
            self.begin(RequestId::Number(*id), Some(call(key)));
        }
    }

    fn end_call(&self, id: i64, end: RequestEnd) {
        self.end(&RequestId::Number(id), end);
    }

    /// Returns the key of the call that a request of the server belongs to now.
    fn only_key(&self) -> Option<String> {
        only_key(&self.candidates(false))
    }
}

fn only_key(candidates: &CandidateCalls) -> Option<String> {
    candidates.only()?.idempotency_key.clone()
}

#[test]
fn waiters_return_when_the_calls_have_ended() {
    let open = OpenRequests::default();
    open.begin_calls(&[(0, "a"), (1, "b")]);
    open.begin(RequestId::Number(2), None);
    assert_eq!(open.only_open(), None);
    let (candidates, first) = (open.candidates(false), RequestId::Number(0));
    open.end_call(1, RequestEnd::Answered);
    assert!(open.closed(&first).now_or_never().is_none());
    assert!(open.all_closed(&candidates).now_or_never().is_none());
    open.end_call(0, RequestEnd::Abandoned);
    assert!(open.closed(&first).now_or_never().is_some());
    assert!(open.all_closed(&candidates).now_or_never().is_some());
    assert_eq!(open.only_open(), Some(RequestId::Number(2)));
    open.end_all();
    assert_eq!(open.only_open(), None);
    assert!(open.candidates(false).calls().is_empty());
}

#[test]
fn a_server_request_belongs_to_a_call_only_if_it_is_the_only_candidate() {
    let open = OpenRequests::default();
    assert_eq!(open.only_key(), None, "no call is open");
    open.begin_calls(&[(0, "run/1/a")]);
    // A server may not send requests during this one.
    open.begin(RequestId::Number(1), None);
    assert_eq!(open.only_key().as_deref(), Some("run/1/a"));
    assert_eq!(only_key(&open.candidates(true)), None);
    open.begin_calls(&[(2, "other/1/b")]);
    let both = open.candidates(false);
    assert_eq!(only_key(&both), None);
    assert_eq!(both.keys().calls, ["run/1/a", "other/1/b"]);
    assert!(!both.keys().others);
    let (id, _) = open.call_by_key("other/1/b").unwrap();
    assert_eq!(id, RequestId::Number(2));
    open.end_call(0, RequestEnd::Answered);
    assert_eq!(open.only_key().as_deref(), Some("other/1/b"));
    assert!(open.call(&RequestId::Number(0)).is_none());
    // A read of a resource is not a call.
    open.begin(RequestId::Number(3), Some(Arc::default()));
    let with_read = open.candidates(false);
    assert_eq!(only_key(&with_read), None);
    assert!(with_read.keys().others);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_cancelled_call_stays_a_candidate_for_ten_minutes() {
    let open = OpenRequests::default();
    open.begin_calls(&[(0, "a")]);
    open.end_call(0, RequestEnd::Abandoned);
    open.begin_calls(&[(1, "b")]);
    assert_eq!(open.candidates(false).keys().calls, ["b", "a"]);
    assert_eq!(open.only_key(), None);
    // The server answers the cancelled call.
    open.end_call(0, RequestEnd::Answered);
    assert_eq!(open.only_key().as_deref(), Some("b"));

    open.begin_calls(&[(2, "c")]);
    open.end_call(2, RequestEnd::Abandoned);
    let moment = Duration::from_millis(1);
    advance(ABANDONED_TIME.saturating_sub(moment)).await;
    assert_eq!(open.only_key(), None);
    advance(moment).await;
    assert_eq!(open.only_key().as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn more_abandoned_calls_than_are_recorded_make_the_candidates_incomplete() {
    let open = OpenRequests::default();
    let count = i64::try_from(MAX_ABANDONED).unwrap() + 1;
    for id in 0..count {
        open.begin_calls(&[(id, "a")]);
        open.end_call(id, RequestEnd::Abandoned);
    }
    open.begin_calls(&[(count, "b")]);
    for id in 0..count {
        open.end_call(id, RequestEnd::Answered);
    }
    let candidates = open.candidates(false);
    assert_eq!(candidates.keys().calls, ["b"]);
    assert!(candidates.keys().others);
    assert_eq!(only_key(&candidates), None);
    advance(ABANDONED_TIME).await;
    assert_eq!(open.only_key().as_deref(), Some("b"));
}

use std::sync::Arc;

use futures_util::FutureExt as _;
use switchboard_domain::{ApprovalScope, ToolInput, ToolUse};

use super::*;

fn request(id: &str) -> ApprovalRequest {
    ApprovalRequest::new("run", ToolUse::new(id, "t", ToolInput::parse_input("{}")))
}

fn allow() -> ApprovalDecision {
    ApprovalDecision::Allow {
        input: None,
        scope: ApprovalScope::Once,
    }
}

fn approvals(default: ApprovalDecision) -> PendingApprovals {
    PendingApprovals::new(default, Duration::from_mins(1), Vec::new())
}

fn awaiting(id: &str) -> RunEventKind {
    RunEventKind::ToolAwaitingApproval { id: id.to_owned() }
}

fn finished(id: &str) -> RunEventKind {
    RunEventKind::ToolFinished {
        id: id.to_owned(),
        is_error: false,
        failure: None,
        cached: false,
        attempts: 1,
        duration_ms: 0,
        content: Vec::new().into(),
        structured: None,
    }
}

#[tokio::test]
async fn decisions_are_accepted_in_any_order() {
    let approvals = approvals(ApprovalDecision::Later);
    let requests = [request("a"), request("b")];
    let mut decided = Box::pin(approvals.await_decision(&requests));
    assert!(decided.as_mut().now_or_never().is_none());
    assert_eq!(approvals.awaited_approval_requests(), requests);
    assert!(!approvals.submit_decision("c", allow()), "an unknown call");
    assert!(approvals.submit_decision("b", allow()));
    assert!(
        !approvals.submit_decision("b", allow()),
        "a second decision"
    );
    assert_eq!(approvals.undecided_requests(), requests[..1]);
    assert_eq!(decided.await, (1, allow()));
    approvals.observe_event(&finished("b"));
    // The run does not wait at this moment, but the request is still undecided.
    assert_eq!(approvals.undecided_requests(), requests[..1]);
    assert!(approvals.awaited_approval_requests().is_empty());
    // The returned position refers to the new list of requests.
    let rest = [request("a")];
    let mut decided = Box::pin(approvals.await_decision(&rest));
    assert!(decided.as_mut().now_or_never().is_none());
    assert!(approvals.submit_decision("a", allow()));
    assert_eq!(decided.await, (0, allow()));
}

#[tokio::test]
async fn a_decision_before_the_request_is_held() {
    let approvals = approvals(ApprovalDecision::Later);
    assert!(!approvals.submit_decision("a", allow()));
    approvals.observe_event(&awaiting("a"));
    assert!(approvals.submit_decision("a", allow()));
    assert_eq!(
        approvals.await_decision(&[request("a")]).await,
        (0, allow())
    );
    // A call that already has another outcome accepts no decision.
    approvals.observe_event(&awaiting("a"));
    approvals.observe_event(&RunEventKind::ToolDenied {
        id: "a".to_owned(),
        reason: String::new(),
        remembered: false,
    });
    assert!(!approvals.submit_decision("a", allow()));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_decision_gets_the_default_after_the_time_limit() {
    for default in [ApprovalDecision::Later, ApprovalDecision::Expired] {
        let began = tokio::time::Instant::now();
        let approvals = approvals(default.clone());
        assert_eq!(approvals.decide(&request("a")).await, default);
        assert!(began.elapsed() >= Duration::from_mins(1));
    }
}

#[tokio::test]
async fn closing_ends_all_waits() {
    let approvals = approvals(ApprovalDecision::Later);
    let requests = [request("a")];
    let mut decided = Box::pin(approvals.await_decision(&requests));
    assert!(decided.as_mut().now_or_never().is_none());
    approvals.end_approval_wait();
    assert_eq!(decided.await, (0, ApprovalDecision::Later));
    let next = approvals.decide(&request("b")).await;
    assert_eq!(next, ApprovalDecision::Later);
    // A decision that was submitted before still counts.
    approvals.observe_event(&awaiting("c"));
    assert!(approvals.submit_decision("c", allow()));
    assert_eq!(approvals.decide(&request("c")).await, allow());
}

#[tokio::test]
async fn requests_are_withdrawn_when_their_future_is_dropped() {
    let approvals = approvals(ApprovalDecision::Later);
    let requests = [request("a")];
    let mut decided = Box::pin(approvals.await_decision(&requests));
    assert!(decided.as_mut().now_or_never().is_none());
    drop(decided);
    assert!(approvals.awaited_approval_requests().is_empty());
}

#[tokio::test]
async fn a_client_call_is_known_until_it_is_finished() {
    let approvals = approvals(ApprovalDecision::Expired);
    let planned = |id: &str, server: Option<&str>| RunEventKind::ToolPlanned {
        id: id.to_owned(),
        server: server.map(ToOwned::to_owned),
        tool: "t".to_owned(),
        input: Arc::default(),
    };
    approvals.observe_event(&planned("a", Some(CLIENT_SERVER)));
    approvals.observe_event(&planned("b", Some("desk")));
    approvals.observe_event(&planned("c", None));
    let known = ["a", "b", "c"].map(|call| approvals.is_client_tool_call(call));
    assert_eq!(known, [true, false, false]);
    approvals.observe_event(&finished("a"));
    assert!(!approvals.is_client_tool_call("a"));
}

#[tokio::test]
async fn an_early_decision_about_a_later_call_is_returned_immediately() {
    let approvals = approvals(ApprovalDecision::Later);
    for id in ["a", "b", "c"] {
        approvals.observe_event(&awaiting(id));
    }
    let first = [request("a")];
    let others = ["b".to_owned(), "c".to_owned()];
    let mut decided = Box::pin(approvals.await_decision(&first));
    let mut early = Box::pin(approvals.await_early_decision("run", &others));
    assert!(decided.as_mut().now_or_never().is_none());
    assert!(early.as_mut().now_or_never().is_none());
    assert!(approvals.submit_decision("c", allow()));
    assert!(decided.as_mut().now_or_never().is_none());
    assert_eq!(early.await, (1, allow()));
    assert!(approvals.submit_decision("a", allow()));
    assert_eq!(decided.await, (0, allow()));
    // The end of the wait does not count as an early decision.
    approvals.end_approval_wait();
    let mut early = Box::pin(approvals.await_early_decision("run", &others));
    assert!(early.as_mut().now_or_never().is_none());
}

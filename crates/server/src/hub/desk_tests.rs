use std::sync::Arc;

use futures_util::FutureExt as _;
use switchboard_domain::{ApprovalScope, ToolInput, ToolUse};

use super::*;

fn request(id: &str) -> ApprovalRequest {
    ApprovalRequest::new("run", ToolUse::new(id, "t", ToolInput::parse("{}")))
}

fn yes() -> ApprovalDecision {
    ApprovalDecision::Allow {
        input: None,
        scope: ApprovalScope::Once,
    }
}

fn desk(who: Who) -> Arc<Desk> {
    Arc::new(Desk::new(who, Duration::from_mins(1), Vec::new()))
}

#[tokio::test]
async fn words_are_picked_up_in_whichever_order_they_come() {
    let desk = desk(Who::IsKept);
    let requests = [request("a"), request("b")];
    let mut asking = Box::pin(desk.decide_any(&requests));
    assert!(asking.as_mut().now_or_never().is_none());
    assert_eq!(desk.asked(), requests);
    assert!(!desk.leave("c", yes()), "nobody asks about it");
    assert!(desk.leave("b", yes()));
    assert!(!desk.leave("b", yes()), "it has one");
    assert_eq!(desk.waiting(), requests[..1]);
    assert_eq!(asking.await, (1, yes()));
    desk.observe(&RunEventKind::ToolFinished {
        id: "b".to_owned(),
        is_error: false,
        failure: None,
        cached: false,
        attempts: 1,
        duration_ms: 0,
        content: Vec::new().into(),
        structured: None,
    });
    // Though it asks about nothing in this moment.
    assert_eq!(
        (desk.waiting(), desk.asked()),
        (requests[..1].to_vec(), Vec::new())
    );
    assert!(desk.asked().is_empty());
    // Its place among those that are asked is what counts.
    let rest = [request("a")];
    let mut asking = Box::pin(desk.decide_any(&rest));
    assert!(asking.as_mut().now_or_never().is_none());
    assert!(desk.leave("a", yes()));
    assert_eq!(asking.await, (0, yes()));
}

#[tokio::test]
async fn a_word_that_comes_before_the_question_waits_for_it() {
    let desk = desk(Who::IsKept);
    let awaiting = RunEventKind::ToolAwaitingApproval { id: "a".to_owned() };
    assert!(!desk.leave("a", yes()));
    desk.observe(&awaiting);
    assert!(desk.leave("a", yes()));
    assert_eq!(desk.decide_any(&[request("a")]).await, (0, yes()));
    // One that was settled otherwise takes none.
    desk.observe(&awaiting);
    desk.observe(&RunEventKind::ToolDenied {
        id: "a".to_owned(),
        reason: String::new(),
    });
    assert!(!desk.leave("a", yes()));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_answers_is_put_away_or_expires() {
    for (who, end) in [
        (Who::IsKept, ApprovalDecision::Later),
        (Who::Expires, ApprovalDecision::Expired),
    ] {
        let began = tokio::time::Instant::now();
        assert_eq!(desk(who).decide(&request("a")).await, end);
        assert!(began.elapsed() >= Duration::from_mins(1));
    }
}

#[tokio::test]
async fn a_desk_that_closes_lets_nobody_wait() {
    let desk = desk(Who::IsKept);
    let requests = [request("a")];
    let mut asking = Box::pin(desk.decide_any(&requests));
    assert!(asking.as_mut().now_or_never().is_none());
    desk.close();
    assert_eq!(asking.await, (0, ApprovalDecision::Later));
    assert_eq!(desk.decide(&request("b")).await, ApprovalDecision::Later);
    // A word that is there counts all the same.
    desk.observe(&RunEventKind::ToolAwaitingApproval { id: "c".to_owned() });
    assert!(desk.leave("c", yes()));
    assert_eq!(desk.decide(&request("c")).await, yes());
}

#[tokio::test]
async fn a_question_is_withdrawn_with_its_future() {
    let desk = desk(Who::IsKept);
    let requests = [request("a")];
    let mut asking = Box::pin(desk.decide_any(&requests));
    assert!(asking.as_mut().now_or_never().is_none());
    drop(asking);
    assert!(desk.asked().is_empty());
}

#[tokio::test]
async fn a_call_of_a_tool_of_the_client_is_known_as_such_until_it_is_done() {
    let desk = desk(Who::Expires);
    let planned = |id: &str, server: Option<&str>| RunEventKind::ToolPlanned {
        id: id.to_owned(),
        server: server.map(ToOwned::to_owned),
        tool: "t".to_owned(),
        input: Arc::default(),
    };
    desk.observe(&planned("a", Some(CLIENT)));
    desk.observe(&planned("b", Some("desk")));
    desk.observe(&planned("c", None));
    let known = ["a", "b", "c"].map(|call| desk.is_of_client(call));
    assert_eq!(known, [true, false, false]);
    desk.observe(&RunEventKind::ToolFinished {
        id: "a".to_owned(),
        is_error: false,
        failure: None,
        cached: false,
        attempts: 1,
        duration_ms: 0,
        content: Vec::new().into(),
        structured: None,
    });
    assert!(!desk.is_of_client("a"));
}

#[tokio::test]
async fn a_word_about_a_call_whose_turn_has_not_come_counts_at_once() {
    let desk = desk(Who::IsKept);
    for id in ["a", "b", "c"] {
        desk.observe(&RunEventKind::ToolAwaitingApproval { id: id.to_owned() });
    }
    let first = [request("a")];
    let others = ["b".to_owned(), "c".to_owned()];
    let mut asking = Box::pin(desk.decide_any(&first));
    let mut ahead = Box::pin(desk.early_decision("run", &others));
    assert!(asking.as_mut().now_or_never().is_none());
    assert!(ahead.as_mut().now_or_never().is_none());
    assert!(desk.leave("c", yes()));
    assert!(asking.as_mut().now_or_never().is_none());
    assert_eq!(ahead.await, (1, yes()));
    assert!(desk.leave("a", yes()));
    assert_eq!(asking.await, (0, yes()));
    // Nobody waits any longer, and that is no word about these.
    desk.close();
    let mut ahead = Box::pin(desk.early_decision("run", &others));
    assert!(ahead.as_mut().now_or_never().is_none());
}

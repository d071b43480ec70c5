use futures_util::FutureExt;
use serde_json::json;
use switchboard_domain::ToolDefinition;
use tokio::time::advance;

use super::*;

fn ids(ids: &[i64]) -> Vec<RequestId> {
    ids.iter().copied().map(RequestId::Number).collect()
}

/// A call of a tool, with a key.
fn call(tool: &str, key: &str) -> Arc<Caller> {
    let definition = Arc::new(ToolDefinition::new(tool, "", json!({})));
    Caller::of(&definition, Some(key.to_owned()))
}

impl OpenRequests {
    fn calls_of_work(&self, calls: &[(i64, &str)]) {
        for (id, key) in calls {
            self.begin(RequestId::Number(*id), Some(call("work", key)));
        }
    }

    fn ends(&self, id: i64, ending: Ending) {
        self.end(|open| *open == RequestId::Number(id), ending);
    }

    /// Whose a question is that comes now, by the key of the call.
    fn asks(&self) -> Option<String> {
        key(&self.question(false))
    }
}

fn key(question: &Unplaced) -> Option<String> {
    question.sole()?.key.clone()
}

#[test]
fn the_end_of_all_of_them_is_heard_and_no_other() {
    let open = OpenRequests::default();
    open.calls_of_work(&[(0, "a"), (1, "b")]);
    open.begin(RequestId::Number(2), None);
    assert_eq!(open.calls(), ids(&[0, 1]));
    assert_eq!(open.sole(), None);
    let (question, first) = (open.question(false), RequestId::Number(0));
    open.ends(1, Ending::Refused);
    assert!(open.ended(&first).now_or_never().is_none());
    assert!(question.over().now_or_never().is_none());
    open.ends(0, Ending::GivenUp);
    assert!(open.ended(&first).now_or_never().is_some());
    assert!(question.over().now_or_never().is_some());
    assert_eq!(open.sole(), Some(RequestId::Number(2)));
    let outside = open.question(false);
    assert!(outside.over().now_or_never().is_some(), "of what is open");
    open.end_all();
    assert_eq!(open.sole(), None);
    assert_eq!(open.question(false).callers().len(), 0);
}

#[test]
fn a_question_belongs_to_a_call_only_where_that_is_certain() {
    let open = OpenRequests::default();
    assert_eq!(open.asks(), None, "none is under way");
    open.calls_of_work(&[(0, "run/1/a")]);
    // Within these a server asks nothing.
    open.begin(RequestId::Number(1), None);
    assert_eq!(open.asks().as_deref(), Some("run/1/a"));
    assert_eq!(key(&open.question(true)), None, "or one that is over");
    open.calls_of_work(&[(2, "other/1/b")]);
    let either = open.question(false);
    assert_eq!(key(&either), None);
    assert_eq!(either.candidates().calls, ["run/1/a", "other/1/b"]);
    assert!(!either.candidates().others);
    assert!(either.is_of_one_tool());
    let (id, _) = open.keyed("other/1/b").unwrap();
    assert_eq!(id, RequestId::Number(2));
    open.ends(0, Ending::Answered);
    assert_eq!(open.asks().as_deref(), Some("other/1/b"));
    assert!(open.caller(&RequestId::Number(0)).is_none(), "it is over");
    // A resource is being read: its questions are no call's.
    open.begin(RequestId::Number(3), Some(Arc::default()));
    let question = open.question(false);
    assert_eq!(key(&question), None);
    assert!(question.candidates().others);
    assert!(!question.is_of_one_tool());
}

#[test]
fn whoever_is_answered_while_a_question_waits_did_not_ask_it() {
    let open = OpenRequests::default();
    open.calls_of_work(&[(0, "a"), (1, "b"), (2, "c")]);
    let question = open.question(false);
    // Later than the question.
    open.calls_of_work(&[(3, "d")]);
    open.ends(1, Ending::Answered);
    assert_eq!(question.candidates().calls, ["a", "c"]);
    // It may have waited in vain for the answer to this very question.
    open.ends(0, Ending::Refused);
    assert_eq!(question.candidates().calls, ["a", "c"]);
    open.ends(2, Ending::Answered);
    assert_eq!(key(&question).as_deref(), Some("a"));
    assert!(
        question.over().now_or_never().is_some(),
        "nobody waits for what would come of it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_its_place_and_not_for_ever() {
    let open = OpenRequests::default();
    open.calls_of_work(&[(0, "a"), (1, "b")]);
    let question = open.question(false);
    let certain = |question: &Unplaced| question.sole().is_some();
    let patience = Duration::from_secs(10);
    let ending = async {
        tokio::task::yield_now().await;
        open.ends(0, Ending::Answered);
    };
    let begun = Instant::now();
    tokio::join!(question.settled(patience, certain), ending);
    assert_eq!(key(&question).as_deref(), Some("b"));
    assert_eq!(begun.elapsed(), Duration::ZERO);

    open.calls_of_work(&[(2, "c")]);
    open.question(false).settled(patience, certain).await;
    assert_eq!(begun.elapsed(), patience);
}

#[tokio::test(start_paused = true)]
async fn within_what_was_given_up_a_server_may_still_ask() {
    let open = OpenRequests::default();
    open.calls_of_work(&[(0, "a")]);
    open.ends(0, Ending::GivenUp);
    open.calls_of_work(&[(1, "b")]);
    let question = open.question(false);
    assert_eq!(question.candidates().calls, ["b", "a"]);
    assert_eq!(key(&question), None);
    // The server answers it all the same.
    open.ends(0, Ending::Answered);
    assert_eq!(key(&question).as_deref(), Some("b"));
    assert_eq!(open.asks().as_deref(), Some("b"));

    // Another one it never answers; but not for ever.
    open.calls_of_work(&[(2, "c")]);
    open.ends(2, Ending::GivenUp);
    assert_eq!(open.asks(), None);
    let moment = Duration::from_millis(1);
    advance(GIVEN_UP.saturating_sub(moment)).await;
    assert_eq!(open.asks(), None);
    advance(moment).await;
    assert_eq!(open.asks().as_deref(), Some("b"));
    // Within this one it never asked anything.
    open.begin(RequestId::Number(3), None);
    open.ends(3, Ending::GivenUp);
    assert_eq!(open.asks().as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn more_than_can_be_kept_are_not_forgotten() {
    let open = OpenRequests::default();
    let many = i64::try_from(MOST_GIVEN_UP).unwrap() + 1;
    for id in 0..many {
        open.calls_of_work(&[(id, "a")]);
        open.ends(id, Ending::GivenUp);
    }
    open.calls_of_work(&[(many, "b")]);
    for id in 0..many {
        open.ends(id, Ending::Answered);
    }
    let question = open.question(false);
    assert_eq!(question.candidates().calls, ["b"]);
    assert!(question.candidates().others, "one was not kept");
    assert_eq!(key(&question), None);
    drop(question);
    advance(GIVEN_UP).await;
    assert_eq!(open.asks().as_deref(), Some("b"));

    // Of a flood of questions the last ones belong nowhere.
    let flood: Vec<_> = (0..=MOST_UNPLACED).map(|_| open.question(false)).collect();
    assert_eq!(key(&flood[MOST_UNPLACED - 1]).as_deref(), Some("b"));
    assert_eq!(key(&flood[MOST_UNPLACED]), None);
    assert!(flood[MOST_UNPLACED].over().now_or_never().is_some());
    drop(flood);
    assert_eq!(open.asks().as_deref(), Some("b"));
}

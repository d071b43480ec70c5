//! Whose a question is that does not say within which call it is asked: over pipes, in the older era.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::join;
use serde_json::{Value, json};
use switchboard_domain::{ElicitationAnswer, ToolCall, ToolCallError, ToolHost};
use switchboard_mcp_client::{Answering, McpHost};

use crate::stage::*;

/// For tests in which a question is held back until something happens.
const LONG: Duration = Duration::from_mins(1);
/// For those in which nothing does.
const SHORT: Duration = Duration::from_millis(50);

/// A host for several people, over pipes. It holds a question back for so long of which it is not known whose it
/// is.
async fn host(people: &Arc<Person>, placing: Duration) -> McpHost {
    let answering = Answering {
        placing,
        ..people.answering()
    };
    over_stdio(OLDER).host(answering).await
}

fn known(key: &str) -> (Option<String>, Vec<String>) {
    (Some(key.to_owned()), Vec::new())
}

fn either(keys: [&str; 2]) -> (Option<String>, Vec<String>) {
    (None, keys.map(str::to_owned).to_vec())
}

fn cancelled() -> Value {
    json!({"action": "cancel"})
}

/// What a call says, as JSON.
async fn says(host: &McpHost, call: ToolCall) -> Value {
    let output = soon(host.call(call)).await.unwrap();
    serde_json::from_str(&output.content[0].as_text()).unwrap()
}

#[tokio::test]
async fn the_late_question_of_a_call_that_was_given_up_is_not_put_to_somebody_else() {
    let people = Person::people([ElicitationAnswer::Cancel]);
    let host = host(&people, SHORT).await;
    {
        let mut late = pin!(host.call(keyed("late", "ada/1/a")));
        tokio::select! {
            biased;
            answer = &mut late => panic!("{answer:?}"),
            begun = call(&host, "begun") => assert_eq!(begun.unwrap(), json!(1)),
        }
        // She goes away.
    }
    let of_bob = says(&host, keyed("unheard", "bob/1/b"));
    let (heard, _) = join(of_bob, call(&host, "go")).await;
    assert_eq!(heard, cancelled());
    assert_eq!(people.asked_within(), [either(["ada/1/a", "bob/1/b"])]);
    soon(host.close()).await;
}

#[tokio::test]
async fn whoever_is_answered_while_a_question_waits_did_not_ask_it() {
    let people = Person::people([accept(json!({"name": "Ada"}))]);
    let host = host(&people, LONG).await;
    let of_ada = async {
        call(&host, "begun").await.unwrap();
        join(says(&host, keyed("form", "ada/1/a")), call(&host, "go")).await
    };
    let of_bob = says(&host, keyed("wait", "bob/1/b"));
    let (of_bob, (of_ada, _)) = join(of_bob, of_ada).await;
    assert_eq!(of_bob, json!("waited"));
    assert_eq!(of_ada["content"]["name"], "Ada");
    assert_eq!(people.asked_within(), [known("ada/1/a")]);
    soon(host.close()).await;
}

#[tokio::test]
async fn whoever_failed_while_a_question_waits_may_have_asked_it() {
    let people = Person::people([ElicitationAnswer::Cancel]);
    let host = host(&people, Duration::from_millis(500)).await;
    let of_ada = async {
        call(&host, "begun").await.unwrap();
        join(says(&host, keyed("form", "ada/1/a")), call(&host, "go")).await
    };
    let of_bob = says(&host, keyed("fails", "bob/1/b"));
    let (_, (of_ada, _)) = join(of_bob, of_ada).await;
    assert_eq!(of_ada, cancelled());
    assert_eq!(people.asked_within(), [either(["ada/1/a", "bob/1/b"])]);
    soon(host.close()).await;
}

#[tokio::test]
async fn a_server_may_say_within_which_call_it_asks() {
    let people = Person::people([]);
    let host = host(&people, LONG).await;
    {
        let calls = join(
            host.call(keyed("named", "ada/1/a")),
            host.call(keyed("named", "bob/1/b")),
        );
        let mut calls = pin!(calls);
        tokio::select! {
            biased;
            answers = &mut calls => panic!("{answers:?}"),
            () = people.has_open(2) => {}
        }
    }
    let mut asked = people.asked_within();
    asked.sort();
    assert_eq!(asked, [known("ada/1/a"), known("bob/1/b")]);
    soon(host.close()).await;
}

#[tokio::test]
async fn calls_of_a_tool_that_asks_run_one_persons_at_a_time() {
    let answer = |name: &str| accept(json!({ "name": name }));
    let people = Person::people([answer("Ada")]);
    let host = host(&people, SHORT).await;
    // Its first question shows that it asks.
    let first = says(&host, keyed("form", "ada/1/a")).await;
    assert_eq!(first["content"]["name"], "Ada");
    let mut hers = Box::pin(host.call(keyed("form", "ada/2/a")));
    tokio::select! {
        biased;
        answer = &mut hers => panic!("{answer:?}"),
        () = people.has_open(1) => {}
    }
    let mut his = Box::pin(host.call(keyed("form", "bob/1/b")));
    // Other tools, and her own calls, do not wait for that.
    tokio::select! {
        biased;
        answer = &mut his => panic!("{answer:?}"),
        offered = call(&host, "offered") => assert!(offered.is_ok()),
    }
    let mut more = Box::pin(host.call(keyed("endless", "ada/2/b")));
    tokio::select! {
        biased;
        answer = &mut more => panic!("{answer:?}"),
        answer = &mut his => panic!("{answer:?}"),
        () = people.has_open(2) => {}
    }
    let asked = people.asked_within().split_off(1);
    assert_eq!(asked, [known("ada/2/a"), either(["ada/2/a", "ada/2/b"])]);
    soon(host.close()).await;
}

#[tokio::test]
async fn whoever_waits_in_vain_for_a_tool_that_asks_is_told_why() {
    let people = Person::people([accept(json!({"name": "Ada"}))]);
    let host = host(&people, LONG).await;
    says(&host, keyed("form", "ada/1/a")).await;
    let mut hers = Box::pin(host.call(keyed("form", "ada/2/a")));
    tokio::select! {
        biased;
        answer = &mut hers => panic!("{answer:?}"),
        () = people.has_open(1) => {}
    }
    let his = ToolCall {
        deadline: Some(SHORT),
        ..keyed("form", "bob/1/b")
    };
    tokio::select! {
        biased;
        answer = &mut hers => panic!("{answer:?}"),
        answer = soon(host.call(his)) => {
            let Err(ToolCallError::Unavailable { reason, .. }) = answer else {
                panic!("{answer:?}");
            };
            assert!(reason.contains("for one person at a time"), "{reason}");
        }
    }
    assert_eq!(people.asked_within().len(), 2);
    soon(host.close()).await;
}

#[tokio::test]
async fn the_question_of_one_does_not_hold_up_the_deadline_of_another() {
    let people = Person::people([]);
    let host = host(&people, LONG).await;
    let mut hers = Box::pin(host.call(keyed("form", "ada/1/a")));
    tokio::select! {
        biased;
        answer = &mut hers => panic!("{answer:?}"),
        () = people.has_open(1) => {}
    }
    let his = ToolCall {
        deadline: Some(SHORT),
        ..keyed("wait", "bob/1/b")
    };
    tokio::select! {
        biased;
        answer = &mut hers => panic!("{answer:?}"),
        answer = soon(host.call(his)) => {
            assert!(matches!(answer, Err(ToolCallError::Timeout { .. })), "{answer:?}");
        }
    }
    assert_eq!(people.asked_within(), [known("ada/1/a")]);
    soon(host.close()).await;
}

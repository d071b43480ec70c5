//! A server asks the person.

use std::time::Duration;

use serde_json::json;
use switchboard_domain::{ElicitationAnswer, ElicitationForm, ToolCallError, ToolHost};
use switchboard_mcp_client::{Answering, ServerTransport};

use crate::stage::*;

#[tokio::test]
async fn a_person_fills_in_a_form_and_the_server_gets_what_fits_with_defaults() {
    with_each(every_form().await, |stage| async move {
        let person = Person::who_says([
            accept(json!({"name": "A"})),
            accept(json!({"name": "Ada", "age": 36, "pin": 1234})),
        ]);
        let host = stage.host(person.answering()).await;
        assert_eq!(
            call(&host, "form").await.unwrap(),
            json!({"action": "accept", "content": {"name": "Ada", "colour": "blue", "age": 36}})
        );
        let asked = person.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 2);
        assert!(asked.iter().all(|question| question.server == "s"));
        assert_eq!(asked[0].message, "Who are you?");
        assert!(asked[1].message.contains("name: "), "{}", asked[1].message);
        let ElicitationForm::Fields { schema } = &asked[0].form else {
            panic!("{:?}", asked[0].form);
        };
        // In the order in which the server wants them filled in.
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["name", "colour", "age"]);
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn refusals_reach_the_server_and_nobody_is_a_refusal() {
    with_each(every_form().await, |stage| async move {
        let person = Person::who_says([ElicitationAnswer::Decline, ElicitationAnswer::Cancel]);
        let host = stage.host(person.answering()).await;
        assert_eq!(call(&host, "form").await.unwrap(), declined());
        assert_eq!(
            call(&host, "visit").await.unwrap(),
            json!({"action": "cancel"})
        );
        soon(host.close()).await;

        let host = stage.host(Answering::default()).await;
        assert_eq!(call(&host, "offered").await.unwrap(), json!({}));
        assert_eq!(call(&host, "form").await.unwrap(), declined());
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_person_is_sent_to_an_address_only_after_they_agreed() {
    with_each(every_form().await, |stage| async move {
        let person = Person::who_says([accept(json!({"ignored": true}))]);
        let host = stage.host(person.answering()).await;
        assert_eq!(
            call(&host, "offered").await.unwrap(),
            json!({"elicitation": {"form": {}, "url": {}}})
        );
        assert_eq!(
            call(&host, "visit").await.unwrap(),
            json!({"action": "accept"})
        );
        let asked = person.asked.lock().unwrap().clone();
        let id = "matter-1".to_owned();
        let url = "https://example.org/login".to_owned();
        assert_eq!(asked[0].form, ElicitationForm::Url { url, id });
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_call_that_needs_a_visit_is_made_again_after_it() {
    with_each(older().await, |stage| async move {
        let person = Person::who_says([accept(json!({}))]);
        let host = stage.host(person.answering()).await;
        assert_eq!(call(&host, "gated").await.unwrap(), json!("welcome"));
        soon(host.close()).await;
    })
    .await;
    // Nobody to be sent there.
    with_each(older().await, |stage| async move {
        let host = stage.host(Answering::default()).await;
        let error = call(&host, "gated").await.unwrap_err();
        let ToolCallError::Refused { code, message, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(code, -32042);
        assert_eq!(message, "log in first (nobody is there to be asked)");
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_says_within_which_call_it_is_asked() {
    with_each(every_form().await, move |stage| async move {
        let person = Person::who_says([accept(json!({"name": "Ada"}))]);
        let host = stage.host(person.answering()).await;
        soon(host.call(keyed("form", "one/1/a"))).await.unwrap();
        let first = (Some("one/1/a".to_owned()), Vec::new());
        assert_eq!(person.asked_within(), [first]);

        // Two at once, of two people. Where nothing says whose a question is, it may be either's.
        let is_known =
            !stage.is_older() || !matches!(stage.config.transport, ServerTransport::Stdio { .. });
        {
            let both = futures_util::future::join(
                host.call(keyed("endless", "one/2/b")),
                host.call(keyed("endless", "other/1/b")),
            );
            let mut both = std::pin::pin!(both);
            tokio::select! {
                biased;
                answers = &mut both => panic!("{answers:?}"),
                () = person.has_open(2) => {}
            }
        }
        let keys = ["one/2/b", "other/1/b"].map(str::to_owned);
        let mut asked = person.asked_within().split_off(1);
        asked.sort();
        if is_known {
            assert_eq!(asked, keys.map(|key| (Some(key), Vec::new())));
        } else {
            assert_eq!(asked, [(None, keys.to_vec()), (None, keys.to_vec())]);
        }
        person.has_open(0).await;
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_is_withdrawn_with_its_call() {
    with_each(every_form().await, |stage| async move {
        let person = Person::who_says([]);
        let host = stage.host(person.answering()).await;
        {
            let mut endless = std::pin::pin!(host.call(tool("endless")));
            tokio::select! {
                biased;
                answer = &mut endless => panic!("{answer:?}"),
                () = person.has_open(1) => {}
            }
        }
        person.has_open(0).await;
        if stage.is_older() {
            // It waits for that answer no more, or has it.
            let unheard = call(&host, "unheard").await.unwrap();
            let is_cancelled = unheard == json!({"action": "cancel"});
            assert!(is_cancelled || unheard.get("error").is_some(), "{unheard}");
        }
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_is_withdrawn_with_the_connection() {
    with_each(every_form().await, |stage| async move {
        let person = Person::who_says([]);
        let host = stage.host(person.answering()).await;
        let mut endless = std::pin::pin!(host.call(tool("endless")));
        tokio::select! {
            biased;
            answer = &mut endless => panic!("{answer:?}"),
            () = person.has_open(1) => {}
        }
        let closing = async {
            tokio::join!(host.close(), person.has_open(0));
        };
        let (answer, ()) = tokio::join!(soon(endless), soon(closing));
        assert!(
            matches!(answer, Err(ToolCallError::Broken { .. })),
            "{answer:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn nobody_is_asked_outside_a_call() {
    with_each(eager().await, |stage| async move {
        let person = Person::who_says([accept(json!({"name": "Ada"}))]);
        let host = stage.host(person.answering()).await;
        assert_eq!(
            call(&host, "unheard").await.unwrap(),
            json!({"action": "cancel"})
        );
        assert!(person.asked.lock().unwrap().is_empty());
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn the_time_that_a_person_takes_is_not_the_servers() {
    with_each(every_form().await, |mut stage| async move {
        stage.config.call_timeout = Some(Duration::from_millis(200));
        let person = Person::who_says([]);
        let host = stage.host(person.answering()).await;
        let mut endless = std::pin::pin!(host.call(tool("form")));
        let waiting = tokio::time::timeout(Duration::from_millis(600), &mut endless).await;
        assert!(waiting.is_err(), "{waiting:?}");
        assert_eq!(*person.open.borrow(), 1);
        soon(host.close()).await;
    })
    .await;
}

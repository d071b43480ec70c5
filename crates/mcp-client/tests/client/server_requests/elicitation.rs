//! Elicitations: requests of a server to the user.

use std::time::Duration;

use serde_json::json;
use switchboard_domain::{ElicitationAnswer, ElicitationForm, ToolCallError, ToolHost};
use switchboard_mcp_client::{ClientHandlers, ServerTransport};

use crate::server_requests::support::*;

#[tokio::test]
async fn a_person_fills_in_a_form_and_the_server_gets_what_fits_with_defaults() {
    with_each(every_variant().await, |support| async move {
        let user = User::with_answers([
            accept(json!({"name": "A"})),
            accept(json!({"name": "Ada", "age": 36, "pin": 1234})),
        ]);
        let host = support.host(user.handlers()).await;
        assert_eq!(
            call(&host, "form").await.unwrap(),
            json!({"action": "accept", "content": {"name": "Ada", "colour": "blue", "age": 36}})
        );
        let asked = user.elicitations.lock().unwrap().clone();
        assert_eq!(asked.len(), 2);
        assert!(asked.iter().all(|request| request.server == "s"));
        assert_eq!(asked[0].message, "Who are you?");
        assert!(asked[1].message.contains("name: "), "{}", asked[1].message);
        let ElicitationForm::Fields { schema } = &asked[0].form else {
            panic!("{:?}", asked[0].form);
        };
        // The fields keep the order of the server.
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["name", "colour", "age"]);
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn refusals_reach_the_server_and_nobody_is_a_refusal() {
    with_each(every_variant().await, |support| async move {
        let user = User::with_answers([ElicitationAnswer::Decline, ElicitationAnswer::Cancel]);
        let host = support.host(user.handlers()).await;
        assert_eq!(call(&host, "form").await.unwrap(), declined());
        let expected = json!({"action": "cancel"});
        assert_eq!(call(&host, "visit").await.unwrap(), expected);
        soon(host.close()).await;

        let host = support.host(ClientHandlers::default()).await;
        assert_eq!(call(&host, "offered").await.unwrap(), json!({}));
        assert_eq!(call(&host, "form").await.unwrap(), declined());
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_person_is_sent_to_an_address_only_after_they_agreed() {
    with_each(every_variant().await, |support| async move {
        let user = User::with_answers([accept(json!({"ignored": true}))]);
        let host = support.host(user.handlers()).await;
        let expected = json!({"elicitation": {"form": {}, "url": {}}});
        assert_eq!(call(&host, "offered").await.unwrap(), expected);
        let expected = json!({"action": "accept"});
        assert_eq!(call(&host, "visit").await.unwrap(), expected);
        let asked = user.elicitations.lock().unwrap().clone();
        let id = "matter-1".to_owned();
        let url = "https://example.org/login".to_owned();
        assert_eq!(asked[0].form, ElicitationForm::Url { url, id });
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_call_that_needs_a_visit_is_made_again_after_it() {
    with_each(legacy().await, |support| async move {
        let user = User::with_answers([accept(json!({}))]);
        let host = support.host(user.handlers()).await;
        assert_eq!(call(&host, "gated").await.unwrap(), json!("welcome"));
        soon(host.close()).await;
    })
    .await;
    // Without an elicitor, the URL cannot be shown.
    with_each(legacy().await, |support| async move {
        let host = support.host(ClientHandlers::default()).await;
        let error = call(&host, "gated").await.unwrap_err();
        let ToolCallError::Refused { code, message, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(code, -32042);
        let expected = "log in first (no user is available to open the URL)";
        assert_eq!(message, expected);
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_says_within_which_call_it_is_asked() {
    with_each(every_variant().await, move |support| async move {
        let user = User::with_answers([accept(json!({"name": "Ada"}))]);
        let host = support.host(user.handlers()).await;
        soon(host.call_tool(keyed("form", "one/1/a")))
            .await
            .unwrap();
        let first = (Some("one/1/a".to_owned()), Vec::new());
        assert_eq!(user.attributions(), [first]);

        // Two concurrent calls of two users. Over legacy stdio, a request may belong to either
        // call.
        let is_known = !support.is_legacy()
            || !matches!(support.config.transport, ServerTransport::Stdio { .. });
        {
            let both = futures_util::future::join(
                host.call_tool(keyed("endless", "one/2/b")),
                host.call_tool(keyed("endless", "other/1/b")),
            );
            let mut both = std::pin::pin!(both);
            tokio::select! {
                biased;
                answers = &mut both => panic!("{answers:?}"),
                () = user.has_pending(2) => {}
            }
        }
        let keys = ["one/2/b", "other/1/b"].map(str::to_owned);
        let mut asked = user.attributions().split_off(1);
        asked.sort();
        if is_known {
            assert_eq!(asked, keys.map(|key| (Some(key), Vec::new())));
        } else {
            assert_eq!(asked, [(None, keys.to_vec()), (None, keys.to_vec())]);
        }
        user.has_pending(0).await;
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_is_withdrawn_with_its_call() {
    with_each(every_variant().await, |support| async move {
        let user = User::with_answers([]);
        let host = support.host(user.handlers()).await;
        {
            let mut endless = std::pin::pin!(host.call_tool(tool("endless")));
            tokio::select! {
                biased;
                answer = &mut endless => panic!("{answer:?}"),
                () = user.has_pending(1) => {}
            }
        }
        user.has_pending(0).await;
        if support.is_legacy() {
            // The server got a cancellation or an error.
            let last_answer = call(&host, "last_answer").await.unwrap();
            let is_cancelled = last_answer == json!({"action": "cancel"});
            assert!(
                is_cancelled || last_answer.get("error").is_some(),
                "{last_answer}"
            );
        }
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_is_withdrawn_with_the_connection() {
    with_each(every_variant().await, |support| async move {
        let user = User::with_answers([]);
        let host = support.host(user.handlers()).await;
        let mut endless = std::pin::pin!(host.call_tool(tool("endless")));
        tokio::select! {
            biased;
            answer = &mut endless => panic!("{answer:?}"),
            () = user.has_pending(1) => {}
        }
        let closing = async {
            tokio::join!(host.close(), user.has_pending(0));
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
    with_each(eager().await, |support| async move {
        let user = User::with_answers([accept(json!({"name": "Ada"}))]);
        let host = support.host(user.handlers()).await;
        let expected = json!({"action": "cancel"});
        assert_eq!(call(&host, "last_answer").await.unwrap(), expected);
        assert!(user.elicitations.lock().unwrap().is_empty());
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn the_time_that_a_person_takes_is_not_the_servers() {
    with_each(every_variant().await, |mut support| async move {
        support.config.call_timeout = Some(Duration::from_millis(200));
        let user = User::with_answers([]);
        let host = support.host(user.handlers()).await;
        let mut endless = std::pin::pin!(host.call_tool(tool("form")));
        let waiting = tokio::time::timeout(Duration::from_millis(600), &mut endless).await;
        assert!(waiting.is_err(), "{waiting:?}");
        assert_eq!(*user.pending.borrow(), 1);
        soon(host.close()).await;
    })
    .await;
}

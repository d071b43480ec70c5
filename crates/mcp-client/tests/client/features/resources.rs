//! Resources: lists, contents and subscriptions.

use futures_util::StreamExt;
use serde_json::json;
use switchboard_mcp_client::{McpHost, ResourceBody, ResourceUpdate};

use crate::{features::library::APP, features::stage::*};

fn update(uri: &str) -> ResourceUpdate {
    ResourceUpdate {
        server: "s".to_owned(),
        uri: uri.to_owned(),
    }
}

/// Waits until the server has this number of active subscriptions. It accepts a subscription before
/// it activates it.
async fn watched(host: &McpHost, count: usize) {
    let input = json!({"count": count});
    assert_eq!(call(host, "watched", input).await.unwrap(), "so it is");
}

#[tokio::test]
async fn all_pages_are_listed() {
    for stage in every().await {
        let listed = soon(stage.host.list_resources("s")).await.unwrap();
        assert_eq!(listed.problems, [""; 0]);
        let uris: Vec<&str> = listed.items.iter().map(|r| r.uri.as_str()).collect();
        assert_eq!(uris, ["f:///notes", "ui://report", "f:///logo"]);
        let [notes, report, logo] = listed.items.as_slice() else {
            panic!("{listed:?}");
        };
        assert_eq!(notes.name, "notes");
        assert_eq!(notes.title.as_deref(), Some("Notes"));
        assert_eq!(notes.description.as_deref(), Some("What was noted"));
        assert_eq!(notes.media_type.as_deref(), Some("text/plain"));
        assert_eq!(report.media_type.as_deref(), Some(APP));
        assert_eq!(report.meta["ui"], json!({"prefersBorder": true}));
        assert_eq!(logo.size, Some(4));

        let templates = soon(stage.host.list_resource_templates("s")).await.unwrap();
        assert_eq!(templates.problems, [""; 0]);
        assert_eq!(templates.items.len(), 1);
        assert_eq!(templates.items[0].uri_template, "f:///{path}");
        assert_eq!(templates.items[0].media_type.as_deref(), Some("text/plain"));
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn text_and_bytes_are_read() {
    for stage in every().await {
        let notes = soon(stage.host.read_resource("s", "f:///notes")).await;
        let notes = notes.unwrap().items.remove(0);
        assert_eq!(notes.body, ResourceBody::Text("noted".to_owned()));
        let logo = soon(stage.host.read_resource("s", "f:///logo")).await;
        let logo = logo.unwrap().items.remove(0);
        assert_eq!(
            (logo.media_type.as_deref(), logo.to_bytes()),
            (Some("image/png"), Some(vec![0, 1, 2, 3]))
        );
        let missing = soon(stage.host.read_resource("s", "f:///none")).await;
        let error = missing.unwrap_err().to_string();
        let expected = "server `s` refused `resources/read`: there is no f:///none (code -32602)";
        assert_eq!(error, expected);
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn what_the_server_wants_to_know_first_is_answered() {
    for stage in both(NEWER).await {
        let read = soon(stage.host.read_resource("s", "f:///private")).await;
        let ResourceBody::Text(told) = read.unwrap().items.remove(0).body else {
            panic!("no text");
        };
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["content"], json!({"name": "Ada"}));
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn who_watches_hears_of_updates_and_the_server_of_the_end() {
    for stage in every().await {
        let host = &stage.host;
        let one = soon(host.watch_resource("s", "f:///notes")).await.unwrap();
        let mut other = soon(host.watch_resource("s", "f:///notes")).await.unwrap();
        // With the older protocol, a client has only one subscription per resource.
        watched(host, if stage.version == OLDER { 1 } else { 2 }).await;
        drop(one);
        watched(host, 1).await;
        for uri in ["f:///else", "f:///notes"] {
            call(host, "touch", json!({"uri": uri})).await.unwrap();
        }
        assert_eq!(soon(other.next()).await, Some(update("f:///notes")));
        drop(other);
        watched(host, 0).await;
        let mut again = soon(host.watch_resource("s", "f:///notes")).await.unwrap();
        watched(host, 1).await;
        call(host, "touch", json!({"uri": "f:///notes"}))
            .await
            .unwrap();
        assert_eq!(soon(again.next()).await, Some(update("f:///notes")));
        soon(host.close()).await;
        assert_eq!(soon(again.next()).await, None);
    }
}

/// The other subscription takes longer than the time limit of an unsubscribe request.
#[tokio::test]
async fn a_watch_ends_after_a_slow_subscription_to_another_resource() {
    let stage = over_stdio(OLDER).await;
    let host = &stage.host;
    let notes = soon(host.watch_resource("s", "f:///notes")).await.unwrap();
    let (slow, ()) = tokio::join!(soon(host.watch_resource("s", "f:///slow")), async {
        watched(host, 2).await;
        drop(notes);
    });
    let _slow = slow.unwrap();
    watched(host, 1).await;
    soon(host.close()).await;
}

#[tokio::test]
async fn a_watch_outlives_its_server() {
    for version in [OLDER, NEWER] {
        let stage = over_stdio(version).await;
        let host = &stage.host;
        let mut updates = soon(host.watch_resource("s", "f:///notes")).await.unwrap();
        call(host, "crash", json!({})).await.unwrap_err();
        // The resource may have changed while the server was down, so a restart counts as an
        // update.
        assert_eq!(soon(updates.next()).await, Some(update("f:///notes")));
        watched(host, 1).await;
        call(host, "touch", json!({"uri": "f:///notes"}))
            .await
            .unwrap();
        assert_eq!(soon(updates.next()).await, Some(update("f:///notes")));
        soon(host.close()).await;
        assert_eq!(soon(updates.next()).await, None);
    }
}

#[tokio::test]
async fn a_resource_that_the_server_does_not_watch_is_an_error() {
    for stage in both(NEWER).await {
        let refused = soon(stage.host.watch_resource("s", "g:///else")).await;
        let error = refused.err().expect("it was accepted").to_string();
        assert!(error.contains("did not accept the subscription"), "{error}");
        soon(stage.host.close()).await;
    }
}

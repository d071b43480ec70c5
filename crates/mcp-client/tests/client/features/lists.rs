//! Cached lists, and notifications about their changes.

use futures_util::StreamExt;
use serde_json::{Value, json};
use switchboard_domain::{ToolHost, ToolHostChange};
use switchboard_mcp_client::{ListFreshness, McpHost};

use crate::features::stage::*;

/// Returns the number of `prompts/list` requests that the server got.
async fn asked(host: &McpHost) -> Value {
    let asked = call(host, "listed", json!({})).await.unwrap();
    serde_json::from_str(&asked).unwrap()
}

fn freshness(host: &McpHost) -> Vec<ListFreshness> {
    host.server_statuses().remove(0).lists
}

async fn heard(
    changes: &mut (impl futures_util::Stream<Item = ToolHostChange> + Unpin),
    wanted: &ToolHostChange,
) {
    soon(async { while changes.next().await.expect("the host is there") != *wanted {} }).await;
}

#[tokio::test]
async fn changes_are_told_in_both_eras() {
    for stage in every().await {
        let mut changes = stage.host.watch_changes();
        let server = || "s".to_owned();
        for (list, expected) in [
            (
                "prompts",
                ToolHostChange::PromptsChanged { server: server() },
            ),
            (
                "resources",
                ToolHostChange::ResourcesChanged { server: server() },
            ),
        ] {
            let rewritten = call(&stage.host, "rewrite", json!({"list": list})).await;
            assert_eq!(rewritten.unwrap(), "rewritten", "{}", stage.version);
            heard(&mut changes, &expected).await;
        }
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn a_fresh_list_is_not_asked_for_again_until_it_changes() {
    for stage in both(NEWER).await {
        let host = &stage.host;
        assert_eq!(freshness(host), []);
        let first = soon(host.list_prompts("s")).await.unwrap();
        assert_eq!(soon(host.list_prompts("s")).await.unwrap(), first);
        assert_eq!(asked(host).await, 1);
        let [prompts] = freshness(host)[..] else {
            panic!("{:?}", freshness(host));
        };
        assert_eq!(prompts.list, "prompts");
        assert_eq!(prompts.ttl_ms, 3_600_000);
        assert!((1..=3_600_000).contains(&prompts.fresh_for_ms));

        let mut changes = host.watch_changes();
        // A change of another list does not discard this one.
        for (list, times) in [("resources", 1), ("prompts", 2)] {
            call(host, "rewrite", json!({"list": list})).await.unwrap();
            let server = "s".to_owned();
            let expected = match list {
                "prompts" => ToolHostChange::PromptsChanged { server },
                _ => ToolHostChange::ResourcesChanged { server },
            };
            heard(&mut changes, &expected).await;
            soon(host.list_prompts("s")).await.unwrap();
            assert_eq!(asked(host).await, times, "{list}");
        }
        soon(host.close()).await;
    }
}

#[tokio::test]
async fn what_is_good_for_no_time_is_asked_for_every_time() {
    for stage in both(NEWER).await {
        for _ in 0..2 {
            soon(stage.host.list_resources("s")).await.unwrap();
        }
        assert_eq!(freshness(&stage.host), []);
        soon(stage.host.close()).await;
    }
    let host = host(program("odd")).await;
    let first = soon(host.list_prompts("s")).await.unwrap();
    assert_eq!(soon(host.list_prompts("s")).await.unwrap(), first);
    assert_eq!(freshness(&host), []);
    soon(host.close()).await;
}

#[tokio::test]
async fn another_process_is_asked_anew() {
    let stage = over_stdio(NEWER).await;
    let host = &stage.host;
    soon(host.list_prompts("s")).await.unwrap();
    assert_eq!(freshness(host).len(), 1);
    let mut changes = host.watch_changes();
    call(host, "crash", json!({})).await.unwrap_err();
    let ready = |change: &ToolHostChange| matches!(change, ToolHostChange::ServerState { state, .. } if state == "ready");
    soon(async { while !ready(&changes.next().await.unwrap()) {} }).await;
    assert_eq!(freshness(host), []);
    assert_eq!(asked(host).await, 0);
    soon(host.list_prompts("s")).await.unwrap();
    assert_eq!(asked(host).await, 1);
    soon(host.close()).await;
}

#[tokio::test]
async fn a_list_of_tools_that_is_not_good_any_more_is_asked_for_when_somebody_looks() {
    let host = host(program("fleeting")).await;
    let mut changes = host.watch_changes();
    let names = async || {
        let catalog = host.list_tools().await;
        let names = catalog.tools.iter().map(|tool| tool.name.clone());
        names.collect::<Vec<_>>()
    };
    // The server's list is cached briefly, and contains another tool each time.
    let first = names().await;
    assert_eq!(first, ["s__tool_0"]);
    let expected = ToolHostChange::ToolsChanged {
        server: "s".to_owned(),
    };
    soon(async {
        loop {
            tokio::select! {
                biased;
                change = changes.next() => {
                    if change.as_ref() == Some(&expected) {
                        return;
                    }
                }
                // Reading the list during its refresh changes nothing.
                _ = names() => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    assert_ne!(names().await, first);
    soon(host.close()).await;
}

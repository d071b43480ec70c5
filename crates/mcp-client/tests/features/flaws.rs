//! Servers that do not offer what is asked for, or offer it badly.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use switchboard_domain::ToolContent;
use switchboard_mcp_client::{
    CompletionOf, CompletionRequest, FeatureError, PromptRole, ResourceBody,
};

use crate::stage::*;

#[tokio::test]
async fn a_bad_item_is_left_out_alone_and_no_list_is_endless() {
    let host = host(program("odd")).await;
    let listed = soon(host.resources("s")).await.unwrap();
    // Of two pages, of which the second is the first again.
    let uris: Vec<&str> = listed.items.iter().map(|r| r.uri.as_str()).collect();
    assert_eq!(uris, ["f:///a", "f:///a"]);
    assert_eq!(
        (listed.items[0].size, &listed.items[0].media_type),
        (None, &None)
    );
    let left_out = "one resource has no uri, so it is left out";
    let endless = "the list of resources does not end: the same page comes again after 1 pages";
    assert_eq!(
        listed.problems,
        [left_out, left_out, left_out, left_out, endless]
    );

    let prompts = soon(host.prompts("s")).await.unwrap();
    assert_eq!(prompts.items.len(), 1);
    assert_eq!(prompts.items[0].arguments.len(), 1);
    assert_eq!(
        prompts.problems,
        [
            "one prompt has no name, so it is left out",
            "the list of prompts is not complete: a page of it is none",
        ]
    );
    soon(host.close()).await;
}

#[tokio::test]
async fn a_bad_piece_is_left_out_alone() {
    let host = host(program("odd")).await;
    let read = soon(host.read_resource("s", "f:///a")).await.unwrap();
    assert_eq!(read.items.len(), 2);
    assert_eq!(read.items[0].uri, "f:///a");
    assert_eq!(read.items[1].body, ResourceBody::Blob("AA==".to_owned()));
    assert_eq!(
        read.problems,
        ["a piece of `f:///a#2` is neither text nor a blob, so it is left out"]
    );

    let prompt = soon(host.prompt("s", "greet", &BTreeMap::new()))
        .await
        .unwrap();
    let said: Vec<_> = prompt
        .messages
        .iter()
        .map(|m| (m.role, &m.content))
        .collect();
    let hologram = json!({"type": "hologram"});
    assert_eq!(
        said,
        [
            (PromptRole::User, &ToolContent::text("one")),
            (PromptRole::User, &ToolContent::Unknown { value: hologram }),
            (PromptRole::Assistant, &ToolContent::text("three")),
        ]
    );
    assert_eq!(
        prompt.problems,
        [
            "one message is of nobody known (`narrator`), so it is left out",
            "one message has no content, so it is left out",
        ]
    );
    soon(host.close()).await;
}

#[tokio::test]
async fn errors_say_what_is_missing_and_no_secret() {
    let mut config = program("odd");
    config.call_timeout = Some(Duration::from_millis(200));
    let host = host(config).await;
    let unsupported = soon(host.watch_resource("s", "f:///a")).await;
    assert_eq!(
        unsupported.err(),
        Some(FeatureError::Unsupported {
            server: "s".to_owned(),
            capability: "resources.subscribe",
        })
    );
    assert_eq!(
        soon(host.resource_templates("s"))
            .await
            .unwrap_err()
            .to_string(),
        "server `s` refused `resources/templates/list`: templates are kept with [redacted] \
         (code -32603)"
    );
    let silent = CompletionRequest {
        of: CompletionOf::Prompt {
            name: "greet".to_owned(),
        },
        argument: "who".to_owned(),
        value: String::new(),
        known: BTreeMap::new(),
    };
    assert_eq!(
        soon(host.complete("s", silent)).await.unwrap_err(),
        FeatureError::Timeout {
            server: "s".to_owned(),
            request: "completion/complete".to_owned(),
            after: Duration::from_millis(200),
        }
    );
    assert_eq!(
        soon(host.prompts("t")).await.unwrap_err().to_string(),
        "there is no server `t`; there are: s"
    );
    soon(host.close()).await;
    let closed = soon(host.prompts("s")).await.unwrap_err();
    assert!(
        matches!(closed, FeatureError::Unavailable { .. }),
        "{closed}"
    );
}

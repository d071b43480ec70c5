//! Servers that do not offer what is asked for, or offer it badly.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use switchboard_domain::{ToolCallError, ToolContent};
use switchboard_mcp_client::{
    CompletionOf, CompletionRequest, FeatureError, PromptRole, ResourceBody,
};

use crate::stage::*;

#[tokio::test]
async fn a_bad_item_is_skipped_alone_and_no_list_is_endless() {
    let host = host(program("odd")).await;
    let listed = soon(host.resources("s")).await.unwrap();
    // Of two pages, of which the second is the first again.
    let uris: Vec<&str> = listed.items.iter().map(|r| r.uri.as_str()).collect();
    assert_eq!(uris, ["f:///a", "f:///a"]);
    let skipped =
        |fault: &str| format!("an item of resources is not valid: {fault}; it is skipped");
    let no_uri = skipped("missing field `uri`");
    let wrong = skipped("invalid type: string \"big\", expected u64");
    let endless = "the list of resources does not end: a page repeats after 1 pages";
    assert_eq!(
        listed.problems,
        [&*no_uri, &*wrong, &*no_uri, &*wrong, endless]
    );

    let prompts = soon(host.prompts("s")).await.unwrap();
    assert_eq!(prompts.items.len(), 1);
    assert_eq!(prompts.items[0].arguments.len(), 1);
    assert_eq!(
        prompts.problems,
        [
            "an item of prompts is not valid: missing field `name`; it is skipped",
            "the list of prompts is incomplete: its answer has no list of prompts",
        ]
    );
    soon(host.close()).await;
}

#[tokio::test]
async fn a_bad_piece_is_skipped_alone() {
    let host = host(program("odd")).await;
    let read = soon(host.read_resource("s", "f:///a")).await.unwrap();
    assert_eq!(read.items.len(), 2);
    assert_eq!(read.items[0].uri, "f:///a");
    assert_eq!(read.items[1].body, ResourceBody::Blob("AA==".to_owned()));
    assert_eq!(
        read.problems,
        [
            "an item of contents is not valid: no variant of enum ResourceBody found in flattened data; it \
          is skipped"
        ]
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
            "a message has neither the role `user` nor `assistant`; it is skipped",
            "a message has no content; it is skipped",
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
        FeatureError::Request(ToolCallError::Timeout {
            server: "s".to_owned(),
            tool: "completion/complete".to_owned(),
            after: Duration::from_millis(200),
        })
    );
    assert_eq!(
        soon(host.prompts("t")).await.unwrap_err().to_string(),
        "server `t` is not available: it is not configured; configured servers: s"
    );
    soon(host.close()).await;
    let closed = soon(host.prompts("s")).await.unwrap_err();
    assert!(
        matches!(
            closed,
            FeatureError::Request(ToolCallError::Unavailable { .. })
        ),
        "{closed}"
    );
}

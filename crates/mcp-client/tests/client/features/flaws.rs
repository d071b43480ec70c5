//! Servers that do not support a requested feature, or return invalid data for it.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use switchboard_domain::{ToolCallError, ToolContent};
use switchboard_mcp_client::{
    CompletionRequest, CompletionTarget, FeatureError, PromptRole, ResourceBody,
};

use crate::features::stage::*;

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
            "invalid item in contents: no variant of enum ResourceBody found in flattened data \
             (skipped)"
        ]
    );

    let prompt = soon(host.render_prompt("s", "greet", &BTreeMap::new()))
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
            "a message has neither the role `user` nor `assistant` (skipped)",
            "a message has no content (skipped)",
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
        soon(host.list_resource_templates("s"))
            .await
            .unwrap_err()
            .to_string(),
        "server `s` refused `resources/templates/list`: templates are kept with [redacted] \
         (code -32603)"
    );
    let silent = CompletionRequest {
        of: CompletionTarget::Prompt {
            name: "greet".to_owned(),
        },
        argument: "who".to_owned(),
        value: String::new(),
        known: BTreeMap::new(),
    };
    assert_eq!(
        soon(host.complete_argument("s", silent)).await.unwrap_err(),
        FeatureError::Request(ToolCallError::Timeout {
            server: "s".to_owned(),
            tool: "completion/complete".to_owned(),
            after: Duration::from_millis(200),
        })
    );
    assert_eq!(
        soon(host.list_prompts("t")).await.unwrap_err().to_string(),
        "server `t` is not available: not configured; configured servers: s"
    );
    soon(host.close()).await;
    let closed = soon(host.list_prompts("s")).await.unwrap_err();
    assert!(
        matches!(
            closed,
            FeatureError::Request(ToolCallError::Unavailable { .. })
        ),
        "{closed}"
    );
}

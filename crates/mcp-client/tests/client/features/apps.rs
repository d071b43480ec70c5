//! Tools for the pages of MCP Apps, and hosts that can show those.

use serde_json::{Value, json};
use switchboard_domain::{ToolCallError, ToolHost};
use switchboard_mcp_client::{HostOptions, McpHost};

use crate::{features::library::APP, features::stage::*};

#[tokio::test]
async fn a_tool_for_pages_is_no_tool_for_models() {
    for stage in every().await {
        let host = &stage.host;
        let catalog = host.list_tools().await;
        let names: Vec<&str> = catalog
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert!(
            names.contains(&"s__crash") && !names.contains(&"s__report"),
            "{names:?}"
        );
        let error = call(host, "report", json!({})).await.unwrap_err();
        assert!(
            matches!(error, ToolCallError::UnknownTool { .. }),
            "{error}"
        );

        let for_pages = host.app_tools("s");
        let [report] = for_pages.as_slice() else {
            panic!("{for_pages:?}");
        };
        assert_eq!(report.origin.as_ref().unwrap().tool, "report");
        assert!(host.app_tools("nobody").is_empty());
        let status = host.server_statuses().remove(0);
        assert_eq!((status.app_tools, status.tools), (1, names.len()));
        soon(host.close()).await;
    }
}

#[tokio::test]
async fn a_page_calls_what_is_for_pages_and_nothing_else() {
    let stage = over_stdio(OLDER).await;
    let host = &stage.host;
    let none = || object(json!({}));
    let output = soon(host.call_tool_from_app("s", "report", none()))
        .await
        .unwrap();
    assert_eq!(output.content[0].as_text(), "no task");
    // Like most tools, `work` may be called by models and by pages.
    soon(host.call_tool_from_app("s", "work", none()))
        .await
        .unwrap();
    let error = soon(host.call_tool_from_app("s", "crash", none()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `s` refused `crash`: the tool's `visibility` does not allow calls from pages (code \
         -32600)"
    );
    // The user may call the tool in spite of its `visibility`.
    let error = soon(host.call_server_tool("s", "crash", none()))
        .await
        .unwrap_err();
    assert!(matches!(error, ToolCallError::Broken { .. }), "{error}");
    let error = soon(host.call_tool_from_app("t", "work", none()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not configured"), "{error}");
    soon(host.close()).await;
}

#[tokio::test]
async fn servers_hear_whether_pages_can_be_shown() {
    for version in [OLDER, NEWER] {
        for supports_apps in [false, true] {
            let options = HostOptions {
                supports_apps,
                ..HostOptions::default()
            };
            let host = McpHost::start(vec![program(version)], options).unwrap();
            let offered = call(&host, "offered", json!({})).await.unwrap();
            let offered: Value = serde_json::from_str(&offered).unwrap();
            let expected = if supports_apps {
                json!({"mimeTypes": [APP]})
            } else {
                Value::Null
            };
            assert_eq!(offered["io.modelcontextprotocol/ui"], expected, "{version}");
            assert_eq!(offered["io.modelcontextprotocol/tasks"], json!({}));
            soon(host.close()).await;
        }
    }
}

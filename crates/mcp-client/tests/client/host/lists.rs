//! The tool lists of hosts.

use futures_util::StreamExt;
use switchboard_domain::{ToolHost, ToolHostChange};

use crate::host::stage::*;

#[tokio::test]
async fn all_pages_are_listed_and_one_bad_tool_is_left_out_alone() {
    let host = host([program("s", "lists pages")]).await;
    assert_ready(&host, "s");
    let expected = ["s__a", "s__b", "s__c", "s__d", "s__e"];
    assert_eq!(tool_names(&host).await, expected);
    let problem = "the inputSchema of tool `bad` is not a JSON object (skipped)";
    assert_eq!(problems(&host).await, [format!("s: {problem}")]);
    assert_eq!(status(&host, "s").warnings, [problem]);
}

#[tokio::test]
async fn a_list_without_end_is_ended() {
    let host = host([program("s", "lists in a circle")]).await;
    assert_eq!(tool_names(&host).await, ["s__on_0", "s__on_1"]);
    assert_eq!(
        problems(&host).await,
        [
            "s: the list of tools does not end: a page repeats after 2 pages",
            "s: `on_0` is listed twice; the first definition is used",
        ]
    );
}

#[tokio::test]
async fn what_came_of_a_list_that_breaks_off_is_used() {
    let host = host([program("s", "breaks off its list")]).await;
    assert_eq!(tool_names(&host).await, ["s__work"]);
    let expected = ["s: the list of tools is incomplete: unknown cursor (code -32602)"];
    assert_eq!(problems(&host).await, expected);
    assert_eq!(text(&host, "s__work").await, "did \"work\"");
}

#[tokio::test]
async fn a_list_that_fails_hides_no_other_server() {
    let host = host([
        program("bad", "refuses to list"),
        program("good", BOTH_ERAS),
    ])
    .await;
    assert!(tool_names(&host).await.contains(&"good__echo".to_owned()));
    let expected = ["bad: listing the tools failed: table `tools` is locked (code -32603)"];
    assert_eq!(problems(&host).await, expected);
}

#[tokio::test]
async fn names_are_valid_unique_and_lead_to_their_tool() {
    let servers = || {
        [
            program("crm", "odd names"),
            program("my crm", "odd names"),
            program("crm__find", "odd names"),
        ]
    };
    let host = host(servers()).await;
    let catalog = host.list_tools().await;
    assert_eq!(catalog.tools.len(), 12);
    for tool in &catalog.tools {
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!((1..=64).contains(&tool.name.len()) && tool.name.chars().all(valid));
        let origin = tool.origin.as_ref().unwrap();
        let answer = text(&host, &tool.name).await;
        assert_eq!(answer, format!("did {:?}", origin.tool), "{}", tool.name);
    }
    let names = tool_names(&host).await;
    insta::assert_json_snapshot!(names);
    // The names do not depend on the order of the servers.
    let mut turned = servers();
    turned.reverse();
    let mut again = tool_names(&crate::host::stage::host(turned).await).await;
    let mut names = names;
    names.sort();
    again.sort();
    assert_eq!(names, again);
}

#[tokio::test]
async fn what_is_excluded_is_not_there() {
    let mut config = program("s", BOTH_ERAS);
    config.allowed_tools = Some(vec!["echo".to_owned(), "crash".to_owned()]);
    config.exclude_tools = vec!["crash".to_owned()];
    let host = host([config]).await;
    assert_eq!(tool_names(&host).await, ["s__echo"]);
    let input = object(serde_json::json!({}));
    let error = host
        .call_server_tool("s", "crash", input)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "unknown tool `crash`. Available: echo");
}

#[tokio::test]
async fn changes_of_the_list_are_followed_in_both_eras() {
    for kind in [OLDER_ERA, NEWER_ERA] {
        let host = host([program("s", kind)]).await;
        let mut changes = host.watch_changes();
        assert!(
            !tool_names(&host).await.contains(&"s__grown".to_owned()),
            "{kind}"
        );
        assert_eq!(text(&host, "s__grow").await, "grown");
        let expected = ToolHostChange::ToolsChanged {
            server: "s".to_owned(),
        };
        assert_eq!(soon(changes.next()).await, Some(expected), "{kind}");
        assert!(
            tool_names(&host).await.contains(&"s__grown".to_owned()),
            "{kind}"
        );
        host.close().await;
        // The stream ends when the host is closed.
        soon(async { while changes.next().await.is_some() {} }).await;
    }
}

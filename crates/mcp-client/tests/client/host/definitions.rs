//! Detection of changed tool definitions.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use futures_util::StreamExt;
use switchboard_domain::{ToolHost, ToolHostChange};
use switchboard_mcp_client::{McpHost, ServerConfig, ToolPinFile, ToolPins, fingerprint};

use crate::host::stage::*;

#[tokio::test]
async fn a_definition_that_changes_while_it_is_there_is_seen() {
    for kind in [OLDER_ERA, NEWER_ERA] {
        let host = host([program("s", kind)]).await;
        assert!(host.changed_tools().is_empty());
        let told = host.watch_changes();
        assert_eq!(text(&host, "s__grow").await, "grown");
        status_when(&host, "s", |status| !status.changed_tools.is_empty()).await;

        let changes = host.changed_tools();
        let [change] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!(
            (change.server.as_str(), change.tool.as_str()),
            ("s", "meta")
        );
        assert_eq!(change.name, "s__meta");
        assert_ne!(change.before, change.now);
        let catalog = host.list_tools().await;
        let meta = catalog
            .tools
            .iter()
            .find(|tool| tool.name == "s__meta")
            .unwrap();
        assert_eq!(change.now, fingerprint(meta));
        assert_eq!(status(&host, "s").changed_tools, ["meta"]);
        assert_eq!(
            problems(&host).await,
            ["s: the definition of `meta` has changed"]
        );
        // A new tool does not count as changed.
        assert!(tool_names(&host).await.contains(&"s__grown".to_owned()));
        // The change is reported once, after the new list is available.
        soon(host.close()).await;
        let told: Vec<ToolHostChange> = soon(told.collect()).await;
        let told: Vec<_> = told
            .into_iter()
            .filter(|told| matches!(told, ToolHostChange::ToolRedefined { .. }))
            .collect();
        let expected = ToolHostChange::ToolRedefined {
            server: "s".to_owned(),
            tool: "s__meta".to_owned(),
            before: change.before.clone(),
            now: change.now.clone(),
        };
        assert_eq!(told, [expected]);
    }
}

#[tokio::test]
async fn a_definition_that_changed_between_two_runs_is_seen() {
    // One known pin differs from the tool's definition, and the other one belongs to a tool that no
    // longer exists.
    let known = [("echo", "another"), ("vanished", "kept")];
    let known = known.map(|(tool, pin)| (tool.to_owned(), pin.to_owned()));
    let mut options = options();
    options.tool_pins = ToolPins(BTreeMap::from([("s".to_owned(), known.into())]));
    let third = McpHost::start(vec![program("s", BOTH_ERAS)], options).unwrap();
    soon(third.wait_for_startup()).await;
    let changes = third.changed_tools();
    assert_eq!(changes.len(), 1);
    assert_eq!(
        (changes[0].tool.as_str(), changes[0].before.as_str()),
        ("echo", "another")
    );
}

/// Creates a host that stores its tool pins in this folder.
fn run(folder: &Path, config: ServerConfig) -> McpHost {
    let places = BTreeMap::from([("s".to_owned(), "here".to_owned())]);
    let memory = ToolPinFile::new(folder.join("known.json"), places);
    let mut options = options();
    options.tool_pins = memory.load().unwrap();
    options.tool_pin_store = Some(Arc::new(memory));
    McpHost::start(vec![config], options).unwrap()
}

fn grown() -> ServerConfig {
    let mut config = program("s", BOTH_ERAS);
    set_env(&mut config, "GROWN", "1");
    config
}

#[tokio::test]
async fn a_changed_definition_stays_a_changed_one_until_a_person_accepts_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path(), program("s", BOTH_ERAS));
    soon(first.wait_for_startup()).await;
    assert!(first.redefined_tool_names().is_empty());
    soon(first.close()).await;

    // The change is reported again in the next run, because it was not approved.
    for _ in 0..2 {
        let host = run(folder.path(), grown());
        let told = host.watch_changes();
        soon(host.wait_for_startup()).await;
        let redefined: Vec<String> = host.redefined_tool_names().into_iter().collect();
        assert_eq!(redefined, ["s__meta"]);
        soon(host.close()).await;
        let told: Vec<ToolHostChange> = soon(told.collect()).await;
        let told = told.iter().filter_map(|change| match change {
            ToolHostChange::ToolRedefined { tool, .. } => Some(tool.as_str()),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), ["s__meta"]);
    }

    let host = run(folder.path(), grown());
    soon(host.wait_for_startup()).await;
    assert_eq!(
        host.accept_tools(|change| change.tool == "echo").unwrap(),
        []
    );
    let accepted = host.accept_tools(|_| true).unwrap();
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0].tool, "meta");
    assert!(host.redefined_tool_names().is_empty());
    assert!(problems(&host).await.is_empty());
    soon(host.close()).await;
    let host = run(folder.path(), grown());
    soon(host.wait_for_startup()).await;
    assert!(host.redefined_tool_names().is_empty());
    soon(host.close()).await;
    // After the approval of the new definition, the old one counts as changed.
    let host = run(folder.path(), program("s", BOTH_ERAS));
    soon(host.wait_for_startup()).await;
    assert_eq!(host.redefined_tool_names().len(), 1);
    soon(host.close()).await;
}

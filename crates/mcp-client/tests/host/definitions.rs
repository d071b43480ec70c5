//! That a tool is still what it was.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

use futures_util::StreamExt;
use switchboard_domain::{ToolHost, ToolHostChange};
use switchboard_mcp_client::{
    McpHost, ServerConfig, ToolPinFile, ToolPinStore, ToolPinStoreError, ToolPins, fingerprint,
};

use crate::stage::*;

#[tokio::test]
async fn a_definition_that_changes_while_it_is_there_is_seen() {
    for kind in [OLDER_ERA, NEWER_ERA] {
        let host = host([program("s", kind)]).await;
        assert!(host.changed_tools().is_empty());
        let told = host.changes();
        let before = host.tool_pins();
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
        assert_eq!(Some(change.before.as_str()), before.get("s", "meta"));
        let catalog = host.tools().await;
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
        // A new tool is no changed one.
        assert!(tool_names(&host).await.contains(&"s__grown".to_owned()));
        let after = host.tool_pins();
        assert_eq!(after.get("s", "meta"), Some(change.now.as_str()));
        assert_eq!(after.get("s", "echo"), before.get("s", "echo"));
        // It is told once, after the new list is there.
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
    let first = host([program("s", BOTH_ERAS)]).await;
    let mut known = first.tool_pins();
    assert!(known.get("s", "echo").is_some());
    soon(first.close()).await;

    let mut options = options();
    options.tool_pins = known.clone();
    let second = McpHost::start(vec![program("s", BOTH_ERAS)], options.clone()).unwrap();
    soon(second.settled()).await;
    assert!(second.changed_tools().is_empty());
    assert_eq!(second.tool_pins(), known);

    // As it was approved once, and as nobody offers it any more.
    let of_s = known.0.get_mut("s").unwrap();
    of_s.insert("echo".to_owned(), "another".to_owned());
    of_s.insert("vanished".to_owned(), "kept".to_owned());
    known
        .0
        .entry("absent".to_owned())
        .or_default()
        .insert("t".to_owned(), "kept".to_owned());
    options.tool_pins = known;
    let third = McpHost::start(vec![program("s", BOTH_ERAS)], options).unwrap();
    soon(third.settled()).await;
    let changes = third.changed_tools();
    assert_eq!(changes.len(), 1);
    assert_eq!(
        (changes[0].tool.as_str(), changes[0].before.as_str()),
        ("echo", "another")
    );
    // Servers that were not there in this run are not forgotten, and neither are their tools.
    let known = third.tool_pins();
    assert_eq!(known.get("absent", "t"), Some("kept"));
    assert_eq!(known.get("s", "vanished"), Some("kept"));
    assert_eq!(known.get("s", "echo"), Some(changes[0].now.as_str()));
}

/// A run with a memory in this folder.
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
    soon(first.settled()).await;
    assert!(first.redefined_tools().is_empty());
    soon(first.close()).await;

    // Also in the run after the one in which it was seen first.
    for _ in 0..2 {
        let host = run(folder.path(), grown());
        let told = host.changes();
        soon(host.settled()).await;
        let redefined: Vec<String> = host.redefined_tools().into_iter().collect();
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
    soon(host.settled()).await;
    assert_eq!(
        host.accept_tools(|change| change.tool == "echo").unwrap(),
        []
    );
    let accepted = host.accept_tools(|_| true).unwrap();
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0].tool, "meta");
    assert!(host.redefined_tools().is_empty());
    assert!(problems(&host).await.is_empty());
    soon(host.close()).await;
    let host = run(folder.path(), grown());
    soon(host.settled()).await;
    assert!(host.redefined_tools().is_empty());
    soon(host.close()).await;
    // And what it was is a change now.
    let host = run(folder.path(), program("s", BOTH_ERAS));
    soon(host.settled()).await;
    assert_eq!(host.redefined_tools().len(), 1);
    soon(host.close()).await;
}

/// Says what it was told to keep.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<ToolPins>>);

impl ToolPinStore for Told {
    fn save(&self, first: &ToolPins, _: &ToolPins) -> Result<(), ToolPinStoreError> {
        self.0.lock().unwrap().push(first.clone());
        Ok(())
    }

    fn covers(&self, server: &str) -> bool {
        server == "s"
    }
}

#[tokio::test]
async fn a_memory_is_told_nothing_of_servers_that_it_does_not_remember() {
    for (servers, kept) in [(&["other"][..], 0), (&["other", "s"], 1)] {
        let memory = Arc::new(Told::default());
        let mut options = options();
        options.tool_pin_store = Some(memory.clone());
        let servers = servers.iter().map(|name| program(name, BOTH_ERAS));
        let host = McpHost::start(servers.collect(), options).unwrap();
        soon(host.settled()).await;
        soon(host.close()).await;
        let told = memory.0.lock().unwrap();
        assert_eq!(told.len(), kept);
        let of_s = |known: &ToolPins| known.get("s", "echo").is_some() && known.0.len() == 1;
        assert!(told.iter().all(of_s), "{told:?}");
    }
}

use super::*;
use std::{collections::HashSet, time::Duration};

use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{ToolContent, ToolOrigin};
use tokio::sync::Barrier;

/// A host whose tools return the name of the host.
#[derive(Default)]
struct Fake {
    tools: Mutex<Vec<Arc<ToolDefinition>>>,
    /// The tool list is returned only when all tasks have reached this barrier.
    barrier: Option<Arc<Barrier>>,
    changes: Vec<ToolHostChange>,
}

fn tool(server: &str, name: &str) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(name, format!("of {server}"), json!({}));
    if !server.is_empty() {
        tool.origin = Some(ToolOrigin {
            server: server.to_owned(),
            tool: name.to_owned(),
        });
    }
    Arc::new(tool)
}

impl Fake {
    fn of(server: &str, names: &[&str]) -> Self {
        Self {
            tools: Mutex::new(names.iter().map(|name| tool(server, name)).collect()),
            ..Self::default()
        }
    }
}

#[async_trait]
impl ToolHost for Fake {
    async fn list_tools(&self) -> ToolCatalog {
        if let Some(barrier) = &self.barrier {
            barrier.wait().await;
        }
        ToolCatalog {
            tools: self.tools.lock().unwrap().clone(),
            problems: vec![ServerProblem {
                server: "dead".into(),
                message: "gone".into(),
            }],
        }
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let tools = self.tools.lock().unwrap();
        if let Some(tool) = tools.iter().find(|tool| tool.name == call.name) {
            return Ok(ToolOutput::text(format!(
                "{} {}",
                call.name, tool.description
            )));
        }
        Err(ToolCallError::UnknownTool {
            name: call.name,
            available: vec!["the host's own names".into()],
        })
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::iter(self.changes.clone()))
    }
}

async fn names(set: &ToolSet) -> Vec<String> {
    let tools = set.list_tools().await.tools;
    tools.iter().map(|tool| tool.name.clone()).collect()
}

async fn call(set: &ToolSet, name: &str) -> Result<String, ToolCallError> {
    let call = ToolCall {
        name: name.to_owned(),
        ..ToolCall::default()
    };
    let output = set.call_tool(call).await?;
    Ok(output.content.iter().map(ToolContent::as_text).collect())
}

#[tokio::test]
async fn tools_are_in_the_order_of_hosts_and_calls_reach_their_host() {
    let set = ToolSet::new()
        .with_host(Fake::of("a", &["two", "one"]))
        .with_host(Fake::of("b", &["three", "one"]))
        .with_host(Fake::of("", &["one"]));
    let expected = ["two", "one", "three", "b__one", "host3__one"];
    assert_eq!(names(&set).await, expected);
    assert_eq!(call(&set, "one").await.unwrap(), "one of a");
    assert_eq!(call(&set, "b__one").await.unwrap(), "one of b");
    assert_eq!(call(&set, "host3__one").await.unwrap(), "one of ");
    assert_eq!(call(&set, "three").await.unwrap(), "three of b");
    assert_eq!(set.list_tools().await.problems.len(), 3);
}

#[tokio::test]
async fn a_call_before_the_first_list_finds_its_tool() {
    let set = ToolSet::new()
        .with_host(Fake::of("a", &["one"]))
        .with_host(Fake::of("b", &["one"]));
    assert_eq!(call(&set, "b__one").await.unwrap(), "one of b");
}

#[tokio::test]
async fn a_definition_is_the_same_arc_each_time() {
    let set = ToolSet::new()
        .with_host(Fake::of("a", &["one"]))
        .with_host(Fake::of("b", &["one"]));
    let (first, second) = (set.list_tools().await.tools, set.list_tools().await.tools);
    for (first, second) in first.iter().zip(&second) {
        assert!(Arc::ptr_eq(first, second), "{}", first.name);
    }
    assert_eq!(first[1].origin.as_ref().unwrap().tool, "one");
}

#[tokio::test]
async fn a_name_stays_with_its_tool() {
    let (a, b) = (
        Arc::new(Fake::of("a", &["one"])),
        Arc::new(Fake::of("b", &["one"])),
    );
    let set = ToolSet::new()
        .with_shared_host(a.clone())
        .with_shared_host(b);
    assert_eq!(names(&set).await, ["one", "b__one"]);
    let before = std::mem::take(&mut *a.tools.lock().unwrap());
    assert_eq!(names(&set).await, ["b__one"]);
    let error = call(&set, "one").await.unwrap_err();
    assert_eq!(error.to_string(), "unknown tool `one`. Available: b__one");
    *a.tools.lock().unwrap() = before;
    assert_eq!(names(&set).await, ["one", "b__one"]);
}

#[tokio::test]
async fn hosts_are_queried_concurrently() {
    let barrier = Arc::new(Barrier::new(3));
    let mut set = ToolSet::new();
    for server in ["a", "b", "c"] {
        let mut host = Fake::of(server, &["one"]);
        host.barrier = Some(barrier.clone());
        set = set.with_host(host);
    }
    let listed = tokio::time::timeout(Duration::from_secs(30), names(&set)).await;
    assert_eq!(listed.unwrap().len(), 3);
}

#[tokio::test]
async fn changes_use_the_names_of_the_set() {
    let redefined = |tool: &str| ToolHostChange::ToolRedefined {
        server: "s".into(),
        tool: tool.into(),
        before: "x".into(),
        now: "y".into(),
    };
    let listed = ToolHostChange::ToolsChanged { server: "a".into() };
    let mut a = Fake::of("a", &["one"]);
    a.changes = vec![listed.clone(), redefined("one")];
    let mut b = Fake::of("b", &["one"]);
    b.changes = vec![redefined("one"), redefined("never listed")];
    let set = ToolSet::new().with_host(a).with_host(b);
    let _ = names(&set).await;
    let changes: Vec<_> = set.watch_changes().collect().await;
    assert_eq!(changes.len(), 4);
    for wanted in [
        listed,
        redefined("one"),
        redefined("b__one"),
        redefined("never listed"),
    ] {
        assert!(changes.contains(&wanted), "{wanted:?} in {changes:?}");
    }
}

proptest! {
    #[test]
    fn every_tool_has_a_unique_name_that_calls_it(
        hosts in prop::collection::vec(
            ("[ab]?", prop::collection::btree_set("(a__)?[ab]{1,2}|[a-z]{60,64}", 0..4)),
            0..5,
        ),
    ) {
        let mut set = ToolSet::new();
        let mut wanted = Vec::new();
        for (server, tools) in &hosts {
            let tools: Vec<_> = tools.iter().map(String::as_str).collect();
            wanted.extend(tools.iter().map(|tool| format!("{tool} of {server}")));
            set = set.with_host(Fake::of(server, &tools));
        }
        let names = names(&set).now_or_never().unwrap();
        prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), wanted.len());
        for (name, wanted) in names.iter().zip(&wanted) {
            prop_assert!(name.len() <= MAX_NAME_BYTES);
            let said = call(&set, name).now_or_never().unwrap().unwrap();
            prop_assert_eq!(&said, wanted);
        }
    }
}

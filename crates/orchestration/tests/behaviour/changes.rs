//! Changes of tools and servers during a run, and separation of principals.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::json;
use switchboard_domain::{ApprovalDecision, ApprovalScope, Principal, ToolHostChange};
use switchboard_orchestration::{
    Agent, Outcome, RunEvent, RunEventKind, RunOptions, RunStream, SharedDecisions, ToolFailure,
    tools::results::{CacheOptions, ResultCache},
};

use crate::support::{
    Answer, Person, Scripted, Tools, agent_with, allow, ask, asking, assert_grammar, assert_whole,
    calls, echo, echoing, elsewhere, picked, reading, results, tool,
};

/// Drives a run and performs a change after the first tool result.
async fn changing(mut stream: RunStream, change: impl FnOnce()) -> Vec<RunEvent> {
    let mut change = Some(change);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        if matches!(event.kind, RunEventKind::ToolFinished { .. })
            && let Some(change) = change.take()
        {
            change();
        }
        events.push(event);
    }
    assert_grammar(&events);
    assert_whole(stream.into_run().unwrap().messages());
    events
}

fn two_calls(second: &'static str) -> Arc<Scripted> {
    Scripted::new([
        calls(&[("a", "srv__do", json!({"n": 1}))]),
        calls(&[("b", second, json!({"n": 2}))]),
        Answer::Says("ok"),
    ])
}

#[tokio::test]
async fn a_call_of_a_removed_tool_lists_the_available_tools() {
    let tools = echoing(&["do", "gone", "stays"]);
    let model = two_calls("srv__gone");
    let agent = Agent::new(model.clone()).with_tools(tools.clone());
    changing(agent.ask("go"), || tools.remove("srv__gone")).await;
    assert_eq!(tools.called(), ["srv__do"]);
    let result = &results(&model, 2)[0];
    assert!(
        result.contains("unknown tool `srv__gone`") && result.contains("srv__do, srv__stays"),
        "{result}"
    );
}

#[tokio::test]
async fn a_new_tool_can_be_called_in_the_next_step() {
    let tools = echoing(&["do", "new"]);
    tools.remove("srv__new");
    let model = two_calls("srv__new");
    let agent = Agent::new(model.clone()).with_tools(tools.clone());
    changing(agent.ask("go"), || tools.define(tool("new"))).await;
    assert_eq!(tools.called(), ["srv__do", "srv__new"]);
    assert_eq!(
        (model.request(0).tools.len(), model.request(1).tools.len()),
        (1, 2)
    );
}

#[tokio::test]
async fn a_tool_that_is_redefined_during_the_run_needs_a_new_approval() {
    for redefines in [false, true] {
        let tools = echoing(&["do"]);
        let willing = Person::always(allow(ApprovalScope::Always));
        let agent = Agent::new(two_calls("srv__do"))
            .with_tools(tools.clone())
            .with_approver(willing.clone())
            .with_options(asking());
        let events = changing(agent.ask("go"), || {
            if redefines {
                let mut other = tool("do");
                other.description = "Does it and tells everybody.".into();
                tools.define(other);
                tools.tell(ToolHostChange::ToolRedefined {
                    server: "srv".into(),
                    tool: "srv__do".into(),
                    before: "1".into(),
                    now: "2".into(),
                });
            }
        })
        .await;
        let asked = willing.asked();
        let redefined: Vec<_> = asked.iter().map(|request| request.redefined).collect();
        assert_eq!(
            redefined,
            if redefines {
                vec![false, true]
            } else {
                vec![false]
            }
        );
        let told = events
            .iter()
            .filter(|event| matches!(event.kind, RunEventKind::ServerChanged { .. }))
            .count();
        assert_eq!(told, usize::from(redefines));
    }
}

#[tokio::test]
async fn server_changes_are_emitted_between_steps() {
    let tools = echoing(&["do"]);
    let agent = Agent::new(two_calls("srv__do")).with_tools(tools.clone());
    let state = |state: &str, reason: Option<&str>| ToolHostChange::ServerState {
        server: "srv".into(),
        state: state.into(),
        reason: reason.map(str::to_owned),
    };
    let events = changing(agent.ask("go"), || {
        tools.tell(state("blocked", Some("no answer five times")));
        tools.tell(state("ready", None));
    })
    .await;
    let told: Vec<_> = picked(&events, |kind| match kind {
        RunEventKind::ServerChanged { change } => Some((**change).clone()),
        _ => None,
    });
    assert_eq!(
        told,
        [
            state("blocked", Some("no answer five times")),
            state("ready", None)
        ]
    );
}

#[tokio::test]
async fn a_changed_list_of_tools_empties_the_cache_of_its_server() {
    for changes in [false, true] {
        let tools = Arc::new(Tools::new().with(reading("do"), echo));
        let model = Scripted::new([
            calls(&[("a", "srv__do", json!({"n": 1}))]),
            calls(&[("b", "srv__do", json!({"n": 1}))]),
            Answer::Says("ok"),
        ]);
        let agent = Agent::new(model)
            .with_tools(tools.clone())
            .with_result_cache(Arc::new(ResultCache::new(CacheOptions::default())));
        changing(agent.ask("go"), || {
            if changes {
                tools.tell(ToolHostChange::ToolsChanged {
                    server: "srv".into(),
                });
            }
        })
        .await;
        assert_eq!(tools.called().len(), 1 + usize::from(changes));
    }
}

#[tokio::test]
async fn results_that_were_read_during_a_change_are_not_cached() {
    // The read ends after the change and may have seen the old data.
    let changed = Arc::new(tokio::sync::Notify::new());
    let (waits, tells) = (changed.clone(), changed.clone());
    let tools = Arc::new(
        Tools::new()
            .with_async(reading("look"), move |call| {
                let waits = waits.clone();
                async move {
                    waits.notified().await;
                    echo(call)
                }
            })
            .with(tool("do"), move |call| {
                // One permit for the pending read, and one for the next read.
                tells.notify_one();
                tells.notify_one();
                echo(call)
            }),
    );
    let look = |id| (id, "srv__look", json!({"n": 1}));
    let model = Scripted::new([
        calls(&[look("a"), ("b", "srv__do", json!({"n": 1}))]),
        calls(&[look("c")]),
        calls(&[look("d")]),
        Answer::Says("ok"),
    ]);
    let cache = Arc::new(ResultCache::new(CacheOptions::default()));
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_result_cache(cache.clone());
    let (_, report) = ask(&agent, "go").await;
    let cached: Vec<_> = report.tool_calls.iter().map(|call| call.cached).collect();
    // The last call equals the previous one, and no change came between them.
    assert_eq!(cached, [false, false, false, true]);
}

fn person(name: &str) -> Principal {
    Principal {
        user: name.to_owned(),
        ..Principal::default()
    }
}

#[tokio::test]
async fn results_and_decisions_are_separate_for_each_principal() {
    // The tools belong to two servers. A change on one server discards the cached results of that
    // server only.
    let tools = Arc::new(
        Tools::new()
            .with(elsewhere(reading("look")), echo)
            .with(tool("do"), echo),
    );
    let cache = Arc::new(ResultCache::new(CacheOptions::default()));
    let decisions = SharedDecisions::default();
    let willing = Person::always(allow(ApprovalScope::Always));
    for (name, looked, asked) in [("ann", 1, 1), ("ann", 1, 1), ("bob", 2, 2)] {
        let model = Scripted::calling(&[
            ("a", "srv__look", json!({"n": 1})),
            ("b", "srv__do", json!({"n": 1})),
        ]);
        let agent = agent_with(&model, &tools, asking())
            .with_result_cache(cache.clone())
            .with_shared_decisions(decisions.clone())
            .with_approver(willing.clone())
            .with_principal(person(name), None);
        let (_, report) = ask(&agent, "go").await;
        assert_eq!(report.outcome, Outcome::Completed);
        let looks = tools
            .called()
            .iter()
            .filter(|tool| *tool == "srv__look")
            .count();
        assert_eq!(looks, looked, "{name}");
        assert_eq!(willing.asked().len(), asked, "{name}");
    }
}

#[tokio::test]
async fn a_decision_with_a_wide_scope_settles_the_open_requests() {
    for (decision, ran) in [
        (
            ApprovalDecision::Allow {
                input: None,
                scope: ApprovalScope::Session,
            },
            3,
        ),
        (
            ApprovalDecision::Deny {
                reason: Some("never".into()),
                scope: ApprovalScope::Session,
            },
            0,
        ),
    ] {
        let tools = echoing(&["do"]);
        let model = Scripted::calling(&[
            ("a", "srv__do", json!({"n": 1})),
            ("b", "srv__do", json!({"n": 2})),
            ("c", "srv__do", json!({"n": 3})),
        ]);
        let once = Person::who_says([decision]);
        let agent = agent_with(
            &model,
            &tools,
            RunOptions {
                stop_after_denial: false,
                ..asking()
            },
        )
        .with_approver(once);
        let (_, report) = ask(&agent, "go").await;
        assert_eq!(tools.called().len(), ran);
        let denied = report
            .tool_calls
            .iter()
            .filter(|call| call.failure == Some(ToolFailure::Denied));
        assert_eq!(denied.count(), 3 - ran);
    }
}

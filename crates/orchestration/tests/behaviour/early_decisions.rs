//! Decisions about calls that arrive before the call is due.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::json;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver, RunState};
use switchboard_orchestration::{
    Agent, RunEventKind, ToolFailure,
    persistence::{PersistedEvent, PersistedRun, PersistedRunEnd},
};
use tokio::sync::watch;

use crate::{
    crashes::durable_runs,
    durable_runs::{begin, completed, doing, later, watched},
    memory_store::Disk,
    support::{
        Answer, Scripted, Tools, agent_with, allow_once, asking, assert_whole, calls, deny, echo,
        tool,
    },
};

/// An approver that returns decisions before they are requested.
#[derive(Default)]
struct Leaves {
    words: Mutex<Vec<(String, ApprovalDecision)>>,
    news: watch::Sender<()>,
    /// The requested approvals.
    asked: Mutex<Vec<String>>,
}

impl Leaves {
    fn leave(&self, call: &str, word: ApprovalDecision) {
        self.words.lock().unwrap().push((call.to_owned(), word));
        self.news.send_replace(());
    }

    async fn word(&self, calls: &[String]) -> (usize, ApprovalDecision) {
        let mut news = self.news.subscribe();
        loop {
            news.borrow_and_update();
            let found = {
                let mut words = self.words.lock().unwrap();
                let at = words.iter().position(|(call, _)| calls.contains(call));
                at.map(|at| words.remove(at))
            };
            if let Some((call, word)) = found {
                let place = calls.iter().position(|it| *it == call).unwrap();
                return (place, word);
            }
            news.changed().await.unwrap();
        }
    }
}

#[async_trait]
impl Approver for Leaves {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        let id = request.tool_use.id.clone();
        self.asked.lock().unwrap().push(id.clone());
        self.word(&[id]).await.1
    }

    async fn await_early_decision(&self, _: &str, calls: &[String]) -> (usize, ApprovalDecision) {
        self.word(calls).await
    }
}

/// Three sequential calls: `a` of a tool that never ends, then `b` and `c`.
fn in_turn() -> Answer {
    calls(&[
        ("a", "srv__wait", json!({"n": 1})),
        ("b", "srv__do", json!({"n": 2})),
        ("c", "srv__do", json!({"n": 3})),
    ])
}

fn alone(name: &str) -> switchboard_domain::ToolDefinition {
    let mut definition = tool(name);
    definition.sequential = true;
    definition
}

fn tools() -> Arc<Tools> {
    let tools = Tools::new().with(alone("do"), echo);
    Arc::new(tools.with_async(alone("wait"), |_| std::future::pending()))
}

fn agent(approver: Arc<Leaves>) -> Agent {
    agent_with(&Scripted::new([in_turn()]), &tools(), asking()).with_approver(approver)
}

async fn until(run: &mut PersistedRun, is_it: impl Fn(&RunEventKind) -> bool) -> PersistedEvent {
    loop {
        let kept = run.next().await.expect("it goes on");
        if is_it(&kept.event.kind) {
            return kept;
        }
    }
}

fn starts(kind: &RunEventKind) -> bool {
    matches!(kind, RunEventKind::ToolStarted { id } if id == "a")
}

#[tokio::test]
async fn an_early_decision_survives_the_end_of_the_process() {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let person = Arc::new(Leaves::default());
    let mut run = begin(&durable_runs(&process), &agent(person.clone()), "go").await;
    person.leave("a", allow_once());
    until(&mut run, starts).await;
    // The call `a` is running.
    person.leave("b", allow_once());
    until(
        &mut run,
        |kind| matches!(kind, RunEventKind::ToolApproved { id, .. } if id == "b"),
    )
    .await;
    assert_eq!(*person.asked.lock().unwrap(), ["a"]);
    let id = run.id().to_owned();
    process.ends();
    drop(run);

    let durable_runs = durable_runs(&disk.process(None));
    let taken = durable_runs.acquire_run(&id).await.unwrap();
    let waiting = taken.restored_run().pending_approvals();
    let waiting: Vec<_> = waiting.iter().map(|it| it.tool_use.id.as_str()).collect();
    assert_eq!(waiting, ["c"], "a word that was seen to count is stored");
    let tools = doing();
    let agent = Agent::new(Scripted::new([]))
        .with_tools(tools.clone())
        .with_approver(later());
    let (_, end) = watched(durable_runs.resume_run(&agent, taken)).await;
    let PersistedRunEnd::Waiting(waiting) = end else {
        panic!("{end:?}");
    };
    assert_eq!(waiting[0].tool_use.id, "c");
    let expected = ["srv__do"];
    assert_eq!(tools.called(), expected, "the approval is requested once");
    assert_eq!(disk.record().state, RunState::Waiting);
}

#[tokio::test]
async fn an_early_denial_ends_the_call_immediately() {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let person = Arc::new(Leaves::default());
    let mut run = begin(&durable_runs(&process), &agent(person.clone()), "go").await;
    person.leave("a", allow_once());
    until(&mut run, starts).await;
    person.leave("b", deny("no"));
    let ended = |kind: &RunEventKind| matches!(kind, RunEventKind::ToolFinished { .. });
    let b = until(&mut run, ended).await;
    let RunEventKind::ToolFinished { id, failure, .. } = &b.event.kind else {
        panic!("{b:?}");
    };
    assert_eq!((id.as_str(), *failure), ("b", Some(ToolFailure::Denied)));
    let c = until(&mut run, ended).await;
    let RunEventKind::ToolFinished { id, failure, .. } = &c.event.kind else {
        panic!("{c:?}");
    };
    assert_eq!((id.as_str(), *failure), ("c", Some(ToolFailure::Skipped)));
    run.cancel_handle().cancel_run();
    completed(run).await;
    assert_whole(&disk.messages());
}

#[tokio::test]
async fn early_decisions_are_stored_while_an_approval_is_requested() {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let person = Arc::new(Leaves::default());
    let mut run = begin(&durable_runs(&process), &agent(person.clone()), "go").await;
    person.leave("c", allow_once());
    let approved = |call: &'static str| move |kind: &RunEventKind| matches!(kind, RunEventKind::ToolApproved { id, .. } if id == call);
    until(&mut run, approved("c")).await;
    process.ends();
    let id = run.id().to_owned();
    drop(run);
    let second = durable_runs(&disk.process(None));
    let taken = second.acquire_run(&id).await.unwrap();
    let waiting = taken.restored_run().pending_approvals();
    let waiting: Vec<_> = waiting.iter().map(|it| it.tool_use.id.as_str()).collect();
    assert_eq!(waiting, ["a", "b"]);
    // The approval request for `a` is still open.
    let mut run = second.resume_run(&agent(person.clone()), taken);
    person.leave("a", allow_once());
    until(&mut run, starts).await;
}

//! Durable runs that are dropped, that wait, or that cannot be stored.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use futures_util::StreamExt;
use serde_json::json;
use switchboard_domain::{
    Message, Principal, Role, RunRecord, RunSnapshot, RunState, RunStore as _, SessionStoreError,
    StoredEvent,
};
use switchboard_orchestration::{
    Agent, Outcome, Run, RunEvent, RunEventKind, SnapshotMark,
    persistence::checkpoint::{Checkpoint, CheckpointError, Checkpoints},
    persistence::{DurableRunError, PersistedRunEnd},
};

use crate::{
    crashes::durable_runs,
    durable_runs::{begin, doing, later, one, roles, said, settled, watched, yes},
    memory_store::{Disk, Wall, session_id},
    support::{
        Answer, Scripted, Tools, agent_with, asking, assert_whole, calls, echo, played, tool,
    },
};

/// Records that it was dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tools with one that never ends, and a flag for its cancellation.
fn endless() -> (Arc<Tools>, Arc<AtomicBool>) {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let tools = Tools::new()
        .with(tool("do"), echo)
        .with_async(tool("wait"), move |_| {
            let flag = Flag(flag.clone());
            async move {
                let _flag = flag;
                std::future::pending().await
            }
        });
    (Arc::new(tools), cancelled)
}

fn both() -> Answer {
    calls(&[
        ("a", "srv__do", json!({"n": 1})),
        ("b", "srv__wait", json!({"n": 1})),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_recorded_does_not_start() {
    for wall in [Wall::Fails, Wall::FailsOnce] {
        // It begins; from then on it fails at every one of its writes in turn.
        for at in 1..8 {
            let disk = Disk::with_session([]);
            let (tools, cancelled) = endless();
            let agent = Agent::new(Scripted::new([both()])).with_tools(tools.clone());
            let process = disk.process(Some((at, wall)));
            let run = begin(&durable_runs(&process), &agent, "go").await;
            // The run waits for the endless call without pending writes.
            let watched = tokio::time::timeout(std::time::Duration::from_secs(1), watched(run));
            let Ok((shown, end)) = watched.await else {
                assert!(at >= 5, "{at}: {:#?}", disk.events());
                continue;
            };
            let PersistedRunEnd::Failed(error) = end else {
                panic!("{end:?}");
            };
            assert_eq!(error.to_string(), "the session store failed to write");
            assert_eq!(shown.len(), disk.events().len(), "shown events are stored");
            let is_under_way = tools.called().contains(&"srv__wait".to_owned());
            assert_eq!(cancelled.load(Ordering::Relaxed), is_under_way, "at {at}");
            if wall == Wall::FailsOnce {
                settled(&disk, RunState::Interrupted).await;
            }
            process.ends();
            let abandoned = durable_runs(&disk.process(None))
                .abandon(&disk.record().id)
                .await;
            assert!(abandoned.is_ok(), "{abandoned:?}");
            assert_whole(&disk.messages());
        }
    }
}

#[tokio::test]
async fn a_dropped_run_can_be_resumed() {
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(None));
    let (tools, cancelled) = endless();
    let agent = Agent::new(Scripted::new([both()])).with_tools(tools);
    let mut run = begin(&durable_runs, &agent, "go").await;
    let mut shown = Vec::new();
    while let Some(kept) = run.next().await {
        let is_done =
            matches!(&kept.event.kind, RunEventKind::ToolFinished { id, .. } if id == "a");
        shown.push(kept);
        if is_done {
            break;
        }
    }
    let id = run.id().to_owned();
    drop(run);
    assert!(cancelled.load(Ordering::Relaxed), "at once");
    settled(&disk, RunState::Interrupted).await;

    let tools = doing();
    let agent = Agent::new(Scripted::new([Answer::Says("So be it.")])).with_tools(tools.clone());
    let taken = durable_runs.acquire(&id).await.unwrap();
    assert_eq!(taken.run().model().to_string(), "test/scripted");
    assert!(!taken.is_finished());
    // The acquired run is released again.
    drop(taken);
    settled(&disk, RunState::Interrupted).await;
    let taken = durable_runs.acquire(&id).await.unwrap();
    let (more, end) = watched(durable_runs.resume(&agent, taken)).await;
    let PersistedRunEnd::Finished(report) = end else {
        panic!("{end:?}");
    };
    assert_eq!(report.answer, "So be it.");
    assert!(
        tools.called().is_empty(),
        "one call is done, and the effect of the other is unknown"
    );
    let seen = shown.len() as u64;
    assert!(more[0].event.seq > seen);
    assert!(more.iter().any(|kept| matches!(
        kept.event.kind,
        RunEventKind::RunStarted { resumed: true, .. }
    )));
    assert_eq!(
        roles(&disk).last(),
        Some(&said(Role::Assistant, "So be it."))
    );
}

#[tokio::test]
async fn a_waiting_run_can_be_acquired_by_any_process() {
    let disk = Disk::with_session([]);
    let first = durable_runs(&disk.process(None));
    let agent = agent_with(&Scripted::new([one("a")]), &doing(), asking()).with_approver(later());
    let (shown, end) = watched(begin(&first, &agent, "go").await).await;
    let PersistedRunEnd::Waiting(waiting) = end else {
        panic!("{end:?}");
    };
    assert_eq!(waiting[0].tool_use.id, "a");
    let last = &shown.last().unwrap().event.kind;
    assert!(matches!(last, RunEventKind::RunParked { .. }));
    assert_eq!(disk.record().state, RunState::Waiting);
    assert_eq!(
        roles(&disk),
        [said(Role::User, "go")],
        "no call is without its result"
    );

    let second = durable_runs(&disk.process(None));
    let id = disk.record().id;
    drop(second.acquire(&id).await.unwrap());
    settled(&disk, RunState::Waiting).await;
    let tools = doing();
    let agent = Agent::new(Scripted::new([Answer::Says("ok")]))
        .with_tools(tools.clone())
        .with_approver(yes());
    let taken = second.acquire(&id).await.unwrap();
    assert_eq!(taken.run().pending_approvals().len(), 1);
    let (more, end) = watched(second.resume(&agent, taken)).await;
    assert!(matches!(end, PersistedRunEnd::Finished(_)));
    assert_eq!(more[0].event.seq, shown.len() as u64 + 1);
    assert_eq!(tools.called(), ["srv__do"]);
    assert_eq!(roles(&disk).len(), 4);
    let over = second.acquire(&id).await.unwrap_err();
    assert!(matches!(
        over,
        DurableRunError::Store(SessionStoreError::RunConflict { .. })
    ));
}

#[tokio::test]
async fn a_run_of_another_format_can_only_be_abandoned() {
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(None));
    let agent = agent_with(&Scripted::new([one("a")]), &doing(), asking()).with_approver(later());
    watched(begin(&durable_runs, &agent, "go").await).await;
    let id = disk.record().id;
    disk.spoil(r#"{"messages":2,"something":"else"}"#);
    let error = durable_runs.acquire(&id).await.unwrap_err();
    assert!(
        matches!(error, DurableRunError::Unreadable { .. }),
        "{error:?}"
    );
    assert_eq!(
        disk.record().state,
        RunState::Waiting,
        "the run is released"
    );
    let last = durable_runs.abandon(&id).await.unwrap();
    assert_eq!(last.len(), 1);
    assert_eq!(disk.record().state, RunState::Finished);
    assert_eq!(roles(&disk), [said(Role::User, "go")]);
}

#[tokio::test]
async fn a_run_with_unreadable_messages_can_only_be_abandoned() {
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(None));
    let agent = agent_with(
        &Scripted::new([one("a"), Answer::Says("ok")]),
        &doing(),
        asking(),
    )
    .with_approver(later());
    watched(begin(&durable_runs, &agent, "go").await).await;
    let id = disk.record().id;
    disk.garble();
    let error = durable_runs.acquire(&id).await.unwrap_err();
    assert!(
        matches!(error, DurableRunError::Unreadable { .. }),
        "{error:?}"
    );
    assert_eq!(disk.record().state, RunState::Waiting);
    let last = durable_runs.abandon(&id).await.unwrap();
    assert_eq!(last.len(), 1);
    assert_eq!(disk.record().outcome.as_deref(), Some("cancelled"));
    let (_, end) = watched(begin(&durable_runs, &agent, "and now?").await).await;
    assert!(
        matches!(end, PersistedRunEnd::Finished(_)),
        "the session is free"
    );
}

#[tokio::test]
async fn the_state_of_another_run_is_refused() {
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(None));
    let agent = agent_with(&Scripted::new([one("a")]), &doing(), asking()).with_approver(later());
    watched(begin(&durable_runs, &agent, "go").await).await;
    let id = disk.record().id;
    disk.change_state(|state| state.replace(&id, "another-run"));
    let error = durable_runs.acquire(&id).await.unwrap_err();
    let DurableRunError::Unreadable { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        source.to_string(),
        "the stored state belongs to run `another-run`"
    );
    let last = durable_runs.abandon(&id).await.unwrap();
    let RunEventKind::RunFinished { report } = &last[0].event.kind else {
        panic!("{last:#?}");
    };
    assert_eq!(report.run_id, id);
}

#[tokio::test]
async fn a_possibly_acquired_run_is_released() {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let durable_runs = durable_runs(&process);
    let agent = agent_with(&Scripted::new([one("a")]), &doing(), asking()).with_approver(later());
    watched(begin(&durable_runs, &agent, "go").await).await;
    let id = disk.record().id;
    process.may_do(0, Wall::LostOnce);
    let error = durable_runs.acquire(&id).await.unwrap_err();
    assert!(
        matches!(
            error,
            DurableRunError::Store(SessionStoreError::Storage { .. })
        ),
        "{error:?}"
    );
    settled(&disk, RunState::Waiting).await;
    // Nothing was done about it, and it can be taken.
    let taken = durable_runs.acquire(&id).await.unwrap();
    // Another task of this process has the lease and keeps it.
    process.may_do(0, Wall::FailsOnce);
    durable_runs.acquire(&id).await.unwrap_err();
    assert_eq!(disk.record().state, RunState::Running);
    let agent = Agent::new(Scripted::new([Answer::Says("ok")]))
        .with_tools(doing())
        .with_approver(yes());
    let (_, end) = watched(durable_runs.resume(&agent, taken)).await;
    assert!(matches!(end, PersistedRunEnd::Finished(_)), "{end:?}");
}

/// A response that never ends.
fn unfinished(words: &'static str) -> Answer {
    Answer::Hangs(words)
}

#[tokio::test]
async fn an_abandoned_run_stores_the_emitted_text() {
    for is_first in [true, false] {
        let disk = Disk::with_session([]);
        let process = disk.process(None);
        let answers = if is_first {
            vec![unfinished("There are three of")]
        } else {
            vec![one("a"), unfinished("There are three of")]
        };
        let agent = Agent::new(Scripted::new(answers)).with_tools(doing());
        let mut run = begin(&durable_runs(&process), &agent, "How many?").await;
        let mut shown = String::new();
        while shown != "There are three of" {
            let kept = run.next().await.unwrap();
            if let RunEventKind::TextDelta { text } = &kept.event.kind {
                shown.push_str(text);
            }
        }
        let id = run.id().to_owned();
        process.ends();
        drop(run);
        let durable_runs = durable_runs(&disk.process(None));
        let last = durable_runs.abandon(&id).await.unwrap();
        let RunEventKind::RunFinished { report } = &last.last().unwrap().event.kind else {
            panic!("{last:#?}");
        };
        assert_eq!(report.answer, "There are three of");
        assert_eq!(report.outcome, Outcome::Cancelled);
        let said_last = said(Role::Assistant, "There are three of");
        assert_eq!(roles(&disk).last(), Some(&said_last));
        assert_eq!(roles(&disk).len(), if is_first { 2 } else { 4 });
    }
}

#[tokio::test]
async fn the_text_of_a_complete_answer_is_not_stored_twice() {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let (tools, _) = endless();
    let answer = Answer::Calls("Let me see.", vec![("w", "srv__wait", json!({"n": 1}))]);
    let agent = Agent::new(Scripted::new([answer])).with_tools(tools);
    let mut run = begin(&durable_runs(&process), &agent, "go").await;
    while let Some(kept) = run.next().await {
        if matches!(kept.event.kind, RunEventKind::ToolStarted { .. }) {
            break;
        }
    }
    let id = run.id().to_owned();
    process.ends();
    drop(run);
    durable_runs(&disk.process(None))
        .abandon(&id)
        .await
        .unwrap();
    let texts: Vec<String> = roles(&disk).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["go", "Let me see.", ""]);
}

#[tokio::test]
async fn a_cancellation_ends_a_durable_run_properly() {
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(None));
    let (tools, cancelled) = endless();
    let agent = Agent::new(Scripted::new([both()])).with_tools(tools);
    let mut run = begin(&durable_runs, &agent, "go").await;
    let handle = run.cancel_handle();
    let mut last = None;
    while let Some(kept) = run.next().await {
        if matches!(&kept.event.kind, RunEventKind::ToolFinished { id, .. } if id == "a") {
            handle.cancel();
        }
        last = Some(kept);
    }
    assert!(cancelled.load(Ordering::Relaxed));
    let Some(RunEventKind::RunFinished { report }) = last.map(|kept| kept.event.kind.clone())
    else {
        panic!("it ends");
    };
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(matches!(run.end(), Some(PersistedRunEnd::Finished(_))));
    assert_eq!(disk.record().outcome.as_deref(), Some("cancelled"));
    assert_eq!(roles(&disk).len(), 3);
}

/// Stores the snapshot of a finished run.
#[derive(Default)]
struct AtItsEnd(Mutex<Option<RunSnapshot>>);

#[async_trait::async_trait]
impl Checkpoints for AtItsEnd {
    async fn reached(&self, run: &Run, _: Checkpoint) -> Result<(), CheckpointError> {
        let mut kept = self.0.lock().unwrap();
        if run.outcome().is_some() && kept.is_none() {
            let (snapshot, _) = run.snapshot(SnapshotMark::default()).unwrap();
            *kept = Some(snapshot);
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_run_with_a_stored_last_event_and_no_end_is_ended() {
    for (answer, outcome) in [
        (Answer::Says("ok"), Outcome::Completed),
        (Answer::Breaks("ok"), Outcome::Failed),
    ] {
        // The process ended after it stored the last event and before it stored the end.
        let disk = Disk::with_session([]);
        let at_its_end = Arc::new(AtItsEnd::default());
        let agent = Agent::new(Scripted::new([answer.clone()]));
        let agent = agent.with_checkpoints(at_its_end.clone());
        let said_first = Arc::new(Message::user("go"));
        let (events, _) = played(agent.run(vec![said_first.clone()])).await;
        let id = events[0].run_id.to_string();
        let process = disk.process(None);
        let record = RunRecord {
            id: id.clone(),
            session: session_id(),
            state: RunState::Running,
            model: "test/scripted".into(),
            created_at: String::new(),
            updated_at: String::new(),
            events_before: 0,
            last_event: 0,
            outcome: None,
            parameters: None,
        };
        let me = Principal::default();
        process.begin(&me, &record, 0, &[said_first]).await.unwrap();
        let snapshot = at_its_end.0.lock().unwrap().take().unwrap();
        process.save(&id, &snapshot).await.unwrap();
        let stored: Vec<StoredEvent> = events.iter().map(stored).collect();
        process.append_events(&id, &stored).await.unwrap();
        process.ends();

        assert_eq!(disk.record().state, RunState::Interrupted);
        let durable_runs = durable_runs(&disk.process(None));
        let shown = durable_runs.events(&id, 0, 1_000).await.unwrap();
        assert_eq!(shown.len(), stored.len() - 1);
        let taken = durable_runs.acquire(&id).await.unwrap();
        assert!(taken.is_finished());
        let nobody = Agent::new(Scripted::new([]));
        let (more, end) = watched(durable_runs.resume(&nobody, taken)).await;
        assert!(more.is_empty(), "its last event is stored");
        let PersistedRunEnd::Finished(report) = end else {
            panic!("{end:?}");
        };
        assert_eq!((report.answer.as_str(), report.outcome), ("ok", outcome));
        let shown = durable_runs.events(&id, 0, 1_000).await.unwrap();
        assert_eq!(shown.len(), stored.len());
        // Also of an answer that broke off: it was shown.
        assert_eq!(roles(&disk).last(), Some(&said(Role::Assistant, "ok")));
    }
}

fn stored(event: &RunEvent) -> StoredEvent {
    StoredEvent {
        seq: event.seq,
        json: serde_json::to_string(event).unwrap().into(),
    }
}

//! Durable runs that are dropped, that wait, or that cannot be stored.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::{FutureExt as _, StreamExt};
use serde_json::json;
use switchboard_domain::{Message, Role, RunState, SessionStoreError};
use switchboard_orchestration::{
    Agent, Outcome, RunEventKind,
    persistence::{DurableRunError, PersistedRunEnd},
};

use crate::{
    crashes::durable_runs,
    durable_runs::{begin, completed, doing, later, one, roles, said, settled, watched, yes},
    memory_store::{Disk, Process, Wall, session_id},
    support::{Answer, Scripted, Tools, asking, assert_whole, calls, echo, tool},
};

/// Sets the flag when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns tools with one that never ends, and a flag that is set when the call is cancelled.
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
        // The start is stored. The first failed operation is another one in each round.
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
                .abandon_run(&disk.record().id)
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
    let taken = durable_runs.acquire_run(&id).await.unwrap();
    assert_eq!(taken.restored_run().model_id().to_string(), "test/scripted");
    // Dropping the acquired run releases it.
    drop(taken);
    settled(&disk, RunState::Interrupted).await;
    let taken = durable_runs.acquire_run(&id).await.unwrap();
    let (more, report) = completed(durable_runs.resume_run(&agent, taken)).await;
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
    let last = said(Role::Assistant, "So be it.");
    assert_eq!(roles(&disk).last(), Some(&last));
}

#[tokio::test]
async fn a_waiting_run_can_be_acquired_by_any_process() {
    let disk = Disk::with_session([]);
    let first = durable_runs(&disk.process(None));
    let agent = Agent::new(Scripted::new([one("a")]))
        .with_tools(doing())
        .with_approver(later())
        .with_options(asking());
    let (shown, end) = watched(begin(&first, &agent, "go").await).await;
    let PersistedRunEnd::Waiting(waiting) = end else {
        panic!("{end:?}");
    };
    assert_eq!(waiting[0].tool_use.id, "a");
    let last = &shown.last().unwrap().event.kind;
    assert!(matches!(last, RunEventKind::RunParked { .. }));
    assert_eq!(disk.record().state, RunState::Waiting);
    let expected = [said(Role::User, "go")];
    assert_eq!(roles(&disk), expected, "no call is without its result");

    let second = durable_runs(&disk.process(None));
    let id = disk.record().id;
    drop(second.acquire_run(&id).await.unwrap());
    settled(&disk, RunState::Waiting).await;
    let tools = doing();
    let agent = Agent::new(Scripted::new([Answer::Says("ok")]))
        .with_tools(tools.clone())
        .with_approver(yes());
    let taken = second.acquire_run(&id).await.unwrap();
    assert_eq!(taken.restored_run().pending_approvals().len(), 1);
    let (more, _) = completed(second.resume_run(&agent, taken)).await;
    assert_eq!(more[0].event.seq, shown.len() as u64 + 1);
    assert_eq!(tools.called(), ["srv__do"]);
    assert_eq!(roles(&disk).len(), 4);
    let over = second.acquire_run(&id).await.unwrap_err();
    assert!(matches!(
        over,
        DurableRunError::Store(SessionStoreError::RunConflict { .. })
    ));
}

/// Returns a durable run that waits for approval, a process that can resume it, and its id.
async fn waiting_run() -> (Disk, Process, String) {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let agent = Agent::new(Scripted::new([one("a")]))
        .with_tools(doing())
        .with_approver(later())
        .with_options(asking());
    watched(begin(&durable_runs(&process), &agent, "go").await).await;
    let id = disk.record().id;
    (disk, process, id)
}

#[tokio::test]
async fn a_run_with_an_unreadable_state_can_only_be_abandoned() {
    type Spoiler = fn(&Disk, &str);
    let spoilers: [(Spoiler, &str); 3] = [
        (
            |disk, _| disk.change_state(|_| r#"{"messages":2,"something":"else"}"#.into()),
            "",
        ),
        (|disk, _| disk.garble(), ""),
        (
            |disk, id| disk.change_state(|state| state.replace(id, "another-run")),
            "the stored state belongs to run `another-run`",
        ),
    ];
    for (spoil, expected) in spoilers {
        let (disk, process, id) = waiting_run().await;
        let durable_runs = durable_runs(&process);
        spoil(&disk, &id);
        let error = durable_runs.acquire_run(&id).await.unwrap_err();
        let DurableRunError::Unreadable { source, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(source.to_string().contains(expected), "{source}");
        let record = disk.record();
        assert_eq!(record.state, RunState::Waiting, "the run is released");
        let last = durable_runs.abandon_run(&id).await.unwrap();
        assert_eq!(last.len(), 1);
        let RunEventKind::RunFinished { report } = &last[0].event.kind else {
            panic!("{last:#?}");
        };
        assert_eq!(report.run_id, id);
        let record = disk.record();
        assert_eq!(record.state, RunState::Finished);
        assert_eq!(record.outcome.as_deref(), Some("cancelled"));
        assert_eq!(roles(&disk), [said(Role::User, "go")]);
        let agent = Agent::new(Scripted::new([Answer::Says("ok")]));
        // The session accepts a new run.
        completed(begin(&durable_runs, &agent, "and now?").await).await;
    }
}

#[tokio::test]
async fn a_possibly_acquired_run_is_released() {
    let (disk, process, id) = waiting_run().await;
    let durable_runs = durable_runs(&process);
    process.may_do(0, Wall::LostOnce);
    let error = durable_runs.acquire_run(&id).await.unwrap_err();
    assert!(
        matches!(
            error,
            DurableRunError::Store(SessionStoreError::Storage { .. })
        ),
        "{error:?}"
    );
    settled(&disk, RunState::Waiting).await;
    // The failed operation changed nothing, so the run can be acquired.
    let taken = durable_runs.acquire_run(&id).await.unwrap();
    // Another task of the process acquired the run and keeps its lease.
    process.may_do(0, Wall::FailsOnce);
    durable_runs.acquire_run(&id).await.unwrap_err();
    assert_eq!(disk.record().state, RunState::Running);
    let agent = Agent::new(Scripted::new([Answer::Says("ok")]))
        .with_tools(doing())
        .with_approver(yes());
    completed(durable_runs.resume_run(&agent, taken)).await;
}

/// Returns a durable run whose process ended before the first snapshot.
async fn run_without_state() -> (Disk, String) {
    let disk = Disk::with_session([]);
    let process = disk.process(Some((1, Wall::Before)));
    let agent = Agent::new(Scripted::new([]));
    let mut run = begin(&durable_runs(&process), &agent, "go").await;
    tokio::select! {
        biased;
        () = process.stuck() => {}
        shown = run.next() => panic!("{shown:?}"),
    }
    process.ends();
    let id = run.id().to_owned();
    drop(run);
    assert!(!disk.has_state());
    (disk, id)
}

#[tokio::test]
async fn settings_of_a_run_without_a_stored_state_apply() {
    let (disk, id) = run_without_state().await;
    let durable_runs = durable_runs(&disk.process(None));
    let mut taken = durable_runs.acquire_run(&id).await.unwrap();
    assert!(taken.lacks_run_settings());
    taken.restored_run_mut().set_max_steps(0);
    let agent = Agent::new(Scripted::new([]));
    let (_, report) = completed(durable_runs.resume_run(&agent, taken)).await;
    assert_eq!((report.outcome, report.steps), (Outcome::Limited, 0));
}

#[tokio::test]
async fn a_dropped_acquisition_releases_the_run() {
    let (disk, id) = run_without_state().await;
    let durable_runs = durable_runs(&disk.process(None));
    let mut taking = Box::pin(durable_runs.acquire_run(&id));
    // The caller stops waiting during the acquisition.
    assert!(taking.as_mut().now_or_never().is_none());
    drop(taking);
    let released = async {
        while disk.releases() == 0 {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, released).await.unwrap();
    assert_eq!(disk.record().state, RunState::Interrupted);
}

#[tokio::test]
async fn a_run_repeats_writes_while_the_store_is_unavailable() {
    for at in 1..4 {
        let disk = Disk::with_session([]);
        let process = disk.process(Some((at, Wall::UnavailableOnce)));
        let agent = Agent::new(Scripted::new([Answer::Says("ok")]));
        completed(begin(&durable_runs(&process), &agent, "go").await).await;
    }
    // The start is not retried if the store is unavailable.
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(Some((0, Wall::UnavailableOnce))));
    let agent = Agent::new(Scripted::new([]));
    let message = vec![Arc::new(Message::user("go"))];
    let begun = durable_runs
        .begin_run(&agent, &session_id(), message, None)
        .await;
    let error = begun.unwrap_err();
    assert!(matches!(
        error,
        DurableRunError::Store(SessionStoreError::Unavailable { .. })
    ));
    assert!(disk.records().is_empty());
}

#[tokio::test]
async fn an_abandoned_run_stores_the_emitted_text() {
    for is_first in [true, false] {
        let disk = Disk::with_session([]);
        let process = disk.process(None);
        let answers = if is_first {
            vec![Answer::Hangs("There are three of")]
        } else {
            vec![one("a"), Answer::Hangs("There are three of")]
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
        let last = durable_runs.abandon_run(&id).await.unwrap();
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
        .abandon_run(&id)
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
            handle.cancel_run();
        }
        last = Some(kept);
    }
    assert!(cancelled.load(Ordering::Relaxed));
    let Some(RunEventKind::RunFinished { report }) = last.map(|kept| kept.event.kind.clone())
    else {
        panic!("it ends");
    };
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(matches!(run.run_end(), Some(PersistedRunEnd::Finished(_))));
    assert_eq!(disk.record().outcome.as_deref(), Some("cancelled"));
    assert_eq!(roles(&disk).len(), 3);
}

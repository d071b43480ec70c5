//! Cancellation at any point of a run, by any task.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, future::poll_fn};
use jiff::Timestamp;
use serde_json::json;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver};
use switchboard_orchestration::{Agent, CancelHandle, Outcome, RunStream};

use crate::support::{Answer, Scripted, agent_with, asking, calls, echoing};

/// An approver that cancels the run when it is polled for the `at`th time.
struct Leaving {
    handle: OnceLock<CancelHandle>,
    at: u32,
}

impl Leaving {
    fn at(at: u32) -> Arc<Self> {
        Arc::new(Self {
            handle: OnceLock::new(),
            at,
        })
    }
}

#[async_trait]
impl Approver for Leaving {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        let mut looks = 0;
        poll_fn(|_| {
            looks += 1;
            if looks == self.at {
                self.handle.get().unwrap().cancel_run();
            }
            Poll::Pending
        })
        .await
    }
}

fn run(leaving: &Arc<Leaving>) -> RunStream {
    let run = agent_with(
        &Scripted::new([calls(&[("a", "srv__write", json!({"n": 1}))])]),
        &echoing(&["write"]),
        asking(),
    )
    .with_approver(leaving.clone())
    .ask("go");
    assert!(leaving.handle.set(run.cancel_handle()).is_ok());
    run
}

/// Returns the outcome. Asserts that the run ends without a timeout, that is, that something wakes
/// it.
async fn ends(run: RunStream) -> Option<Outcome> {
    let began = tokio::time::Instant::now();
    let run = tokio::time::timeout(Duration::from_mins(1), run.run_to_end()).await;
    assert!(began.elapsed().is_zero(), "nobody woke it");
    run.unwrap().outcome()
}

/// The cancellation comes after the driver's check and before it waits.
#[tokio::test(start_paused = true)]
async fn a_run_cancelled_during_the_publication_of_a_question_ends() {
    let run = run(&Leaving::at(1));
    assert_eq!(ends(run).await, Some(Outcome::Cancelled));
}

/// The task that a cancellation would wake no longer reads the stream.
#[tokio::test(start_paused = true)]
async fn a_run_cancelled_while_another_task_takes_over_its_stream_ends() {
    let mut run = run(&Leaving::at(2));
    while let Some(Some(_)) = run.next().now_or_never() {}
    assert_eq!(ends(run).await, Some(Outcome::Cancelled));
}

/// The driver reads the clock for each event.
#[tokio::test(start_paused = true)]
async fn a_clock_callback_can_cancel_the_run() {
    for at in 1..12 {
        let handle = Arc::new(OnceLock::<CancelHandle>::new());
        let to_cancel = Arc::clone(&handle);
        let asked = AtomicU32::new(0);
        let run = Agent::new(Scripted::new([
            calls(&[("a", "srv__write", json!({"n": 1}))]),
            Answer::Says("done"),
        ]))
        .with_tools(echoing(&["write"]))
        .with_clock(Arc::new(move || {
            if asked.fetch_add(1, Ordering::Relaxed) == at {
                to_cancel.get().unwrap().cancel_run();
            }
            Timestamp::UNIX_EPOCH
        }))
        .ask("go");
        assert!(handle.set(run.cancel_handle()).is_ok());
        assert_eq!(ends(run).await, Some(Outcome::Cancelled), "at {at}");
    }
}

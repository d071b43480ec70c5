//! Executes runs in background tasks, which continue when no client reads the events.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{FutureExt as _, StreamExt as _, stream::BoxStream};
use switchboard_domain::SessionStoreError;
use switchboard_orchestration::{
    RunEvent, RunEventKind,
    persistence::{DurableRunError, PersistedRun, PersistedRunEnd},
};

use super::{ActiveRun, LoggedEvent, RunHub, RunStatus, lock_mutex, run_limits::RunSlots};
use crate::RunEventObserver;

/// The event stream of a run that this process executes.
pub(super) enum RunExecution {
    /// A durable run. Every event is stored before it is emitted.
    Durable(Box<PersistedRun>),
    /// An ephemeral run. Its events are only in memory.
    Ephemeral(BoxStream<'static, LoggedEvent>),
}

impl RunExecution {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<LoggedEvent>> {
        match self {
            Self::Durable(run) => run
                .poll_next_unpin(cx)
                .map(|event| event.map(LoggedEvent::from)),
            Self::Ephemeral(run) => run.poll_next_unpin(cx),
        }
    }

    /// Stops a durable run and releases its lease, the exclusive right to execute it, so that
    /// another process can resume the run. Does nothing for an ephemeral run.
    async fn release_lease(self) {
        if let Self::Durable(run) = self {
            run.stop_and_release().await;
        }
    }

    /// Returns the status of a run that emits no more events. `last` is the status that the last
    /// event of an ephemeral run reports.
    fn final_status(&self, last: Option<RunStatus>) -> RunStatus {
        let Self::Durable(run) = self else {
            return last.unwrap_or(RunStatus::Interrupted);
        };
        match run.run_end() {
            Some(PersistedRunEnd::Finished(report)) => RunStatus::Finished(report.clone()),
            Some(PersistedRunEnd::Waiting(waiting)) => RunStatus::Suspended(waiting.clone()),
            Some(PersistedRunEnd::Failed(error)) => {
                log_store_failure(run.id(), error);
                RunStatus::Interrupted
            }
            None => RunStatus::Interrupted,
        }
    }
}

fn log_store_failure(run: &str, error: &DurableRunError) {
    match error {
        // This conflict is normal if the lease expired and another process resumed the run.
        DurableRunError::Store(SessionStoreError::RunConflict { .. }) => {
            tracing::warn!(run, %error, "another process took over the run");
        }
        error => {
            let error = error as &dyn std::error::Error;
            tracing::error!(run, error, "failed to store the run");
        }
    }
}

impl RunHub {
    /// Executes a run in a background task until it is finished, suspended or interrupted.
    pub(super) fn execute_in_background(
        &self,
        active: Arc<ActiveRun>,
        mut execution: RunExecution,
        slots: RunSlots,
    ) {
        let hub = self.clone();
        lock_mutex(&self.shared.active).insert(active.id(), Arc::clone(&active));
        if active.is_durable {
            self.notify_session_change(&active.record.session);
        }
        let task = async move {
            // The panic is caught so that readers receive the end of the run. The shared state
            // remains usable after a panic, because its locks ignore poisoning and the run is
            // removed below.
            let executed =
                AssertUnwindSafe(hub.execute_to_end(&active, &mut execution)).catch_unwind();
            let status = executed.await.unwrap_or_else(|_| {
                tracing::error!(run = active.record.id, "the run panicked");
                RunStatus::Interrupted
            });
            // Readers may resume or cancel the run as soon as the status is published, so the lease
            // is released first.
            execution.release_lease().await;
            // Removes the run before its status is published, so that later readers do not find it.
            lock_mutex(&hub.shared.active).remove(active.record.id.as_str());
            drop(slots);
            if !active.is_durable {
                // An ephemeral run has no session, so its decisions are stored under its run id.
                hub.engine()
                    .forget_session_approvals(&active.owner, &active.record.id);
            }
            if !matches!(status, RunStatus::Finished(_)) {
                lock_mutex(&hub.shared.metrics).forget_run(&active.record.id);
            }
            active.log.set_status(status);
            if active.is_durable {
                hub.notify_session_change(&active.record.session);
            }
        };
        self.shared.tasks.spawn(task);
        // If the shutdown started before this run was added to the active runs,
        // `end_all_approval_waits` may have missed the run, so it is called again.
        if self.shared.stopping.is_cancelled() {
            self.end_all_approval_waits();
        }
    }

    async fn execute_to_end(&self, active: &ActiveRun, execution: &mut RunExecution) -> RunStatus {
        let mut aborted = pin!(self.shared.abort.cancelled());
        let mut last = None;
        let session = active
            .is_durable
            .then_some(active.record.session.0.as_str());
        let mut observer = self.engine().create_run_observer(&active.owner, session);
        loop {
            let next = poll_fn(|cx| {
                if aborted.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(()));
                }
                let next = execution.poll_next(cx);
                if next.is_pending() {
                    // No event is ready, so the log contains all emitted events, and the status
                    // after the last one can be published.
                    self.publish_waiting_status(active);
                }
                next.map(Ok)
            });
            match next.await {
                Err(()) => return RunStatus::Interrupted,
                Ok(None) => return execution.final_status(last),
                Ok(Some(logged)) => {
                    if let Some(event) = logged.parsed_event() {
                        if let RunEventKind::RunFinished { report } = &event.kind {
                            last = Some(RunStatus::Finished(report.clone()));
                        }
                        self.observe_event(active, &event, &mut observer).await;
                    }
                    active.log.push(logged);
                }
            }
        }
    }

    async fn observe_event(
        &self,
        active: &ActiveRun,
        event: &RunEvent,
        observer: &mut Option<Box<dyn RunEventObserver>>,
    ) {
        active.approvals.observe_event(&event.kind);
        let is_delta = matches!(
            event.kind,
            RunEventKind::TextDelta { .. }
                | RunEventKind::ReasoningDelta { .. }
                | RunEventKind::ToolInputDelta { .. }
        );
        if !is_delta {
            lock_mutex(&self.shared.metrics).count_event(event);
            if let Some(observer) = observer {
                observer.observe_event(event).await;
            }
        }
    }

    /// Publishes in the log whether the run waits for a decision or an answer of a person.
    fn publish_waiting_status(&self, active: &ActiveRun) {
        let requests = active.approvals.awaited_approval_requests();
        let has_questions = || {
            let questions = self.engine().pending_questions();
            questions.is_some_and(|it| !it.open_questions(&active.record.id).is_empty())
        };
        let status = active.log.run_status();
        if !requests.is_empty() || has_questions() {
            let is_published =
                matches!(status, RunStatus::AwaitingInput(published) if published == requests);
            if !is_published {
                active.log.set_status(RunStatus::AwaitingInput(requests));
            }
        } else if matches!(status, RunStatus::AwaitingInput(_)) {
            active.log.set_status(RunStatus::Running);
        }
    }
}

//! Drives a run in the background, whoever reads it.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{Active, Hub, Logged, Standing, lock, place::Place};
use crate::Observer;
use futures_util::{FutureExt as _, StreamExt as _};
use switchboard_domain::{ApprovalRequest, SessionStoreError};
use switchboard_orchestration::{
    CancelHandle, RunEvent, RunEventKind, RunStream,
    persistence::{DurableRunError, PersistedEvent, PersistedRun, PersistedRunEnd},
};

/// A run that is polled here.
pub(super) enum Driven {
    /// Its events are in the store.
    Kept(Box<PersistedRun>),
    /// They are in memory only. The first one was looked at.
    Loose(Option<RunEvent>, Box<RunStream>),
}

/// An event that was told.
enum Told {
    /// It is stored.
    Kept(PersistedEvent),
    Loose(Arc<RunEvent>),
}

impl Told {
    fn event(&self) -> &RunEvent {
        match self {
            Self::Kept(kept) => &kept.event,
            Self::Loose(event) => event,
        }
    }
}

impl From<Told> for Logged {
    fn from(told: Told) -> Self {
        match told {
            Told::Kept(kept) => kept.into(),
            Told::Loose(event) => Self::loose(event),
        }
    }
}

impl Driven {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        match self {
            Self::Kept(run) => run.poll_next_unpin(cx).map(|kept| kept.map(Told::Kept)),
            Self::Loose(first, run) => {
                let event = match first.take() {
                    Some(first) => Poll::Ready(Some(first)),
                    None => run.poll_next_unpin(cx),
                };
                event.map(|event| event.map(|event| Told::Loose(Arc::new(event))))
            }
        }
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        match self {
            Self::Kept(run) => run.cancel_handle(),
            Self::Loose(_, run) => run.cancel_handle(),
        }
    }

    /// Stops it where it is, unless it is over; of one that is kept nothing is held behind this.
    async fn leave(self) {
        match self {
            Self::Kept(run) => run.release().await,
            Self::Loose(..) => {}
        }
    }

    fn end(&self, last: Option<Standing>) -> Standing {
        let Self::Kept(run) = self else {
            return last.unwrap_or(Standing::Left);
        };
        match run.end() {
            Some(PersistedRunEnd::Finished(report)) => Standing::Over(report.clone()),
            Some(PersistedRunEnd::Waiting(waiting)) => Standing::Parked(waiting.clone()),
            Some(PersistedRunEnd::Failed(error)) => {
                tell_failure(run.id(), error);
                Standing::Left
            }
            None => Standing::Left,
        }
    }
}

fn tell_failure(run: &str, error: &DurableRunError) {
    match error {
        // Another process has taken it: as it should be, if this one was taken for dead.
        DurableRunError::Store(SessionStoreError::RunConflict { .. }) => {
            tracing::warn!(run, %error, "a run was lost to another process");
        }
        error => {
            let error = error as &dyn std::error::Error;
            tracing::error!(run, error, "a run could not be kept");
        }
    }
}

impl Hub {
    /// Drives a run until it is over, parked or let go.
    pub(super) fn drive(&self, active: Arc<Active>, mut run: Driven, place: Place) {
        let hub = self.clone();
        self.active().insert(active.id(), Arc::clone(&active));
        if active.is_kept {
            self.tell(&active.record.session);
        }
        let task = async move {
            // Whatever panics in it, nobody is to wait for it for ever. What was shared with it is behind locks that are
            // taken all the same, and of the run itself nothing is done any more but to let go of it.
            let driven = AssertUnwindSafe(hub.to_its_end(&active, &mut run)).catch_unwind();
            let standing = driven.await.unwrap_or_else(|_| {
                tracing::error!(run = active.record.id, "a run ended in a panic");
                Standing::Left
            });
            // Before it is told: whoever hears that it was left may go on with it, or end it.
            run.leave().await;
            // First it is no longer found, then it is over: whoever looks for where it goes on must not find this.
            hub.active().remove(active.record.id.as_str());
            drop(place);
            if !active.is_kept {
                // It was its own session.
                hub.engine().forget(&active.owner, &active.record.id);
            }
            if !matches!(standing, Standing::Over(_)) {
                lock(&hub.shared.metrics).forget(&active.record.id);
            }
            active.log.stands(standing);
            if active.is_kept {
                hub.tell(&active.record.session);
            }
        };
        self.shared.tasks.spawn(task);
        // Nobody may have seen it yet when the server began to stop.
        if self.shared.stopping.is_cancelled() {
            self.close_desks();
        }
    }

    fn close_desks(&self) {
        for run in self.active().values() {
            run.desk.close();
        }
    }

    async fn to_its_end(&self, active: &Active, run: &mut Driven) -> Standing {
        let mut cut = pin!(self.shared.cut.cancelled());
        let mut last = None;
        let session = active.is_kept.then_some(active.record.session.0.as_str());
        let mut observer = self.engine().observer(&active.owner, session);
        loop {
            let next = poll_fn(|cx| {
                if cut.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(()));
                }
                let next = run.poll_next(cx);
                if next.is_pending() {
                    // Everything that was told is in the log.
                    self.look_whether_it_asks(active);
                }
                next.map(Ok)
            });
            match next.await {
                // Leaving the run stops it, and lets go of it.
                Err(()) => return Standing::Left,
                Ok(None) => return run.end(last),
                Ok(Some(told)) => {
                    if let RunEventKind::RunFinished { report } = &told.event().kind {
                        last = Some(Standing::Over(report.clone()));
                    }
                    self.take_in(active, told, &mut observer).await;
                }
            }
        }
    }

    async fn take_in(&self, active: &Active, told: Told, observer: &mut Option<Box<dyn Observer>>) {
        let kind = &told.event().kind;
        active.desk.observe(kind);
        let is_piece = matches!(
            kind,
            RunEventKind::TextDelta { .. }
                | RunEventKind::ReasoningDelta { .. }
                | RunEventKind::ToolInputDelta { .. }
        );
        if !is_piece {
            lock(&self.shared.metrics).observe(told.event());
            if let Some(observer) = observer {
                observer.observe(told.event()).await;
            }
        }
        active.log.push(Logged::from(told));
    }

    fn look_whether_it_asks(&self, active: &Active) {
        let asked: Vec<ApprovalRequest> = active.desk.asked();
        let has_questions = || {
            let questions = self.engine().questions();
            questions.is_some_and(|it| !it.open(&active.record.id).is_empty())
        };
        if !asked.is_empty() || has_questions() {
            let is_told = match active.log.standing() {
                Standing::Asking(told) => told == asked,
                _ => false,
            };
            if !is_told {
                active.log.stands(Standing::Asking(asked));
            }
        } else if matches!(active.log.standing(), Standing::Asking(_)) {
            active.log.stands(Standing::Running);
        }
    }
}

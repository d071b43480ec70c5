//! A run as a stream of its events.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::{Stream, future::BoxFuture};
use futures_util::StreamExt;

use super::publish::{Listener, Publisher};
use crate::{Run, RunEvent};

/// A run as it happens. Polling the stream is what drives it; nothing is spawned. The run does
/// nothing more until the events of what it did last were taken, so a reader that cancels at an event
/// stops what would come after it. Words of the model that arrived together are told together, and what tools and
/// servers say meanwhile comes with what the run does next.
///
/// Dropping it stops everything at once: the model's HTTP request is aborted and servers are told
/// to cancel. [`RunStream::cancel_handle`] stops it with a proper end instead: a `run_finished` event
/// and a history in which every tool use has its result.
pub struct RunStream {
    events: Listener,
    driver: Option<BoxFuture<'static, Box<Run>>>,
    finished: Option<Box<Run>>,
    /// Events that were handed out without a pause.
    in_a_row: u32,
}

/// Events after which the reader's task gives way to others, as tokio's own channels do: a model that always has
/// more would keep the one that stops it from its turn.
const IN_A_ROW: u32 = 128;

impl RunStream {
    pub(super) fn new(events: Listener, driver: BoxFuture<'static, Box<Run>>) -> Self {
        Self {
            events,
            driver: Some(driver),
            finished: None,
            in_a_row: 0,
        }
    }

    /// Stops the run from elsewhere.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(Some(self.events.publisher()))
    }

    /// Drives the run to its end, events unseen, and gives it: history, report and all.
    pub async fn finish(mut self) -> Run {
        loop {
            while self.next().await.is_some() {}
            // The stream ends exactly when the driver has handed the run over.
            if let Some(run) = self.finished.take() {
                return *run;
            }
        }
    }

    /// The run, once the stream has ended.
    pub fn into_run(self) -> Option<Run> {
        self.finished.map(|run| *run)
    }
}

impl Stream for RunStream {
    type Item = RunEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.in_a_row >= IN_A_ROW {
            this.in_a_row = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        this.in_a_row += 1;
        // What was told since the last look is taken with what the driver tells now: one look for both.
        if let Some(event) = this.events.seen() {
            return Poll::Ready(Some(event));
        }
        loop {
            let Some(driver) = &mut this.driver else {
                return Poll::Ready(this.events.next());
            };
            match driver.as_mut().poll(cx) {
                Poll::Ready(run) => {
                    this.driver = None;
                    this.finished = Some(run);
                }
                // The driver waits for something, or gives way because it said something. Progress
                // may be told from another thread, so that must wake us too.
                Poll::Pending => {
                    let Some(event) = this.events.next_or_wake(cx) else {
                        this.in_a_row = 0;
                        return Poll::Pending;
                    };
                    return Poll::Ready(Some(event));
                }
            }
        }
    }
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream")
            .field("ended", &self.driver.is_none())
            .finish_non_exhaustive()
    }
}

/// Stops a run from elsewhere.
#[derive(Debug, Clone)]
pub struct CancelHandle(Option<Publisher>);

impl CancelHandle {
    /// Of a run that is over.
    pub(crate) fn of_nothing() -> Self {
        Self(None)
    }

    /// Stops it. Doing so twice, or after its end, changes nothing.
    pub fn cancel(&self) {
        if let Some(run) = &self.0 {
            run.cancel();
        }
    }
}

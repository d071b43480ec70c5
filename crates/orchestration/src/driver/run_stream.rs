//! The event stream of a run.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::{Stream, future::BoxFuture};
use futures_util::StreamExt;
use tokio::task::coop;
use tokio_util::sync::CancellationToken;

use super::event_publisher::EventReader;
use crate::{Run, RunEvent};

/// An executing run as a stream of events. Polling the stream executes the run; no task is spawned.
///
/// The next action of the run starts only after the reader has taken all earlier events. A reader
/// that cancels the run at an event therefore prevents all later actions. Progress of a tool is
/// emitted while the tool runs; a change of a tool server is emitted before the next action.
///
/// Dropping the stream stops the run: the HTTP request to the model is aborted, and tool servers
/// receive a cancellation. [`RunStream::cancel_handle`] ends the run properly, with a
/// `run_finished` event and with a result for every tool use.
#[derive(derive_more::Debug)]
#[debug("RunStream {{ ended: {}, .. }}", driver.is_none())]
pub struct RunStream {
    events: EventReader,
    cancellation: CancellationToken,
    driver: Option<BoxFuture<'static, Box<Run>>>,
    finished: Option<Box<Run>>,
}

impl RunStream {
    pub(super) fn new(
        events: EventReader,
        cancellation: CancellationToken,
        driver: BoxFuture<'static, Box<Run>>,
    ) -> Self {
        Self {
            events,
            cancellation,
            driver: Some(driver),
            finished: None,
        }
    }

    /// Returns a handle that cancels the run and can be sent to other tasks.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(self.cancellation.clone())
    }

    /// Executes the run to its end, discards its remaining events, and returns the run.
    pub async fn run_to_end(mut self) -> Run {
        loop {
            while self.next().await.is_some() {}
            // The stream ends only when the driver has returned the run.
            if let Some(run) = self.finished.take() {
                return *run;
            }
        }
    }

    /// Returns the run if the stream has ended, and `None` otherwise.
    pub fn into_run(self) -> Option<Run> {
        self.finished.map(|run| *run)
    }
}

impl Stream for RunStream {
    type Item = RunEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Tokio's cooperative budget makes this task yield. Otherwise, a model that streams without
        // pauses would block the task that cancels the run.
        let budget = ready!(coop::poll_proceed(cx));
        let this = self.get_mut();
        let next = loop {
            // The driver continues only after the reader has taken all events.
            if let Some(event) = this.events.next() {
                break Poll::Ready(Some(event));
            }
            let Some(driver) = &mut this.driver else {
                break Poll::Ready(None);
            };
            match driver.as_mut().poll(cx) {
                Poll::Ready(run) => {
                    this.driver = None;
                    this.finished = Some(run);
                }
                // The driver waits, or it has published events, which `poll_next` returns. Tools
                // may emit progress from other threads, and that progress must also wake this task.
                Poll::Pending => break this.events.poll_next(cx).map(Some),
            }
        };
        if next.is_ready() {
            budget.made_progress();
        }
        next
    }
}

/// A handle that cancels a run from any task. The run then ends with a result for each tool use.
#[derive(Debug, Clone)]
pub struct CancelHandle(CancellationToken);

impl CancelHandle {
    /// Cancels the run. Has no effect if the run is already cancelled or finished.
    pub fn cancel_run(&self) {
        self.0.cancel();
    }
}

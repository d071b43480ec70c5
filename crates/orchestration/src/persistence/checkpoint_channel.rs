//! Where the driver of a kept run leaves what is to be stored, and waits until it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use switchboard_domain::RunSnapshot;
use tokio::sync::oneshot;

use crate::{
    Run, SnapshotMark,
    persistence::checkpoint::{Checkpoint, CheckpointError, Checkpoints},
};

/// Between a driver and the stream that stores what it does. There is one writer, so that a snapshot is
/// stored behind the events that were told before it.
#[derive(Clone)]
pub(super) struct Desk(Arc<Mutex<Papers>>);

struct Papers {
    /// What the store has of the conversation, or will have when the order is done.
    mark: SnapshotMark,
    /// The number of the first event that is told after the run was over: such are stored with its end.
    ending: Option<u64>,
    order: Option<Order>,
    /// Why nothing can be stored any more.
    fault: Option<serde_json::Error>,
}

/// Something to be stored while the driver waits.
pub(super) struct Order {
    pub(super) snapshot: RunSnapshot,
    /// Events with numbers below this one come before it.
    pub(super) next_event: u64,
    /// Told when it is stored. Dropped if it is not; then the driver is, too.
    pub(super) done: oneshot::Sender<()>,
}

impl Desk {
    /// `mark` is what the store has already.
    pub(super) fn new(mark: SnapshotMark) -> Self {
        Self(Arc::new(Mutex::new(Papers {
            mark,
            ending: None,
            order: None,
            fault: None,
        })))
    }

    /// Takes the order, if all events before it can be stored with it: `last` is the number of the last one that can.
    pub(super) fn order(&self, last: u64) -> Option<Order> {
        let mut papers = self.lock();
        papers.order.take_if(|order| order.next_event <= last + 1)
    }

    /// From which number on events are stored with the end of the run, and not before; `None` while it goes on.
    pub(super) fn ending(&self) -> Option<u64> {
        self.lock().ending
    }

    /// What the driver could not even write down; it waits, and is to be stopped.
    pub(super) fn fault(&self) -> Option<serde_json::Error> {
        self.lock().fault.take()
    }

    /// Nothing is stored any more.
    pub(super) fn close(&self) {
        self.lock().order = None;
    }

    fn lock(&self) -> MutexGuard<'_, Papers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Checkpoints for Desk {
    async fn reached(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        let done = 'order: {
            let mut papers = self.lock();
            // Every result was stored before it was told of.
            if point == Checkpoint::Settled {
                return Ok(());
            }
            if run.outcome().is_some() {
                // Nothing more is done in it. What came of it is stored with its end, in one transaction and before
                // anybody is told; until then, what is stored is a run that goes on.
                papers.ending.get_or_insert(run.next_event());
                // Nor is an earlier state stored behind it.
                papers.order = None;
                return Ok(());
            }
            let (snapshot, mark) = match run.snapshot(papers.mark) {
                Ok(made) => made,
                Err(fault) => {
                    papers.fault = Some(fault);
                    break 'order None;
                }
            };
            let (done, waits) = oneshot::channel();
            papers.mark = mark;
            papers.order = Some(Order {
                snapshot,
                next_event: run.next_event(),
                done,
            });
            Some(waits)
        };
        let Some(done) = done else {
            return std::future::pending().await;
        };
        done.await.map_err(|error| CheckpointError {
            message: "the store failed".to_owned(),
            source: Some(Box::new(error)),
        })
    }
}

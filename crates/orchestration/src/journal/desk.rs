//! Where the driver of a kept run leaves what is to be stored, and waits until it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use switchboard_domain::RunSnapshot;
use tokio::sync::oneshot;

use crate::{
    Run, SnapshotMark,
    checkpoint::{Checkpoint, CheckpointError, Checkpoints},
};

/// Between a driver and the stream that stores what it does. There is one writer, so that a snapshot is
/// stored behind the events that were told before it.
#[derive(Clone)]
pub(super) struct Desk(Arc<Mutex<Papers>>);

struct Papers {
    /// What the store has of the conversation, or will have when the order is done.
    mark: SnapshotMark,
    /// The run was over when it was stored last.
    is_over: bool,
    order: Option<Order>,
    /// Why nothing can be stored any more.
    fault: Option<serde_json::Error>,
}

/// Something to be stored while the driver waits.
pub(super) struct Order {
    pub(super) snapshot: RunSnapshot,
    /// Events with numbers below this one come first.
    pub(super) next_event: u64,
    /// Told when it is stored. Dropped if it is not; then the driver is, too.
    pub(super) done: oneshot::Sender<()>,
}

impl Desk {
    /// `mark` is what the store has already.
    pub(super) fn new(mark: SnapshotMark) -> Self {
        Self(Arc::new(Mutex::new(Papers {
            mark,
            is_over: false,
            order: None,
            fault: None,
        })))
    }

    /// Takes the order, if all events before it are stored: `stored` is the number of the last one.
    pub(super) fn order(&self, stored: u64) -> Option<Order> {
        let mut papers = self.lock();
        papers.order.take_if(|order| order.next_event <= stored + 1)
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
            let is_stored = match point {
                // Every result was stored before it was told of.
                Checkpoint::Settled => true,
                Checkpoint::Over => papers.is_over,
                _ => false,
            };
            if is_stored {
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
            papers.is_over = run.outcome().is_some();
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

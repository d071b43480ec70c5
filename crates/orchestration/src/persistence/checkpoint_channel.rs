//! The channel by which a driver waits until its checkpoint is stored.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use switchboard_domain::RunSnapshot;
use tokio::sync::oneshot;

use super::checkpoint::{Checkpoint, CheckpointError, Checkpoints};
use crate::{Run, SnapshotMark};

/// Connects a driver with the stream that writes its checkpoints. One writer keeps the order: a
/// snapshot is stored after the events that were emitted before it.
#[derive(Clone)]
pub(super) struct CheckpointChannel(Arc<Mutex<ChannelState>>);

struct ChannelState {
    /// The conversation in the store after the pending checkpoint.
    mark: SnapshotMark,
    /// Number of the first event after the end of the run. Such events are stored with the end.
    first_end_event: Option<u64>,
    pending: Option<PendingCheckpoint>,
}

/// A snapshot that the driver waits for.
pub(super) struct PendingCheckpoint {
    pub(super) snapshot: RunSnapshot,
    /// Events with lower numbers are stored before the snapshot.
    pub(super) next_event: u64,
    /// Notified when the snapshot is stored. Dropped if it is not stored, together with the driver.
    pub(super) stored: oneshot::Sender<()>,
}

impl CheckpointChannel {
    /// Creates a channel. `mark` describes the conversation in the store.
    pub(super) fn new(mark: SnapshotMark) -> Self {
        Self(Arc::new(Mutex::new(ChannelState {
            mark,
            first_end_event: None,
            pending: None,
        })))
    }

    /// Takes the pending checkpoint if all events before it are available. `last` is the number of
    /// the last available event.
    pub(super) fn take_pending(&self, last: u64) -> Option<PendingCheckpoint> {
        let mut state = self.lock();
        state
            .pending
            .take_if(|pending| pending.next_event <= last + 1)
    }

    /// Returns the number of the first event that is stored with the end of the run. `None` before
    /// the end.
    pub(super) fn first_end_event(&self) -> Option<u64> {
        self.lock().first_end_event
    }

    /// Drops the pending checkpoint.
    pub(super) fn close(&self) {
        self.lock().pending = None;
    }

    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Checkpoints for CheckpointChannel {
    async fn reached(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        // Every result was stored before its event was emitted.
        if point == Checkpoint::Settled {
            return Ok(());
        }
        let stored = {
            let mut state = self.lock();
            if run.outcome().is_some() {
                // The result is stored with the end of the run, in one transaction. Until then the
                // store has an unfinished run, and no earlier state may follow.
                state.first_end_event.get_or_insert(run.next_event());
                state.pending = None;
                return Ok(());
            }
            let (snapshot, mark) = run
                .snapshot(state.mark)
                .map_err(|error| failed("the run cannot be serialized", error))?;
            let (sender, receiver) = oneshot::channel();
            state.mark = mark;
            state.pending = Some(PendingCheckpoint {
                snapshot,
                next_event: run.next_event(),
                stored: sender,
            });
            receiver
        };
        stored
            .await
            .map_err(|error| failed("the store failed", error))
    }
}

fn failed(message: &str, error: impl std::error::Error + Send + Sync + 'static) -> CheckpointError {
    CheckpointError {
        message: message.to_owned(),
        source: Some(Box::new(error)),
    }
}

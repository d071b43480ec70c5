//! Channel through which the driver of a run passes snapshots of the run to the stream that stores
//! them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use switchboard_domain::RunSnapshot;
use tokio::sync::oneshot;

use super::checkpoint::{Checkpoint, CheckpointError, CheckpointStore};
use crate::{Run, SnapshotPosition};

/// Channel from the driver of a run to the stream that stores snapshots of the run. The driver
/// waits until each snapshot is stored.
///
/// Only this stream writes to the store. It stores the events that precede a snapshot before the
/// snapshot.
#[derive(Clone)]
pub(super) struct CheckpointChannel(Arc<Mutex<CheckpointChannelState>>);

struct CheckpointChannelState {
    /// Position in the run's messages at which the next snapshot starts. The messages before this
    /// position are in the store or in the snapshot `pending`.
    mark: SnapshotPosition,
    /// Sequence number of the first event that is stored together with the end of the run. `None`
    /// before the run ends.
    first_end_event: Option<u64>,
    pending: Option<PendingCheckpoint>,
}

/// A snapshot of the run that is not stored yet. The driver waits until it is stored.
pub(super) struct PendingCheckpoint {
    pub(super) snapshot: RunSnapshot,
    /// Number of the next event. Events with lower numbers are stored before the snapshot.
    pub(super) next_event: u64,
    /// Sender that notifies the driver when the snapshot is stored. It is dropped if the snapshot
    /// is not stored.
    pub(super) stored: oneshot::Sender<()>,
}

impl CheckpointChannel {
    /// Creates a channel. The first snapshot starts at the position `mark` of the run's messages,
    /// because the store already has the earlier messages.
    pub(super) fn new(mark: SnapshotPosition) -> Self {
        Self(Arc::new(Mutex::new(CheckpointChannelState {
            mark,
            first_end_event: None,
            pending: None,
        })))
    }

    /// Takes the pending checkpoint if all events that must precede it were emitted. `last` is the
    /// sequence number of the latest emitted event.
    pub(super) fn take_pending_checkpoint(&self, last: u64) -> Option<PendingCheckpoint> {
        let mut state = self.lock_state();
        state
            .pending
            .take_if(|pending| pending.next_event <= last + 1)
    }

    /// Returns the sequence number of the first event that is stored together with the end of the
    /// run. Returns `None` before the run ends.
    pub(super) fn first_end_event(&self) -> Option<u64> {
        self.lock_state().first_end_event
    }

    /// Drops the pending checkpoint, so that the waiting driver gets an error.
    pub(super) fn drop_pending_checkpoint(&self) {
        self.lock_state().pending = None;
    }

    fn lock_state(&self) -> MutexGuard<'_, CheckpointChannelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CheckpointStore for CheckpointChannel {
    async fn save_checkpoint(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        // `Settled` means that the sent tool calls have results. Each result was already stored
        // before its event was emitted.
        if point == Checkpoint::Settled {
            return Ok(());
        }
        let stored = {
            let mut state = self.lock_state();
            if run.outcome().is_some() {
                // The end of the run is stored in one transaction with its last events, so no
                // snapshot is stored here. A pending snapshot has an earlier state and is dropped.
                state.first_end_event.get_or_insert(run.next_event_number());
                state.pending = None;
                return Ok(());
            }
            let (snapshot, mark) = run
                .take_snapshot(state.mark)
                .map_err(|error| new_checkpoint_error("the run cannot be serialized", error))?;
            let (sender, receiver) = oneshot::channel();
            state.mark = mark;
            state.pending = Some(PendingCheckpoint {
                snapshot,
                next_event: run.next_event_number(),
                stored: sender,
            });
            receiver
        };
        stored
            .await
            .map_err(|error| new_checkpoint_error("the store failed", error))
    }
}

fn new_checkpoint_error(
    message: &str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> CheckpointError {
    CheckpointError {
        message: message.to_owned(),
        source: Some(Box::new(error)),
    }
}

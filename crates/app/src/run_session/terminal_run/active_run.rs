//! Common interface to stored runs and to runs without storage.

use std::sync::Arc;

use futures_util::StreamExt as _;
use switchboard_orchestration::{
    CancelHandle, RunEvent, RunStream,
    persistence::{PersistedRun, PersistedRunEnd},
};

/// A run in progress, whose events are read one by one.
pub(crate) enum ActiveRun {
    /// A run without storage, which cannot be resumed.
    Ephemeral(Box<RunStream>),
    /// A run that is stored in a session and can be resumed.
    Persisted(Box<PersistedRun>),
}

impl ActiveRun {
    /// Returns the next event, or `None` when the run has ended. The future is cancel safe.
    pub(super) async fn next_event(&mut self) -> Option<Arc<RunEvent>> {
        match self {
            Self::Ephemeral(run) => run.next().await.map(Arc::new),
            Self::Persisted(run) => run.next().await.map(|stored| stored.event),
        }
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        match self {
            Self::Ephemeral(run) => run.cancel_handle(),
            Self::Persisted(run) => run.cancel_handle(),
        }
    }

    /// Returns how a stored run ended. `None` for a run in progress and for a run without storage.
    pub(crate) fn run_end(&self) -> Option<&PersistedRunEnd> {
        match self {
            Self::Ephemeral(_) => None,
            Self::Persisted(run) => run.run_end(),
        }
    }
}

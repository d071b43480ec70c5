//! Common interface to runs with and without storage.

use std::sync::Arc;

use futures_util::StreamExt as _;
use switchboard_orchestration::{
    CancelHandle, RunEvent, RunStream,
    persistence::{PersistedRun, PersistedRunEnd},
};

/// A run in progress.
pub(crate) enum ActiveRun {
    /// A run without storage.
    Ephemeral(Box<RunStream>),
    /// A stored run of a session.
    Persisted(Box<PersistedRun>),
}

impl ActiveRun {
    /// Returns the next event, or `None` when the run has ended. Cancel safe.
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

    /// Returns how a stored run ended. `None` while it is in progress and for runs without storage.
    pub(crate) fn run_end(&self) -> Option<&PersistedRunEnd> {
        match self {
            Self::Ephemeral(_) => None,
            Self::Persisted(run) => run.run_end(),
        }
    }
}

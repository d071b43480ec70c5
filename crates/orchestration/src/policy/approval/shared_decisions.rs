//! Remembered approval decisions that several runs share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::policy::approval::RememberedDecisions;

/// Remembered approval decisions, shared between the runs of a program. Cheap to clone.
///
/// The caller stores them: [`SharedDecisions::copy_decisions`] returns the data to keep after the
/// program ends.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SharedDecisions(Arc<Mutex<RememberedDecisions>>);

impl SharedDecisions {
    /// Creates shared decisions from stored decisions.
    pub fn new(decisions: RememberedDecisions) -> Self {
        Self(Arc::new(Mutex::new(decisions)))
    }

    /// Returns a copy of the decisions, for example to store them.
    pub fn copy_decisions(&self) -> RememberedDecisions {
        self.lock_decisions().clone()
    }

    /// Locks the decisions. The guard must not be kept across an `await`.
    pub(crate) fn lock_decisions(&self) -> MutexGuard<'_, RememberedDecisions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the decisions, for example to revoke one, and returns the result of `change`.
    pub fn change_decisions<T>(&self, change: impl FnOnce(&mut RememberedDecisions) -> T) -> T {
        change(&mut self.lock_decisions())
    }
}

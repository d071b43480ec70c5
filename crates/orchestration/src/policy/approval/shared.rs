//! Approval decisions that runs share.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::policy::approval::Decisions;

/// Earlier approval decisions, shared between the runs of a program. Cheap to clone.
///
/// [`SharedDecisions::snapshot`] returns the data that must be stored between two starts of the
/// program.
#[derive(Clone, Default)]
pub struct SharedDecisions(Arc<Mutex<Decisions>>);

impl SharedDecisions {
    /// Creates shared decisions from stored ones.
    pub fn new(decisions: Decisions) -> Self {
        Self(Arc::new(Mutex::new(decisions)))
    }

    /// Returns a copy of the decisions.
    pub fn snapshot(&self) -> Decisions {
        self.lock().clone()
    }

    /// Locks the decisions. The guard must not be held across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Decisions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the decisions, for example to revoke one.
    pub fn change<T>(&self, change: impl FnOnce(&mut Decisions) -> T) -> T {
        change(&mut self.lock())
    }
}

impl fmt::Debug for SharedDecisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedDecisions")
            .field(&*self.lock())
            .finish()
    }
}

/// Serialized as the current decisions.
impl Serialize for SharedDecisions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lock().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedDecisions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Decisions::deserialize(deserializer).map(Self::new)
    }
}

//! What people decided before, shared between runs.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::policy::approval::Decisions;

/// What people decided before about tool calls, shared between the runs of a program. Cheap to clone.
///
/// Whoever keeps it between two starts of the program stores what [`SharedDecisions::snapshot`] gives.
#[derive(Clone, Default)]
pub struct SharedDecisions(Arc<Mutex<Decisions>>);

impl SharedDecisions {
    /// Begins with what was stored.
    pub fn new(decisions: Decisions) -> Self {
        Self(Arc::new(Mutex::new(decisions)))
    }

    /// What there is now.
    pub fn snapshot(&self) -> Decisions {
        self.lock().clone()
    }

    /// Looks at it or changes it. Not to be held across anything that waits.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Decisions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it, such as to take an answer back.
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

/// Stored as what it holds at the moment.
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

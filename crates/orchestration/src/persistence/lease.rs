//! Exclusive leases of runs, which ensure that only one task of this process executes a run.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures_core::future::BoxFuture;
use switchboard_domain::{Message, RunState, RunStore, SessionStoreError, StoredEvent};

/// Registry of the runs that tasks of this process acquire, by run id.
///
/// A store records which process executes a run, but not which task of the process.
#[derive(Clone, Default)]
pub(super) struct LocalRunLocks(Arc<Mutex<HashMap<String, Weak<LocalRunLock>>>>);

impl LocalRunLocks {
    /// Returns the entry of a run and creates it if necessary. The entry exists as long as a task
    /// uses it.
    pub(super) fn find_or_add_run(&self, run: &str) -> Arc<LocalRunLock> {
        let mut runs = lock_mutex(&self.0);
        runs.retain(|_, local| local.strong_count() > 0);
        if let Some(local) = runs.get(run).and_then(Weak::upgrade) {
            return local;
        }
        let local = Arc::new(LocalRunLock::default());
        runs.insert(run.to_owned(), Arc::downgrade(&local));
        local
    }
}

/// Lock that serializes acquisition and release of one run within this process.
#[derive(Default)]
pub(super) struct LocalRunLock {
    transition: tokio::sync::Mutex<()>,
    leases: Mutex<LeaseState>,
}

/// Lease state of one run. Each new lease increments `generation` and stores its value. An earlier
/// lease with a lower value can no longer release the run.
#[derive(Default)]
struct LeaseState {
    generation: u64,
    is_leased: bool,
}

impl LocalRunLock {
    /// Waits until no other task acquires or releases the run, and excludes other tasks until the
    /// guard is dropped.
    pub(super) async fn lock_lease_changes(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.transition.lock().await
    }

    /// Returns whether a task of this process has the lease of the run.
    pub(super) fn is_leased(&self) -> bool {
        lock_mutex(&self.leases).is_leased
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Exclusive right to execute a run.
///
/// Dropping it releases the run, so that another task or process can acquire it.
pub(super) struct RunLease {
    runs: Arc<dyn RunStore>,
    /// The active lease. `None` after the release, or if the run belongs to another process.
    leased: Option<ActiveLease>,
}

struct ActiveLease {
    runs: Arc<dyn RunStore>,
    run: String,
    /// Number of messages in the session. It does not change until the run ends and adds its
    /// messages.
    session_messages: u64,
    /// State that the run gets if the lease is released before the run finishes.
    release_state: RunState,
    local: Arc<LocalRunLock>,
    generation: u64,
}

impl RunLease {
    /// Creates a lease, which makes an earlier lease of this run in this process invalid.
    /// `session_messages` is the number of messages in the session.
    pub(super) fn new(
        runs: Arc<dyn RunStore>,
        local_runs: &LocalRunLocks,
        run: String,
        session_messages: u64,
    ) -> Self {
        let local = local_runs.find_or_add_run(&run);
        let generation = {
            let mut leases = lock_mutex(&local.leases);
            leases.generation += 1;
            leases.is_leased = true;
            leases.generation
        };
        let leased = ActiveLease {
            runs: Arc::clone(&runs),
            run,
            session_messages,
            release_state: RunState::Interrupted,
            local,
            generation,
        };
        Self {
            runs,
            leased: Some(leased),
        }
    }

    /// Returns the store that contains the leased run.
    pub(super) fn run_store(&self) -> Arc<dyn RunStore> {
        Arc::clone(&self.runs)
    }

    /// Sets the state that the run gets if the lease is released before the run finishes.
    pub(super) fn set_run_state_on_release(&mut self, state: RunState) {
        if let Some(leased) = &mut self.leased {
            leased.release_state = state;
        }
    }

    /// Drops the lease without a write to the store. Used if the store has already released the
    /// run, or did not assign the run to this process.
    pub(super) fn drop_without_release(mut self) {
        self.leased = None;
    }

    /// Stores the last events of a run that waits or finished, and releases the run. The messages
    /// of a finished run are stored in its session too.
    pub(super) async fn finish_run(
        self,
        events: &[StoredEvent],
        state: RunState,
        outcome: Option<String>,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        let Some(leased) = &self.leased else {
            return Ok(());
        };
        let (runs, run, after) = (&leased.runs, &leased.run, leased.session_messages);
        let released = retry_until_available(|| {
            runs.release_run_with_events(run, events, state, outcome.clone(), after, messages)
        });
        let released = released.await;
        if released.is_ok() {
            self.drop_without_release();
        } else {
            // The run is released before the error is returned, so that the caller can acquire it
            // again. This release may succeed although the write above failed, because it stores
            // less data.
            self.release_run().await;
        }
        released
    }

    /// Releases the run and waits until the store has recorded the release.
    pub(super) async fn release_run(mut self) {
        if let Some(leased) = self.leased.take() {
            leased.release_run().await;
        }
    }
}

impl ActiveLease {
    async fn release_run(self) {
        let local = Arc::clone(&self.local);
        let _transition = local.lock_lease_changes().await;
        if lock_mutex(&local.leases).generation != self.generation {
            // An earlier release succeeded, but its reply was lost, and another task has acquired
            // the run since. A release here would take the run from this other task.
            return;
        }
        let (run, state) = (&self.run, self.release_state);
        let release = || {
            self.runs
                .release_run(run, state, None, self.session_messages, &[])
        };
        match retry_until_available(release).await {
            // The run does not exist, or another process took it over: there is nothing to release.
            Ok(())
            | Err(SessionStoreError::NoSuchRun { .. } | SessionStoreError::RunConflict { .. }) => {}
            Err(error) => tracing::warn!(run, %error, "failed to release a run"),
        }
    }
}

/// Maximum number of attempts of a write. With SQLite, each attempt takes up to three seconds.
const MAX_ATTEMPTS: u32 = 6;

/// Calls `write` until it returns another result than [`SessionStoreError::Unavailable`], at most
/// `MAX_ATTEMPTS` times. Returns the last result.
///
/// Writes for a client's request make only one attempt. Use this function for writes whose failure
/// would lose work of a run or records about it.
pub async fn retry_until_available<'w>(
    write: impl Fn() -> BoxFuture<'w, Result<(), SessionStoreError>>,
) -> Result<(), SessionStoreError> {
    for _ in 1..MAX_ATTEMPTS {
        match write().await {
            Err(SessionStoreError::Unavailable { .. }) => {}
            result => return result,
        }
    }
    write().await
}

impl Drop for ActiveLease {
    fn drop(&mut self) {
        let mut leases = lock_mutex(&self.local.leases);
        if leases.generation == self.generation {
            leases.is_leased = false;
        }
    }
}

impl Drop for RunLease {
    fn drop(&mut self) {
        let Some(leased) = self.leased.take() else {
            return;
        };
        // The release is asynchronous, so it needs a Tokio runtime. Without one, the run stays
        // leased until this process ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(leased.release_run());
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;

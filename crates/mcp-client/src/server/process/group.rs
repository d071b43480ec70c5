//! Process group of a stdio server.

#[cfg(unix)]
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::process::Child;

use super::watchdog::Watchdog;
#[cfg(unix)]
use crate::primitives::sync::lock;

/// Process group of a server.
#[derive(Clone, Default)]
pub(crate) struct ProcessGroup {
    #[cfg(unix)]
    leader: Arc<Mutex<Option<rustix::process::Pid>>>,
    #[cfg(unix)]
    watchdog: Watchdog,
}

impl ProcessGroup {
    /// Creates a process group that the watchdog ends if the host process is killed.
    pub(crate) fn with_watchdog(watchdog: &Watchdog) -> Self {
        Self {
            #[cfg(unix)]
            watchdog: watchdog.clone(),
            ..Self::default()
        }
    }
}

#[cfg(unix)]
impl ProcessGroup {
    pub(super) fn enter(&self, child: &Child) {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        *self.leader() = pid;
        if let Some(pid) = pid {
            self.watchdog.watch(pid);
        }
    }

    /// Clears the stored group id after the group has ended.
    pub(super) fn leave(&self) {
        if let Some(pid) = self.leader().take() {
            self.watchdog.unwatch(pid);
        }
    }

    /// Returns the process id of the group leader. Returns `None` after the group has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        let leader = (*self.leader())?;
        u32::try_from(leader.as_raw_nonzero().get()).ok()
    }

    pub(super) fn is_alive(&self) -> bool {
        self.leader()
            .is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
    }

    pub(super) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills the process group without waiting for its end.
    pub(crate) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = *self.leader() {
            // Sending a signal fails only if the group has already ended.
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    fn leader(&self) -> MutexGuard<'_, Option<rustix::process::Pid>> {
        lock(&self.leader)
    }
}

/// Other systems have no process groups. There, `kill_on_drop` and `start_kill` end only the
/// process itself.
#[cfg(not(unix))]
#[allow(clippy::unused_self, reason = "the same interface as on Unix")]
impl ProcessGroup {
    pub(super) fn enter(&self, _child: &Child) {}

    pub(super) fn leave(&self) {}

    pub(crate) fn pid(&self) -> Option<u32> {
        None
    }

    pub(super) fn is_alive(&self) -> bool {
        false
    }

    pub(super) fn terminate(&self) {}

    pub(crate) fn kill(&self) {}
}

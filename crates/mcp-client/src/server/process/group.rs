//! Process group of a stdio server, by which the server and its descendants are ended together.

#[cfg(unix)]
use std::sync::{Arc, Mutex};

use tokio::process::Child;

use super::watchdog::Watchdog;
#[cfg(unix)]
use crate::primitives::sync::lock_mutex;

/// Process group of a stdio server: the server process and its descendants.
#[derive(Clone, Default)]
pub(crate) struct ProcessGroup {
    #[cfg(unix)]
    leader: Arc<Mutex<Option<rustix::process::Pid>>>,
    #[cfg(unix)]
    watchdog: Watchdog,
}

impl ProcessGroup {
    /// Creates an empty process group that the watchdog ends if the host process is killed.
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
    pub(super) fn set_leader(&self, child: &Child) {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        *lock_mutex(&self.leader) = pid;
        if let Some(pid) = pid {
            self.watchdog.watch_group(pid);
        }
    }

    /// Clears the id of the process group after its end, because the id may be reused.
    pub(super) fn clear_leader(&self) {
        if let Some(pid) = lock_mutex(&self.leader).take() {
            self.watchdog.unwatch_group(pid);
        }
    }

    /// Returns the process id of the server, which leads the group. Returns `None` after its end.
    pub(crate) fn pid(&self) -> Option<u32> {
        let leader = (*lock_mutex(&self.leader))?;
        u32::try_from(leader.as_raw_nonzero().get()).ok()
    }

    pub(super) fn is_alive(&self) -> bool {
        lock_mutex(&self.leader)
            .is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
    }

    pub(super) fn terminate(&self) {
        self.send_signal(rustix::process::Signal::TERM);
    }

    /// Sends `SIGKILL` to the process group without waiting for its end.
    pub(crate) fn kill(&self) {
        self.send_signal(rustix::process::Signal::KILL);
    }

    fn send_signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = *lock_mutex(&self.leader) {
            // Sending a signal fails if the group has already ended, which is the intended result.
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

/// Implementation for systems without process groups. There, `kill_on_drop` and `start_kill` end
/// only the server process, not its descendants.
#[cfg(not(unix))]
#[allow(clippy::unused_self, reason = "the same interface as on Unix")]
impl ProcessGroup {
    pub(super) fn set_leader(&self, _child: &Child) {}

    pub(super) fn clear_leader(&self) {}

    pub(crate) fn pid(&self) -> Option<u32> {
        None
    }

    pub(super) fn is_alive(&self) -> bool {
        false
    }

    pub(super) fn terminate(&self) {}

    pub(crate) fn kill(&self) {}
}

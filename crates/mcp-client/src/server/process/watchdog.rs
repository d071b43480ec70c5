//! The watchdog: a shell that ends the server processes of a host process that was killed.
//!
//! A killed host (`SIGKILL`, out of memory) cannot end its servers. The shell, one for each host
//! that starts processes, reads the ids of their process groups from a pipe. The operating system
//! closes the pipe with the host. The shell then waits a second, sends `SIGTERM`, waits another
//! second and kills the remaining processes.
//!
//! The watchdog is a shell because `PR_SET_PDEATHSIG` would need `unsafe` code between `fork` and
//! `exec`, and because that signal reaches only a child and not its descendants.
//!
//! - The host removes ended groups, because the operating system may reuse their ids.
//! - The shell has its own process group, so that Ctrl-C in a terminal does not reach it, and it
//!   ignores the signals of a closing terminal.
//! - The shell ends when the host is closed, dropped or killed.
//! - Without `sh` there is no watchdog. A well-behaved server still exits when its input closes.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::Pid;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::primitives::sync::lock_mutex;

const SCRIPT: &str = include_str!("watchdog.sh");
/// Name of the watchdog process in the output of `ps`.
const NAME: &str = "switchboard-watchdog";
/// Time limit for the watchdog shell to exit when the host is closed.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// Watchdog of one host, which kills the server processes if the host process is killed. Its shell
/// is started with the first server process.
#[derive(Clone, Default)]
pub(crate) struct Watchdog(Arc<Mutex<WatchdogState>>);

#[derive(Default)]
struct WatchdogState {
    groups: BTreeSet<i32>,
    /// Running watchdog shell. `None` before the first process group was added, or if the shell
    /// could not be started.
    shell: Option<WatchdogShell>,
}

struct WatchdogShell {
    pipe: File,
    child: Child,
}

impl Watchdog {
    /// Adds a process group that the watchdog ends if the host process is killed.
    pub(crate) fn watch_group(&self, group: Pid) {
        let group = group.as_raw_nonzero().get();
        let mut state = lock_mutex(&self.0);
        state.groups.insert(group);
        if !state.send_command("watch", group) {
            // The shell is not running: it was not started yet, or it was killed.
            state.start_shell();
        }
    }

    /// Removes a process group that has ended, because its id may be reused.
    pub(crate) fn unwatch_group(&self, group: Pid) {
        let group = group.as_raw_nonzero().get();
        let mut state = lock_mutex(&self.0);
        if state.groups.remove(&group) {
            state.send_command("unwatch", group);
        }
    }

    /// Ends the watchdog shell. Waits for the shell, but not for the process groups that it kills.
    pub(crate) async fn stop_shell(&self) {
        let (shell, is_idle) = {
            let mut state = lock_mutex(&self.0);
            (state.shell.take(), state.groups.is_empty())
        };
        let Some(WatchdogShell { pipe, mut child }) = shell else {
            return;
        };
        if is_idle {
            // Without process groups to kill, the shell exits when its pipe closes. Killing it is
            // faster.
            let _ = child.start_kill();
        }
        drop(pipe);
        let _ = timeout(END_TIMEOUT, child.wait()).await;
    }
}

impl WatchdogState {
    /// Sends a command to the shell. Returns `false` if the shell is not running.
    fn send_command(&mut self, command: &str, group: i32) -> bool {
        // The shell never reads half a command, because short writes to a pipe are atomic.
        let Some(WatchdogShell { pipe, .. }) = &mut self.shell else {
            return false;
        };
        match pipe.write_all(format!("{command} {group}\n").as_bytes()) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
            Err(error) => {
                // The pipe is full, because a signal such as `SIGSTOP` has suspended the shell. The
                // shell must not be replaced: when it continues and finds its pipe closed, it kills
                // all groups that it watches.
                tracing::debug!(%error, "the watchdog does not read its input");
                true
            }
        }
    }

    fn start_shell(&mut self) {
        let started = self.spawn_shell();
        if let Err(error) = &started {
            tracing::debug!(
                %error,
                "failed to start the watchdog: servers may outlive this program if it is killed"
            );
        }
        self.shell = started.ok();
    }

    fn spawn_shell(&self) -> io::Result<WatchdogShell> {
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, NAME])
            .env_clear()
            // The shell runs in the root folder, so that other folders can be unmounted or removed.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        let mut child = command.spawn()?;
        let Some(stdin) = child.stdin.take() else {
            return Err(io::Error::other("the pipe of the process is missing"));
        };
        let mut pipe = File::from(stdin.into_owned_fd()?);
        // Writes do not block, so that a stopped shell cannot block the host process.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        for group in &self.groups {
            pipe.write_all(format!("watch {group}\n").as_bytes())?;
        }
        Ok(WatchdogShell { pipe, child })
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, kill_process, test_kill_process_group};

    use super::*;

    /// Starts a process that ignores signals, as its child does.
    fn stubborn_process() -> (Child, Pid) {
        let child = Command::new("sh")
            .args(["-c", "trap '' TERM HUP; sleep 1000 & sleep 1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        (child, Pid::from_raw(pid).unwrap())
    }

    fn shell(watchdog: &Watchdog) -> Option<Pid> {
        let id = lock_mutex(&watchdog.0).shell.as_ref()?.child.id()?;
        Pid::from_raw(i32::try_from(id).ok()?)
    }

    async fn has_ended(child: &mut Child) {
        timeout(Duration::from_secs(30), child.wait())
            .await
            .expect("the process still exists")
            .unwrap();
    }

    #[tokio::test]
    async fn watched_groups_are_killed_when_the_pipe_closes() {
        let watchdog = Watchdog::default();
        let (mut watched, group) = stubborn_process();
        let (mut unwatched, other) = stubborn_process();
        watchdog.watch_group(group);
        watchdog.watch_group(other);
        watchdog.unwatch_group(other);
        // The end of the host closes the pipe.
        drop(watchdog);
        has_ended(&mut watched).await;
        assert!(test_kill_process_group(other).is_ok());
        rustix::process::kill_process_group(other, Signal::KILL).unwrap();
        has_ended(&mut unwatched).await;
    }

    #[tokio::test]
    async fn a_killed_shell_is_restarted_with_all_groups() {
        let watchdog = Watchdog::default();
        let (mut first, one) = stubborn_process();
        watchdog.watch_group(one);
        kill_process(shell(&watchdog).unwrap(), Signal::KILL).unwrap();
        let dead = async {
            let wait = |state: &mut WatchdogState| {
                let shell = state.shell.as_mut();
                shell.is_none_or(|shell| shell.child.try_wait().unwrap().is_some())
            };
            while !wait(&mut lock_mutex(&watchdog.0)) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), dead).await.unwrap();
        let (mut second, two) = stubborn_process();
        watchdog.watch_group(two);
        drop(watchdog);
        has_ended(&mut first).await;
        has_ended(&mut second).await;
    }
}

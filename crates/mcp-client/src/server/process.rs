//! The process of a server and its descendants: one process group, which ends as a whole.
//!
//! If this program is killed (`SIGKILL`, out of memory), the watchdog ends the group
//! (`process/watchdog.rs`). A descendant with its own session (`setsid`) has left the group and is
//! not ended. A container or a systemd service around this program ends such processes too.

mod environment;
#[cfg_attr(not(unix), path = "process/watchdog_other.rs")]
pub(crate) mod watchdog;

#[cfg(unix)]
use std::sync::{Arc, Mutex, MutexGuard};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

#[cfg(unix)]
use crate::primitives::sync::lock;
use crate::{
    config::ServerTransport,
    options::Grace,
    primitives::error::StartError,
    server::{
        output::read_stderr,
        process::{
            environment::{child_environment, lookup},
            watchdog::Watchdog,
        },
        state::Server,
    },
};

/// Time limit for a killed process group to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of checks whether a process group is empty. The operating system does not report this.
const GROUP_POLL: Duration = Duration::from_millis(10);
/// Time limit to read the rest of the standard error after the process has exited.
const STDERR_TIMEOUT: Duration = Duration::from_millis(300);

/// Running process of a stdio server. Dropping it kills the process group. [`ServerProcess::end`]
/// ends it gracefully.
pub(crate) struct ServerProcess {
    child: Child,
    group: ProcessGroup,
    stderr_ended: CancellationToken,
    stderr_reader: AbortHandle,
}

impl ServerProcess {
    /// Starts the program of a stdio server in a new process group. Also returns its standard input
    /// and output.
    pub(crate) fn spawn(server: &Server) -> Result<(Self, ChildStdin, ChildStdout), StartError> {
        let ServerTransport::Stdio {
            command: program,
            args,
            env,
            cwd,
        } = &server.config.transport
        else {
            let reason = "it is not a program".to_owned();
            return Err(StartError::Configuration { reason });
        };
        let environment = child_environment(std::env::vars_os(), env);
        let directory = directory(cwd.as_deref())?;
        let executable = executable(program, &directory, &environment)?;
        let mut command = Command::new(executable);
        command
            .args(args)
            .env_clear()
            .envs(environment)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let failed = |source: std::io::Error| StartError::Spawn {
            command: program.clone(),
            source,
        };
        let mut child = command.spawn().map_err(failed)?;
        let group = server.new_group();
        group.enter(&child);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
            group.kill();
            return Err(failed(std::io::Error::other("its pipes are missing")));
        };
        let stderr_ended = CancellationToken::new();
        let ended = stderr_ended.clone().drop_guard();
        let (tail, name) = (server.stderr.clone(), server.config.name.clone());
        let reading = read_stderr(tail, name, server.redactor.clone(), errors);
        let reader = tokio::spawn(async move {
            reading.await;
            drop(ended);
        });
        let stderr_reader = reader.abort_handle();
        Ok((
            Self {
                child,
                group,
                stderr_ended,
                stderr_reader,
            },
            stdin,
            stdout,
        ))
    }

    /// Waits until the process has exited and its standard error is closed. Returns a description
    /// of the exit.
    pub(crate) async fn exited(&mut self) -> String {
        let status = self.child.wait().await;
        // A child process of the server may hold the pipe open.
        let _ = timeout(STDERR_TIMEOUT, self.stderr_ended.cancelled()).await;
        match status {
            Ok(status) => describe(status),
            Err(error) => format!("its exit status is unknown: {error}"),
        }
    }

    /// Ends the process group, whose standard input is already closed: waits for its exit, then
    /// sends `SIGTERM`, then kills the remaining processes.
    pub(crate) async fn end(mut self, grace: Grace) {
        if self.ended_within(grace.after_stdin).await {
            return;
        }
        self.group.terminate();
        if self.ended_within(grace.after_term).await {
            return;
        }
        self.group.kill();
        let _ = self.child.start_kill();
        if !self.ended_within(KILL_TIMEOUT).await {
            tracing::warn!("processes of a server still exist after they were killed");
        }
    }

    async fn ended_within(&mut self, limit: Duration) -> bool {
        let ended = async {
            let _ = self.child.wait().await;
            while self.group.is_alive() {
                sleep(GROUP_POLL).await;
            }
            self.group.leave();
        };
        timeout(limit, ended).await.is_ok()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.group.kill();
        // The group must not be killed again, because the operating system may reuse its id.
        self.group.leave();
        self.stderr_reader.abort();
    }
}

fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("it exited with code {code}"),
        None => format!("it was ended by {status}"),
    }
}

fn directory(configured: Option<&Path>) -> Result<PathBuf, StartError> {
    match configured {
        Some(path) if path.is_dir() => Ok(path.to_owned()),
        Some(path) => Err(StartError::NoDirectory {
            path: path.to_owned(),
        }),
        None => std::env::current_dir().map_err(|source| StartError::Spawn {
            command: "the working directory".to_owned(),
            source,
        }),
    }
}

/// Finds the program on the `PATH` of the child process, or relative to its working directory. The
/// operating system would search on the `PATH` of the host process, and would not distinguish a
/// missing program from a missing interpreter.
fn executable(
    command: &str,
    directory: &Path,
    environment: &[(OsString, OsString)],
) -> Result<PathBuf, StartError> {
    let path = lookup(environment, "PATH");
    which::which_in(command, path, directory).map_err(|_| {
        let first_word = command.split_whitespace().next().unwrap_or_default();
        StartError::NoExecutable {
            command: command.to_owned(),
            contains_arguments: first_word != command
                && which::which_in(first_word, path, directory).is_ok(),
        }
    })
}

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
    fn enter(&self, child: &Child) {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        *self.leader() = pid;
        if let Some(pid) = pid {
            self.watchdog.watch(pid);
        }
    }

    /// Clears the stored group id after the group has ended.
    fn leave(&self) {
        if let Some(pid) = self.leader().take() {
            self.watchdog.unwatch(pid);
        }
    }

    /// Returns the process id of the group leader. Returns `None` after the group has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        let leader = (*self.leader())?;
        u32::try_from(leader.as_raw_nonzero().get()).ok()
    }

    fn is_alive(&self) -> bool {
        self.leader()
            .is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
    }

    fn terminate(&self) {
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
    fn enter(&self, _child: &Child) {}

    fn leave(&self) {}

    pub(crate) fn pid(&self) -> Option<u32> {
        None
    }

    fn is_alive(&self) -> bool {
        false
    }

    fn terminate(&self) {}

    pub(crate) fn kill(&self) {}
}

//! A server's process and everything it starts: one process group, ended as a whole.
//!
//! This program has to be alive to do it. If it is killed (`SIGKILL`, out of memory), a small shell does it
//! instead (`watchdog.rs`). The limit: a process that starts a session of its own (`setsid`) has left the
//! group and is not ended. Whoever needs more runs this program in something that ends as a whole, such
//! as a container or a systemd service.

mod environment;

#[cfg(unix)]
use std::sync::{Arc, Mutex, PoisonError};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use secrecy::SecretString;
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    error::StartError,
    host::Grace,
    redact::Redactor,
    server::{
        process::environment::{child_environment, lookup},
        stderr::StderrTail,
        watchdog::Watchdog,
    },
};

/// How long a killed group may take to disappear.
const AFTER_KILL: Duration = Duration::from_secs(1);
/// How often a group is looked at that outlives its leader: nothing tells when it is empty.
const GROUP_POLL: Duration = Duration::from_millis(10);
/// How long the last words of an ended server are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What to start.
pub(crate) struct Program<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a [(String, SecretString)],
    pub(crate) cwd: Option<&'a Path>,
}

/// The ends of the pipes on which a server speaks.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// A running server process. Dropping it kills the whole group at once; [`ServerProcess::end`] is
/// the polite way.
pub(crate) struct ServerProcess {
    child: Child,
    group: ProcessGroup,
    stderr_ended: CancellationToken,
    stderr_reader: AbortHandle,
}

impl ServerProcess {
    /// Starts the program in a group of its own, its errors going to `stderr`.
    pub(crate) fn spawn(
        server: &str,
        program: &Program<'_>,
        group: ProcessGroup,
        stderr: StderrTail,
        redactor: Redactor,
    ) -> Result<(Self, Pipes), StartError> {
        let environment = child_environment(std::env::vars_os(), program.env);
        let directory = directory(program.cwd)?;
        let executable = executable(program.command, &directory, &environment)?;
        let mut command = Command::new(executable);
        command
            .args(program.args)
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
            command: program.command.to_owned(),
            source,
        };
        let mut child = command.spawn().map_err(failed)?;
        group.enter(&child);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
            group.kill();
            return Err(failed(std::io::Error::other("its pipes are missing")));
        };
        let stderr_ended = CancellationToken::new();
        let ended = stderr_ended.clone().drop_guard();
        let server = server.to_owned();
        let reader = tokio::spawn(async move {
            stderr.follow(server, redactor, errors).await;
            drop(ended);
        });
        let process = Self {
            child,
            group,
            stderr_ended,
            stderr_reader: reader.abort_handle(),
        };
        Ok((process, Pipes { stdin, stdout }))
    }

    /// Waits until the process has ended and its last words are read, and says how it ended.
    pub(crate) async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        // A grandchild may hold the pipe open, so this does not wait for ever.
        let _ = timeout(LAST_WORDS, self.stderr_ended.cancelled()).await;
        match status {
            Ok(status) => describe(status),
            Err(error) => format!("its exit status is not known: {error}"),
        }
    }

    /// Ends the group. Its standard input has been closed, which is how a server is asked to leave;
    /// what is still there after that is told to, then made to.
    pub(crate) async fn end(mut self, grace: Grace) {
        if self.gone_within(grace.after_stdin).await {
            return;
        }
        self.group.terminate();
        if self.gone_within(grace.after_term).await {
            return;
        }
        self.group.kill();
        let _ = self.child.start_kill();
        if !self.gone_within(AFTER_KILL).await {
            tracing::warn!("a server's processes are still there after they were killed");
        }
    }

    async fn gone_within(&mut self, limit: Duration) -> bool {
        let gone = async {
            let _ = self.child.wait().await;
            while self.group.is_alive() {
                sleep(GROUP_POLL).await;
            }
            self.group.leave();
        };
        timeout(limit, gone).await.is_ok()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.group.kill();
        // Nothing survives that, so nobody has to kill it again, when the number may be another's.
        self.group.leave();
        self.stderr_reader.abort();
    }
}

fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("it ended with exit code {code}"),
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

/// Resolved here and not by the operating system: the child's own `PATH` counts, relative paths
/// count from its directory, and a missing program is told apart from a missing interpreter.
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
            holds_arguments: first_word != command
                && which::which_in(first_word, path, directory).is_ok(),
        }
    })
}

/// The process group of a server, known to whoever may have to kill it.
#[derive(Clone, Default)]
pub(crate) struct ProcessGroup {
    #[cfg(unix)]
    leader: Arc<Mutex<Option<rustix::process::Pid>>>,
    #[cfg(unix)]
    watchdog: Watchdog,
}

impl ProcessGroup {
    /// One that `watchdog` ends if this program cannot.
    pub(crate) fn watched_by(watchdog: &Watchdog) -> Self {
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

    /// The group is gone, and its number may come to belong to somebody else.
    fn leave(&self) {
        if let Some(pid) = self.leader().take() {
            self.watchdog.forget(pid);
        }
    }

    /// The id of the process that leads it, while it is known to be there.
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

    /// Kills the group at once, without waiting.
    pub(crate) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = *self.leader() {
            // Fails only when the group is gone, which is what is wanted.
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    fn leader(&self) -> std::sync::MutexGuard<'_, Option<rustix::process::Pid>> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Elsewhere only the process itself is ended, through `kill_on_drop` and `start_kill`.
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

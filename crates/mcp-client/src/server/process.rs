//! The process of a stdio server and its descendants: one process group, which ends as a whole.
//!
//! If this program is killed (`SIGKILL`, out of memory), the watchdog ends the group
//! (`process/watchdog.rs`). A descendant with its own session (`setsid`) has left the group and is
//! not ended. A container or a systemd service around this program ends such processes too.

mod environment;
pub(crate) mod group;
#[cfg_attr(not(unix), path = "process/watchdog_noop.rs")]
pub(crate) mod watchdog;

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

use crate::{
    config::ServerTransport,
    options::ShutdownGracePeriods,
    primitives::error::StartError,
    server::{
        process::{
            environment::{child_environment, find_variable},
            group::ProcessGroup,
        },
        state::Server,
        stderr_and_logs::read_stderr,
    },
};

/// Time limit for the processes of a group to end after they were killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of checks whether a process group is empty. The operating system does not report this.
const GROUP_POLL: Duration = Duration::from_millis(10);
/// Time limit to read the rest of a server's standard error after its process has exited.
const STDERR_TIMEOUT: Duration = Duration::from_millis(300);

/// Running process of a stdio server. Dropping it kills the process group without a grace period.
pub(crate) struct ServerProcess {
    child: Child,
    group: ProcessGroup,
    stderr_ended: CancellationToken,
    stderr_reader: AbortHandle,
}

impl ServerProcess {
    /// Starts the program of a stdio server in a new process group. Returns the process with its
    /// standard input and output.
    pub(crate) fn spawn(server: &Server) -> Result<(Self, ChildStdin, ChildStdout), StartError> {
        let ServerTransport::Stdio {
            command: program,
            args,
            env,
            cwd,
        } = &server.config.transport
        else {
            let reason = "the server is not a program".to_owned();
            return Err(StartError::Configuration { reason });
        };
        let environment = child_environment(std::env::vars_os(), env);
        let directory = resolve_working_directory(cwd.as_deref())?;
        let executable = find_executable(program, &directory, &environment)?;
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
        let group = server.new_process_group();
        group.set_leader(&child);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
            group.kill();
            let reason = "the pipes of the process are missing";
            return Err(failed(std::io::Error::other(reason)));
        };
        let stderr_ended = CancellationToken::new();
        let ended = stderr_ended.clone().drop_guard();
        let (tail, name) = (server.stderr.clone(), server.config.name.clone());
        let reading = read_stderr(tail, name, server.redactor.clone(), errors);
        let reader = tokio::spawn(async move {
            reading.await;
            drop(ended);
        });
        let process = Self {
            child,
            group,
            stderr_ended,
            stderr_reader: reader.abort_handle(),
        };
        Ok((process, stdin, stdout))
    }

    /// Waits until the process has exited, and then briefly for the rest of its standard error.
    /// Returns a description of the exit, such as `process exited with code 1`.
    pub(crate) async fn wait_for_exit(&mut self) -> String {
        let status = self.child.wait().await;
        // The wait is limited, because a child process of the server may keep standard error open.
        let _ = timeout(STDERR_TIMEOUT, self.stderr_ended.cancelled()).await;
        match status {
            Ok(status) => describe_exit_status(status),
            Err(error) => format!("the exit status of the process is unknown: {error}"),
        }
    }

    /// Ends the process group, whose standard input is already closed. Waits for its exit, then
    /// sends `SIGTERM`, then kills the remaining processes.
    pub(crate) async fn stop_gracefully(mut self, grace: ShutdownGracePeriods) {
        if self.wait_for_group_exit(grace.after_stdin).await {
            return;
        }
        self.group.terminate();
        if self.wait_for_group_exit(grace.after_term).await {
            return;
        }
        self.group.kill();
        let _ = self.child.start_kill();
        if !self.wait_for_group_exit(KILL_TIMEOUT).await {
            tracing::warn!("processes of a server are still running after they were killed");
        }
    }

    async fn wait_for_group_exit(&mut self, limit: Duration) -> bool {
        let ended = async {
            let _ = self.child.wait().await;
            while self.group.is_alive() {
                sleep(GROUP_POLL).await;
            }
            self.group.clear_leader();
        };
        timeout(limit, ended).await.is_ok()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.group.kill();
        // The id of the process group is cleared, because the operating system may reuse the id for
        // an unrelated group.
        self.group.clear_leader();
        self.stderr_reader.abort();
    }
}

fn describe_exit_status(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("process exited with code {code}"),
        None => format!("process terminated by {status}"),
    }
}

fn resolve_working_directory(configured: Option<&Path>) -> Result<PathBuf, StartError> {
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

/// Finds the program of a server on the `PATH` of the child process, or relative to its working
/// directory. The operating system would search on the `PATH` of the host process, and would not
/// distinguish a missing program from a missing interpreter.
fn find_executable(
    command: &str,
    directory: &Path,
    environment: &[(OsString, OsString)],
) -> Result<PathBuf, StartError> {
    let path = find_variable(environment, "PATH");
    which::which_in(command, path, directory).map_err(|_| {
        let first_word = command.split_whitespace().next().unwrap_or_default();
        StartError::NoExecutable {
            command: command.to_owned(),
            contains_arguments: first_word != command
                && which::which_in(first_word, path, directory).is_ok(),
        }
    })
}

//! Execution of a command until its end, its time-out or its cancellation.
//!
//! On Unix, each command has its own process group, which is killed when the command ends.
//! Processes that start another session (`setsid`) leave the group. If this program is killed, a
//! shell kills the group (`GroupWatchdog`). On other systems only the process of the command itself
//! is ended.

use std::{
    io::{self, Read},
    path::Path,
    process::{ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use tokio::{
    process::{Child, Command as Process},
    sync::mpsc,
    time::timeout,
};

use super::{Command, Environment, output::OutputTail};

/// Maximum time that a command that timed out has to end after SIGTERM (on Unix). Then it is
/// killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum wait for further output after the command has ended. Output may follow if another
/// process still holds the write end of the pipe.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of the returned output, in bytes. Earlier output is omitted.
const MAX_OUTPUT_BYTES: usize = 32 * 1024;

/// The outcome and the output of a command.
#[derive(Debug)]
pub(super) struct CommandResult {
    /// Exit status of the command. `None` after a time-out.
    pub(super) status: Option<ExitStatus>,
    pub(super) duration: Duration,
    /// The end of the combined standard output and standard error.
    pub(super) output: String,
    /// Number of bytes omitted before `output`.
    pub(super) omitted: u64,
}

/// Runs a command with the arguments `added` until it ends or `limit` has passed. Dropping the
/// future kills the command and, on Unix, its process group.
pub(super) async fn run(
    command: &Command,
    added: &[String],
    directory: &Path,
    environment: &Environment,
    limit: Duration,
) -> io::Result<CommandResult> {
    let started = Instant::now();
    let mut process = Process::new(&command.program);
    process
        .args(&command.arguments)
        .args(added)
        .env_clear()
        .envs(environment.0.iter().map(|(name, value)| (name, value)))
        .current_dir(directory)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let (mut child, mut output) = spawn_process(process)?;
    let mut group = ProcessGroup::from_child(&child);
    let mut tail = OutputTail::new(MAX_OUTPUT_BYTES);
    let ended = timeout(limit, wait_for_exit(&mut child, &mut output, &mut tail)).await;
    let status = if let Ok(status) = ended {
        Some(status?)
    } else {
        group.terminate();
        // The output is still read while the command handles SIGTERM, because a full pipe would
        // block the command.
        let exit = wait_for_exit(&mut child, &mut output, &mut tail);
        let _ = timeout(EXIT_TIMEOUT, exit).await;
        None
    };
    let duration = started.elapsed();
    // Background processes of the command are killed, because they could write files and use ports
    // forever.
    group.kill();
    let rest = async {
        while let Some(bytes) = output.recv().await {
            tail.push(&bytes);
        }
    };
    let _ = timeout(OUTPUT_TIMEOUT, rest).await;
    let (output, omitted) = tail.into_text();
    Ok(CommandResult {
        status,
        duration,
        output,
        omitted,
    })
}

/// Reads the output of the command `child` until this process ends, and returns its exit status.
/// Does not wait for other processes that the command started.
async fn wait_for_exit(
    child: &mut Child,
    output: &mut mpsc::Receiver<Vec<u8>>,
    tail: &mut OutputTail,
) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            Some(bytes) = output.recv() => tail.push(&bytes),
        }
    }
}

/// Starts a process with one pipe for standard output and standard error, which preserves the order
/// of lines.
fn spawn_process(mut process: Process) -> io::Result<(Child, mpsc::Receiver<Vec<u8>>)> {
    let (mut reader, writer) = io::pipe()?;
    process.stdout(writer.try_clone()?).stderr(writer);
    #[cfg(unix)]
    process.process_group(0);
    let child = process.spawn()?;
    // Closes the pipe writers that `process` owns, so that the reader can reach the end of the
    // output.
    drop(process);
    let (sender, receiver) = mpsc::channel(16);
    // The reader thread is not joined. It may block after the command has ended, if another process
    // still holds the write end of the pipe.
    thread::Builder::new().spawn(move || {
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            if sender.blocking_send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    })?;
    Ok((child, receiver))
}

/// The process group of a command, on Unix. Dropping this value kills the processes of the group.
struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(unix)]
    _watcher: Option<GroupWatchdog>,
}

#[cfg(unix)]
impl ProcessGroup {
    fn from_child(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = leader.and_then(rustix::process::Pid::from_raw);
        Self {
            leader,
            _watcher: leader.and_then(GroupWatchdog::start_watchdog),
        }
    }

    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills the process group. Later calls do nothing, because another process group may have the
    /// same id by then.
    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.leader = None;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // An error is ignored: the group has already ended, or this user may not signal its
            // processes.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(not(unix))]
#[allow(clippy::unused_self, reason = "the same interface as on Unix")]
impl ProcessGroup {
    fn from_child(_child: &Child) -> Self {
        Self {}
    }

    fn terminate(&self) {}

    fn kill(&mut self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A shell process that kills the process group of a command if this program ends without killing
/// the group, for example after SIGKILL. The shell reads from a pipe that closes when this program
/// ends. The shell has a separate process group, so that a signal to the group of this program does
/// not end the shell. The shell executes no text from a model.
#[cfg(unix)]
struct GroupWatchdog {
    _shell: Child,
}

#[cfg(unix)]
impl GroupWatchdog {
    fn start_watchdog(group: rustix::process::Pid) -> Option<Self> {
        const SCRIPT: &str = "trap '' HUP INT TERM; read -r _; kill -s KILL -- \"-$1\"";
        let group = group.as_raw_nonzero().get().to_string();
        let shell = Process::new("/bin/sh")
            .args(["-c", SCRIPT, "switchboard-watcher", &group])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let shell = shell.inspect_err(|error| {
            tracing::warn!(%error, "failed to start the watcher shell; a command may outlive a \
                killed server");
        });
        Some(Self {
            _shell: shell.ok()?,
        })
    }
}

//! Execution of a command until its end, its time-out or its cancellation.
//!
//! On Unix, a command has a separate process group, which ends with it, except for processes that
//! start another session (`setsid`). If this program is killed, a shell that reads from a pipe
//! kills the group (`Watcher`). On other systems only the process itself is ended.

use std::{
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command as Process},
    time::timeout,
};

use super::{Command, Environment, output::Tail};

/// Maximum time between the termination signal and the kill signal.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum wait for further output after the end, when another process holds the pipe.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of kept bytes of output.
const MAX_OUTPUT_BYTES: usize = 32 * 1024;

/// The result of a command.
#[derive(Debug)]
pub(super) struct CommandResult {
    /// `None` after a time-out.
    pub(super) status: Option<ExitStatus>,
    pub(super) duration: Duration,
    /// The end of both outputs.
    pub(super) output: String,
    /// Number of omitted bytes before it.
    pub(super) omitted: u64,
}

/// Runs a command. Dropping the future kills its process group.
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
    let (child, outputs) = spawn(process)?;
    let mut group = Group::of(&child);
    let mut running = Running { child, outputs };
    let mut tail = Tail::new(MAX_OUTPUT_BYTES);
    let status = if let Ok(status) = timeout(limit, running.wait(&mut tail)).await {
        Some(status?)
    } else {
        group.terminate();
        // The command may write output while it ends.
        let _ = timeout(EXIT_TIMEOUT, running.wait(&mut tail)).await;
        None
    };
    let duration = started.elapsed();
    // Background processes of the command could write files and use ports without end.
    group.kill();
    let _ = timeout(OUTPUT_TIMEOUT, running.outputs.drain(&mut tail)).await;
    let (output, omitted) = tail.finish();
    Ok(CommandResult {
        status,
        duration,
        output,
        omitted,
    })
}

struct Running {
    child: Child,
    outputs: Outputs,
}

impl Running {
    /// Waits for the process, but not for its child processes.
    async fn wait(&mut self, tail: &mut Tail) -> io::Result<ExitStatus> {
        let mut open = true;
        loop {
            tokio::select! {
                status = self.child.wait() => return status,
                more = self.outputs.read(tail), if open => open = more,
            }
        }
    }
}

/// The pipes of both outputs. Unix has one pipe, which keeps the order of lines.
struct Outputs {
    pipes: Vec<Pipe>,
}

struct Pipe {
    end: Box<dyn AsyncRead + Send + Unpin>,
    buffer: Vec<u8>,
}

impl Pipe {
    fn new(end: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self {
            end: Box::new(end),
            buffer: vec![0; 8 * 1024],
        }
    }

    /// Returns the number of bytes in the buffer: 0 at the end and after an error.
    async fn read(&mut self) -> usize {
        self.end.read(&mut self.buffer).await.unwrap_or_default()
    }
}

impl Outputs {
    /// Reads from one pipe. Returns `false` at the end of all pipes.
    async fn read(&mut self, tail: &mut Tail) -> bool {
        let (place, number) = match self.pipes.as_mut_slice() {
            [] => return false,
            [only] => (0, only.read().await),
            [first, second, ..] => tokio::select! {
                number = first.read() => (0, number),
                number = second.read() => (1, number),
            },
        };
        if number == 0 {
            self.pipes.remove(place);
        } else if let Some(bytes) = self.pipes.get(place).and_then(|it| it.buffer.get(..number)) {
            tail.push(bytes);
        }
        !self.pipes.is_empty()
    }

    async fn drain(&mut self, tail: &mut Tail) {
        while self.read(tail).await {}
    }
}

#[cfg(unix)]
fn spawn(mut process: Process) -> io::Result<(Child, Outputs)> {
    let (reader, writer) = io::pipe()?;
    let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into())?;
    process.stdout(writer.try_clone()?).stderr(writer);
    process.process_group(0);
    let child = process.spawn()?;
    // Closes the copy of the writer, so that the pipe can end.
    drop(process);
    let pipes = vec![Pipe::new(reader)];
    Ok((child, Outputs { pipes }))
}

#[cfg(not(unix))]
fn spawn(mut process: Process) -> io::Result<(Child, Outputs)> {
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process.spawn()?;
    let stdout = child.stdout.take().map(Pipe::new);
    let stderr = child.stderr.take().map(Pipe::new);
    let pipes = stdout.into_iter().chain(stderr).collect();
    Ok((child, Outputs { pipes }))
}

/// The process group of a command. Dropping this value kills it.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(unix)]
    _watcher: Option<Watcher>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = leader.and_then(rustix::process::Pid::from_raw);
        Self {
            leader,
            _watcher: leader.and_then(Watcher::start),
        }
    }

    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills the group once. After that, another group may have its id.
    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.leader = None;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // Fails only if the group has ended.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(not(unix))]
#[allow(clippy::unused_self, reason = "the same interface as on Unix")]
impl Group {
    fn of(_child: &Child) -> Self {
        Self {}
    }

    fn terminate(&self) {}

    fn kill(&mut self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A shell that kills the group after any end of this program, when the system closes their pipe.
/// It has a separate group, so a signal to the group of this program does not end it. It runs no
/// input of a model.
#[cfg(unix)]
struct Watcher {
    _shell: Child,
}

#[cfg(unix)]
impl Watcher {
    fn start(group: rustix::process::Pid) -> Option<Self> {
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
            tracing::warn!(%error, "failed to start the watcher shell; a command may outlive a killed server");
        });
        Some(Self {
            _shell: shell.ok()?,
        })
    }
}

//! Runs a command to its end, its time-out, or until nobody waits for it any more.
//!
//! On Unix it is a process group of its own and ends as a whole: nothing that a command started
//! outlives it, unless it began a session of its own (`setsid`). If this program is killed, a small
//! shell that waits at the end of a pipe kills the group (`Watcher`). Elsewhere only the process itself
//! is ended.

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

/// How long a command that was asked to end may take to do so.
const TO_END: Duration = Duration::from_secs(2);
/// How long the rest of the output is waited for after the end, when somebody else holds the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many bytes of output are kept.
const KEPT: usize = 32 * 1024;

/// How a command went.
#[derive(Debug)]
pub(super) struct Ran {
    /// `None` if it was stopped at the time-out.
    pub(super) status: Option<ExitStatus>,
    pub(super) duration: Duration,
    /// The end of what it wrote on both of its outputs.
    pub(super) output: String,
    /// How many bytes before that are left out.
    pub(super) omitted: u64,
}

/// Runs it. Dropping the future kills it and everything that it started.
pub(super) async fn run(
    command: &Command,
    added: &[String],
    directory: &Path,
    environment: &Environment,
    limit: Duration,
) -> io::Result<Ran> {
    let begun = Instant::now();
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
    let mut tail = Tail::new(KEPT);
    let status = if let Ok(status) = timeout(limit, running.wait(&mut tail)).await {
        Some(status?)
    } else {
        group.terminate();
        // What it says about being ended may be of use, too.
        let _ = timeout(TO_END, running.wait(&mut tail)).await;
        None
    };
    let duration = begun.elapsed();
    // What the command left running would write files and hold ports for ever.
    group.kill();
    let _ = timeout(LAST_WORDS, running.outputs.drain(&mut tail)).await;
    let (output, omitted) = tail.finish();
    Ok(Ran {
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
    /// Waits for the process, not for what it started.
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

/// The readable ends of the process's outputs: one on Unix, so that its lines stay in order.
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

    /// How many bytes are in the buffer now; none at the end, and after an error.
    async fn read(&mut self) -> usize {
        self.end.read(&mut self.buffer).await.unwrap_or_default()
    }
}

impl Outputs {
    /// Reads some. `false` at the end of all.
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
    // With `process` goes our copy of the writable end, without which there would be no end.
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

/// The process group of a command. It is killed when this is dropped.
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

    /// Once: after that the number may come to belong to somebody else.
    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.leader = None;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // Fails only when the group is gone, which is what is wanted.
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

/// A shell that kills the group when this program has ended, however that happened: the system
/// closes the pipe between them then. It is in a group of its own, so what ends this program's group
/// does not end it. It runs nothing that a model has written.
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
            tracing::warn!(%error, "no shell watches a command: it would outlive a killed server");
        });
        Some(Self {
            _shell: shell.ok()?,
        })
    }
}

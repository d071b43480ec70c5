//! What ends the servers of a host that was killed.
//!
//! A host that ends by itself ends its servers; one that is killed (`SIGKILL`, out of memory) cannot. So a
//! small shell, one for each host that starts processes, holds the other end of a pipe and the numbers of
//! the servers' process groups. The operating system closes the pipe with the host, however that ended,
//! and the shell asks the groups that are left to leave, then makes them. Each group has a second to see
//! that its input ended, and a second after `SIGTERM`.
//!
//! This is done by a shell because the ways that a process has of its own (`PR_SET_PDEATHSIG`) have to be
//! set between `fork` and `exec`, which is `unsafe` and forbidden in this workspace; and they reach a
//! child alone, not what that started.
//!
//! - A group is forgotten as soon as it is known to be gone: its number may come to belong to others.
//! - The shell is a process group of its own, so Ctrl-C in a terminal does not reach it, and it ignores
//!   what a closing terminal sends.
//! - It ends with its host in any case, or as soon as the host is closed or dropped.
//! - Where there is no `sh`, nobody watches; a well-behaved server leaves at the end of its input.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write},
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, WaitOptions, waitpid},
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

const SCRIPT: &str = include_str!("watchdog.sh");
/// What `ps` shows instead of the script's name.
const NAME: &str = "switchboard-watchdog";
/// How long the shell may take to end when nothing is left to watch.
const TO_END: Duration = Duration::from_millis(500);

/// What [`McpHost::close_at_exit`](crate::McpHost::close_at_exit) leaves: a helper process that was killed and may
/// not have ended yet.
#[derive(Debug)]
#[must_use = "where nobody takes in the children of a program that has ended, it would stay as a zombie"]
pub struct Remains(Option<Pid>);

impl Remains {
    /// Takes in the process, as the last thing that a program does; mostly it has ended by then. Blocks until it
    /// has, which nothing that was killed can put off.
    pub fn reap(self) {
        let Some(pid) = self.0 else { return };
        // An error says that it was taken in before, by the runtime.
        while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}

/// Shared by everybody who starts processes for one host. The shell is started with the first group.
#[derive(Clone, Default)]
pub(crate) struct Watchdog(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    groups: BTreeSet<i32>,
    shell: Shell,
}

#[derive(Default)]
enum Shell {
    #[default]
    NotStarted,
    Running {
        pipe: File,
        child: Child,
    },
    /// It cannot be started.
    Missing,
}

impl Watchdog {
    /// From now on the group does not outlive this program.
    pub(crate) fn watch(&self, group: Pid) {
        let group = group.as_raw_nonzero().get();
        let mut state = self.lock();
        state.groups.insert(group);
        if !state.tell("watch", group) {
            // It is started now; or somebody has killed it, and it is started again.
            state.start();
        }
    }

    /// The group is gone.
    pub(crate) fn forget(&self, group: Pid) {
        let group = group.as_raw_nonzero().get();
        let mut state = self.lock();
        if state.groups.remove(&group) {
            state.tell("forget", group);
        }
    }

    /// Lets the shell end, and waits for it unless it finds something to end.
    pub(crate) async fn end(&self) {
        if let Some(mut shell) = self.ends() {
            let _ = timeout(TO_END, shell.wait()).await;
        }
    }

    /// The same for a program that ends now: a shell that has nobody to end is killed, and waited for later.
    pub(crate) async fn end_with_program(&self) -> Remains {
        if !self.lock().groups.is_empty() {
            self.end().await;
        }
        let shell = self.ends();
        let pid = shell.and_then(|shell| i32::try_from(shell.id()?).ok());
        Remains(pid.and_then(Pid::from_raw))
    }

    /// The shell, if there was one, on its way to its end.
    fn ends(&self) -> Option<Child> {
        let (shell, is_idle) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.shell), state.groups.is_empty())
        };
        let Shell::Running { pipe, mut child } = shell else {
            return None;
        };
        if is_idle {
            // It would only read what it was told, and end: on a busy machine a millisecond or two, which
            // every short run would wait for.
            let _ = child.start_kill();
        }
        drop(pipe);
        Some(child)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the shell heard it, or there is none to be had.
    fn tell(&mut self, what: &str, group: i32) -> bool {
        match &mut self.shell {
            Shell::NotStarted => false,
            Shell::Missing => true,
            // One short write, which a pipe takes whole or not at all.
            Shell::Running { pipe, .. } => {
                match pipe.write_all(format!("{what} {group}\n").as_bytes()) {
                    Ok(()) => true,
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
                    Err(error) => {
                        // Somebody has stopped it. It must not be replaced: when it goes on and finds
                        // its pipe closed, it ends everybody.
                        tracing::debug!(%error, "the watchdog does not listen");
                        true
                    }
                }
            }
        }
    }

    fn start(&mut self) {
        self.shell = match self.started() {
            Ok((pipe, child)) => Shell::Running { pipe, child },
            Err(error) => {
                tracing::debug!(%error, "nobody ends the servers if this program is killed");
                Shell::Missing
            }
        };
    }

    fn started(&self) -> io::Result<(File, Child)> {
        // By its path, where every Unix has it: a name that is looked for on a `PATH` of the child's own makes a copy of this
        // process first, and each page that is written then costs one more.
        let place = "/bin/sh";
        let is_there = std::path::Path::new(place).exists();
        let mut command = Command::new(if is_there { place } else { "sh" });
        command
            .args(["-c", SCRIPT, NAME])
            .env_clear()
            // It holds no folder that somebody wants to remove.
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
            return Err(io::Error::other("its pipe is missing"));
        };
        let mut pipe = File::from(stdin.into_owned_fd()?);
        // A shell that somebody has stopped must not stop this program.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        for group in &self.groups {
            pipe.write_all(format!("watch {group}\n").as_bytes())?;
        }
        Ok((pipe, child))
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, kill_process, test_kill_process_group};

    use super::*;

    /// Deaf to everything that can be ignored, and so are its children.
    fn deaf() -> (Child, Pid) {
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
        match &watchdog.lock().shell {
            Shell::Running { child, .. } => {
                let pid = i32::try_from(child.id()?).ok()?;
                Pid::from_raw(pid)
            }
            Shell::NotStarted | Shell::Missing => None,
        }
    }

    async fn has_ended(child: &mut Child) {
        timeout(Duration::from_secs(30), child.wait())
            .await
            .expect("it is still there")
            .unwrap();
    }

    #[tokio::test]
    async fn what_is_left_when_the_pipe_closes_is_killed_and_what_was_forgotten_is_not() {
        let watchdog = Watchdog::default();
        let (mut watched, group) = deaf();
        let (mut forgotten, other) = deaf();
        watchdog.watch(group);
        watchdog.watch(other);
        watchdog.forget(other);
        // As the end of the host does it.
        drop(watchdog);
        has_ended(&mut watched).await;
        assert!(test_kill_process_group(other).is_ok());
        rustix::process::kill_process_group(other, Signal::KILL).unwrap();
        has_ended(&mut forgotten).await;
    }

    #[tokio::test]
    async fn the_shell_ends_with_its_pipe_when_nothing_is_left() {
        let watchdog = Watchdog::default();
        let (mut child, group) = deaf();
        watchdog.watch(group);
        rustix::process::kill_process_group(group, Signal::KILL).unwrap();
        has_ended(&mut child).await;
        watchdog.forget(group);
        // As a host does it that is dropped.
        let shell = std::mem::take(&mut watchdog.lock().shell);
        let Shell::Running { pipe, mut child } = shell else {
            panic!("there is no shell");
        };
        drop(pipe);
        let status = timeout(Duration::from_secs(30), child.wait());
        assert!(status.await.unwrap().unwrap().success());
    }

    #[tokio::test]
    async fn it_is_gone_after_its_end_when_nothing_is_left() {
        let watchdog = Watchdog::default();
        assert!(shell(&watchdog).is_none());
        let (mut child, group) = deaf();
        watchdog.watch(group);
        let pid = shell(&watchdog).unwrap();
        // A group of its own, which a terminal's Ctrl-C does not reach.
        assert!(test_kill_process_group(pid).is_ok());
        rustix::process::kill_process_group(group, Signal::KILL).unwrap();
        has_ended(&mut child).await;
        watchdog.forget(group);
        watchdog.end().await;
        assert!(rustix::process::test_kill_process(pid).is_err());
    }

    #[tokio::test]
    async fn with_the_program_an_idle_one_is_killed_and_a_busy_one_does_its_work() {
        let watchdog = Watchdog::default();
        let (mut child, group) = deaf();
        watchdog.watch(group);
        let busy = shell(&watchdog).unwrap();
        let nothing = watchdog.end_with_program().await;
        assert!(nothing.0.is_none());
        has_ended(&mut child).await;
        watchdog.forget(group);
        let (mut child, group) = deaf();
        watchdog.watch(group);
        let idle = shell(&watchdog).unwrap();
        assert_ne!(busy, idle);
        rustix::process::kill_process_group(group, Signal::KILL).unwrap();
        has_ended(&mut child).await;
        watchdog.forget(group);
        let remains = watchdog.end_with_program().await;
        assert_eq!(remains.0, Some(idle));
        assert!(shell(&watchdog).is_none());
        remains.reap();
        assert!(rustix::process::test_kill_process(idle).is_err());
    }

    #[tokio::test]
    async fn one_that_was_killed_is_started_again_and_knows_all_groups() {
        let watchdog = Watchdog::default();
        let (mut first, one) = deaf();
        watchdog.watch(one);
        kill_process(shell(&watchdog).unwrap(), Signal::KILL).unwrap();
        let dead = async {
            let wait = |state: &mut State| match &mut state.shell {
                Shell::Running { child, .. } => child.try_wait().unwrap().is_some(),
                Shell::NotStarted | Shell::Missing => true,
            };
            while !wait(&mut watchdog.lock()) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), dead).await.unwrap();
        let (mut second, two) = deaf();
        watchdog.watch(two);
        drop(watchdog);
        has_ended(&mut first).await;
        has_ended(&mut second).await;
    }
}

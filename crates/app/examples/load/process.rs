//! Processes of the test: started, listened to, and what they have used.

use std::{env, fs, path::Path, process::Stdio};

use axum::{Router, serve::ListenerExt};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    net::TcpListener,
    process::{Child, Command},
};

use super::Outcome;

/// A server of the test, which ends with this value.
pub(super) struct Process {
    child: Child,
    id: u32,
    /// `http://` and where it listens.
    pub(super) address: String,
}

/// What a process has used until now.
#[derive(Clone, Copy)]
pub(super) struct Use {
    /// Bytes that are in memory.
    pub(super) resident: f64,
    /// The most that ever were.
    pub(super) peak: f64,
    /// Microseconds of the CPU, of all its threads, also of those that ended.
    pub(super) cpu: f64,
}

/// A program of the test as it is started, whichever side it is of: in this folder, without the environment of whoever measures,
/// which would be read by one side and cost it time.
fn program_in(folder: &Path, program: &Path) -> Outcome<Command> {
    let mut command = Command::new(fs::canonicalize(program)?);
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .kill_on_drop(true);
    Ok(command)
}

impl Process {
    /// Starts a server of these examples, which says its port.
    pub(super) async fn example(
        program: &Path,
        folder: &Path,
        arguments: &[&str],
    ) -> Outcome<Self> {
        let mut command = program_in(folder, program)?;
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("the pipe is missing")?;
        let port: u16 = said(stdout, "").await?.parse()?;
        Self::new(child, format!("http://127.0.0.1:{port}"))
    }

    /// Starts `switchboard serve` with this configuration, in a folder that it has for itself.
    pub(super) async fn switchboard(
        program: &str,
        folder: &Path,
        configuration: &Value,
        arguments: &[&str],
    ) -> Outcome<Self> {
        let file = folder.join("switchboard.json");
        fs::write(&file, configuration.to_string())?;
        let mut child = program_in(folder, Path::new(program))?
            .args(["serve", "--bind", "127.0.0.1:0", "--config"])
            .arg(&file)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or("the pipe is missing")?;
        let address = said(stderr, "listening on ").await?;
        Self::new(child, address)
    }

    fn new(child: Child, address: String) -> Outcome<Self> {
        let id = child.id().ok_or("the process is gone")?;
        Ok(Self { child, id, address })
    }

    pub(super) fn used(&self) -> Outcome<Use> {
        used_by(self.id)
    }

    /// Ends it; what it has started ends with its pipes.
    pub(super) async fn end(mut self) -> Outcome<()> {
        Ok(self.child.kill().await?)
    }
}

fn used_by(id: u32) -> Outcome<Use> {
    let of = Path::new("/proc").join(id.to_string());
    let status = fs::read_to_string(of.join("status"))?;
    let bytes = |name: &str| {
        let mut lines = status.lines();
        let kibibytes = lines.find_map(|line| line.strip_prefix(name)?.strip_suffix(" kB"))?;
        Some(kibibytes.trim().parse::<f64>().ok()? * 1024.0)
    };
    let stat = fs::read_to_string(of.join("stat"))?;
    let of_all = ticks(&stat).ok_or("no times in stat")? * 1e6 / clock_ticks()?;
    let mut of_living = 0.0;
    for thread in fs::read_dir(of.join("task"))? {
        // One may end just now.
        let used = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let nanoseconds = used.split(' ').next().and_then(|it| it.parse::<f64>().ok());
        of_living += nanoseconds.unwrap_or_default() / 1e3;
    }
    Ok(Use {
        resident: bytes("VmRSS:").ok_or("no VmRSS")?,
        peak: bytes("VmHWM:").ok_or("no VmHWM")?,
        // What threads that ended have used is in the first alone, which counts whole ticks of 10 ms; the second is exact, and
        // more as long as none has ended.
        cpu: of_all.max(of_living),
    })
}

/// Ticks that a process has used, for itself and in the system: fields 14 and 15, after a name that may hold anything.
fn ticks(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

#[allow(clippy::cast_precision_loss, reason = "a hundred")]
fn clock_ticks() -> Outcome<f64> {
    match rustix::param::clock_ticks_per_second() {
        0 => Err("the system does not say how long a tick is".into()),
        ticks => Ok(ticks as f64),
    }
}

/// Says its port, then serves until it is killed.
pub(super) async fn serve_with(routes: Router) -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    // Without it both sides wait for delayed acknowledgements.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}

/// The first line that begins so, without that.
async fn said(stream: impl AsyncRead + Unpin + Send + 'static, begin: &str) -> Outcome<String> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(rest) = line.strip_prefix(begin) {
            let rest = rest.trim().to_owned();
            // What it says later must go somewhere.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(rest);
        }
    }
    Err(format!("the process ended before it said `{begin}`").into())
}

/// Two CPUs: one for the server that is measured, one for all else. The same one twice where there are no two.
pub(super) fn cpus() -> Outcome<[usize; 2]> {
    let allowed = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let first = cpus.next().ok_or("no CPU to run on")?;
    Ok([first, cpus.next().unwrap_or(first)])
}

/// From here on this thread, and what it starts, runs on one CPU: where the system would put them would be chance.
pub(super) fn stay_on(cpu: usize) -> Outcome<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// Keeps a thread of its own busy until it has used so many milliseconds of the CPU.
    fn busy(milliseconds: u64) {
        let work = move || {
            let mut sum = 0_u64;
            loop {
                let used = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
                if used >= Duration::from_millis(milliseconds) {
                    return sum;
                }
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        };
        std::thread::spawn(work).join().unwrap();
    }

    #[test]
    fn what_threads_used_that_ended_is_counted() {
        let id = std::process::id();
        busy(100);
        let used = used_by(id).unwrap().cpu;
        // Two counters, of whole ticks each.
        assert!(used >= 80_000.0, "{used}");
    }

    #[test]
    fn times_stand_after_a_name_that_holds_anything() {
        let stat = "42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 1200 34 0 0 20 0 8";
        assert_eq!(ticks(stat), Some(1234.0));
        assert_eq!(ticks("42 (a) S 1"), None);
    }

    #[tokio::test]
    async fn both_sides_have_the_same_environment() {
        let folder = tempfile::tempdir().unwrap();
        let print = Path::new("/usr/bin/env");
        let printed = program_in(folder.path(), print).unwrap().output().await;
        let printed = String::from_utf8(printed.unwrap().stdout).unwrap();
        let mut names: Vec<&str> = printed
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "PATH"]);
        let path = folder.path();
        let script = path.join("serve");
        let said = "#!/bin/sh\n[ -z \"$CARGO\" ] && [ \"$HOME\" = \"$PWD\" ] && echo 7\n";
        fs::write(&script, said).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&script, mode).unwrap();
        let floor = Process::example(&script, path, &[]).await.unwrap();
        assert_eq!(floor.address, "http://127.0.0.1:7");
    }
}

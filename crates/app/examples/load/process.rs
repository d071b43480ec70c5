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
    /// Microseconds of the CPU.
    pub(super) cpu: f64,
}

impl Process {
    /// Starts a server of these examples, which says its port.
    pub(super) async fn example(program: &Path, arguments: &[&str]) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
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
        let mut child = Command::new(fs::canonicalize(program)?)
            .args(["serve", "--bind", "127.0.0.1:0", "--config"])
            .arg(&file)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
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
        let of = Path::new("/proc").join(self.id.to_string());
        let status = fs::read_to_string(of.join("status"))?;
        let bytes = |name: &str| {
            let mut lines = status.lines();
            let kibibytes = lines.find_map(|line| line.strip_prefix(name)?.strip_suffix(" kB"))?;
            Some(kibibytes.trim().parse::<f64>().ok()? * 1024.0)
        };
        // To the nanosecond, which `stat` has not. Threads that are gone are not in it; those of a server live as long as it does,
        // and idle ones of a pool for ten seconds.
        let mut cpu = 0.0;
        for thread in fs::read_dir(of.join("task"))? {
            // One may end just now.
            let used = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            let nanoseconds = used.split(' ').next().and_then(|it| it.parse::<f64>().ok());
            cpu += nanoseconds.unwrap_or_default() / 1e3;
        }
        Ok(Use {
            resident: bytes("VmRSS:").ok_or("no VmRSS")?,
            peak: bytes("VmHWM:").ok_or("no VmHWM")?,
            cpu,
        })
    }

    /// Ends it; what it has started ends with its pipes.
    pub(super) async fn end(mut self) -> Outcome<()> {
        Ok(self.child.kill().await?)
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

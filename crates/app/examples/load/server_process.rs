//! Starts the processes of the benchmark and measures their CPU time and memory.

use std::{env, fs, path::Path, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
};

use super::Outcome;

/// A server process of the benchmark. It is killed when this value is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    id: u32,
    /// Base URL of the server, without a trailing slash.
    pub(crate) address: String,
}

/// CPU time and peak memory that a process has used since its start.
#[derive(Clone, Copy)]
pub(crate) struct ResourceUsage {
    /// Peak resident memory of the process in bytes.
    pub(crate) peak: f64,
    /// CPU time of all threads of the process in microseconds.
    pub(crate) cpu: f64,
}

/// Returns a command that runs `program` in `folder`. Of the environment variables of this process,
/// the command gets only `PATH`. `HOME` is set to `folder`.
fn build_isolated_command(folder: &Path, program: &Path) -> Outcome<Command> {
    let mut command = Command::new(fs::canonicalize(program)?);
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .kill_on_drop(true);
    Ok(command)
}

impl ServerProcess {
    /// Starts the program of the example `turn` as the model server in `folder`, and waits until it
    /// has printed its port.
    pub(crate) async fn start_model_server(program: &Path, folder: &Path) -> Outcome<Self> {
        let mut command = build_isolated_command(folder, program)?;
        let mut child = command.arg("serve-model").stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("the pipe is missing")?;
        let port: u16 = read_line_with_prefix(stdout, "").await?.parse()?;
        Self::new(child, format!("http://127.0.0.1:{port}"))
    }

    /// Starts `switchboard serve` on a free port with `configuration` as its configuration file,
    /// and waits until it listens.
    pub(crate) async fn start_switchboard(
        program: &str,
        folder: &Path,
        configuration: &Value,
        arguments: &[&str],
    ) -> Outcome<Self> {
        let file = folder.join("switchboard.json");
        fs::write(&file, configuration.to_string())?;
        let mut child = build_isolated_command(folder, Path::new(program))?
            .args(["serve", "--bind", "127.0.0.1:0", "--config"])
            .arg(&file)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or("the pipe is missing")?;
        let address = read_line_with_prefix(stderr, "listening on ").await?;
        Self::new(child, address)
    }

    fn new(child: Child, address: String) -> Outcome<Self> {
        let id = child.id().ok_or("the process has ended")?;
        Ok(Self { child, id, address })
    }

    /// Reads the memory and CPU time of the process from `/proc`.
    pub(crate) fn read_resource_usage(&self) -> Outcome<ResourceUsage> {
        let folder = Path::new("/proc").join(self.id.to_string());
        let status = fs::read_to_string(folder.join("status"))?;
        let peak = status.lines().find_map(|line| {
            let kibibytes = line.strip_prefix("VmHWM:")?.strip_suffix(" kB")?;
            kibibytes.trim().parse::<f64>().ok()
        });
        let stat = fs::read_to_string(folder.join("stat"))?;
        // Fields 14 and 15 of `/proc/PID/stat` are the user time and the system time in clock
        // ticks. The text is split after field 2, the program name in parentheses, because the name
        // may contain spaces.
        let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = times.map(|time| time.parse::<f64>().unwrap_or(0.0)).sum();
        #[allow(clippy::cast_precision_loss, reason = "about a hundred")]
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        Ok(ResourceUsage {
            peak: peak.ok_or("no VmHWM in status")? * 1024.0,
            cpu: ticks * 1e6 / ticks_per_second,
        })
    }

    /// Asks the process to end, and waits for its end.
    pub(crate) async fn stop_process(mut self) -> Outcome<()> {
        let id = Pid::from_raw(self.id.try_into()?).ok_or("the id is 0")?;
        kill_process(id, Signal::TERM)?;
        self.child.wait().await?;
        Ok(())
    }
}

/// Reads lines until a line starts with `start`, and returns the rest of this line. A background
/// task then discards all later lines. Returns an error if the stream ends before such a line.
async fn read_line_with_prefix(
    stream: impl AsyncRead + Unpin + Send + 'static,
    start: &str,
) -> Outcome<String> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(rest) = line.strip_prefix(start) {
            let rest = rest.trim().to_owned();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(rest);
        }
    }
    Err(format!("the process ended without printing `{start}`").into())
}

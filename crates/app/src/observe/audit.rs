//! The audit file: what models and tools were asked and did, one JSON line each.

use std::{
    fmt,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use switchboard_domain::{Principal, Usage, redact::Redactor};
use switchboard_orchestration::{
    RunEvent,
    observe::audit::{AuditOptions, AuditTrail, CostFunction},
};
use tokio::sync::{mpsc, oneshot};

use super::{log::private_file, secrets::redactor};
use crate::{
    config::{AuditPlace, Config},
    environment::Environment,
    model::list_price,
    private_file::make_folder,
    terminal,
};

/// The file in the user's state folder.
const FILE: &str = "audit.jsonl";

/// Records that wait to be written. A disk that is slower makes the run wait: a record that is left
/// out is worse.
const WAITING: usize = 4_096;

/// How long the end of the program waits for the disk.
const PATIENCE: Duration = Duration::from_secs(3);

/// The audit was asked for and cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("the audit file {} cannot be written; name another one with `audit: FILE`, or `audit: false` for none", path.display())]
pub struct AuditError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: io::Error,
}

/// The audit of this process: one file for all its runs. Needs a runtime.
#[derive(Debug)]
pub struct AuditLog {
    file: Option<AuditFile>,
    redactor: Redactor,
    results: bool,
}

impl AuditLog {
    /// As it is configured: in a file that is named, or else in `audit.jsonl` of the user's state folder.
    /// Without such a folder, or if that one cannot be written, nothing is kept.
    pub fn open(config: &Config, environment: &Environment) -> Result<Self, AuditError> {
        let file = match place(config, environment) {
            Place::Nowhere => None,
            Place::Named(path) => Some(AuditFile::open(&path).map_err(|source| AuditError {
                path: path.clone(),
                source,
            })?),
            Place::Default(path) => match AuditFile::open(&path) {
                Ok(file) => Some(file),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "no audit is kept");
                    None
                }
            },
        };
        Ok(Self {
            file,
            redactor: redactor(config, environment),
            results: config.observe.audit_results.unwrap_or(false),
        })
    }

    /// The file that it is kept in, if any is. It need not be there.
    pub fn place(config: &Config, environment: &Environment) -> Option<PathBuf> {
        match place(config, environment) {
            Place::Nowhere => None,
            Place::Named(path) | Place::Default(path) => Some(path),
        }
    }

    /// Keeps one run that has not begun.
    pub fn run(&self, session_id: Option<String>, principal: Option<Principal>) -> Recorder {
        let options = AuditOptions {
            session_id,
            principal,
            redactor: self.redactor.clone(),
            results: self.results,
            cost: Some(list_prices()),
        };
        Recorder {
            trail: AuditTrail::new(options),
            lines: self.file.as_ref().map(|file| file.lines.clone()),
        }
    }

    /// Waits until everything up to now is on the disk, for three seconds at most. Says what was lost.
    /// To be called when runs have ended and before the process does.
    pub async fn flush(&self) {
        let Some(file) = &self.file else { return };
        if let Err(why) = file.flush().await {
            terminal::say_warning(&format!(
                "the audit in {} is not complete: {why}",
                file.path.display()
            ));
        }
    }
}

/// Keeps what there is to keep of one run.
#[derive(Debug)]
pub struct Recorder {
    trail: AuditTrail,
    lines: Option<mpsc::Sender<Work>>,
}

impl Recorder {
    /// Takes an event in. Waits only for a disk that lags thousands of records behind.
    pub async fn observe(&mut self, event: &RunEvent) {
        let Some(lines) = &self.lines else { return };
        for record in self.trail.observe(event) {
            let mut line = match serde_json::to_vec(&record) {
                Ok(line) => line,
                Err(error) => {
                    tracing::warn!(%error, "an audit record cannot be written down");
                    continue;
                }
            };
            line.push(b'\n');
            // The writer ends only with the process.
            let _ = lines.send(Work::Line(line)).await;
        }
    }
}

/// What calls of models cost by the prices of the catalogue. What a provider calls otherwise has none,
/// and neither have the requests of its own tools.
pub fn list_prices() -> CostFunction {
    Arc::new(|model, usage: &Usage| {
        let pricing = list_price(model)?;
        // What was not reported would count as free.
        (usage.input_tokens.is_some() && usage.output_tokens.is_some())
            .then(|| pricing.cost(usage))
            .filter(|cost| cost.unpriced_requests == 0)
            .map(|cost| cost.usd)
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Named(PathBuf),
    Default(PathBuf),
}

/// `SWITCHBOARD_AUDIT` (a file, `on` or `off`) is above the files.
fn place(config: &Config, environment: &Environment) -> Place {
    let configured = match environment.get("SWITCHBOARD_AUDIT").map(str::trim) {
        Some("off" | "false" | "0") => Some(AuditPlace::Off),
        Some("on" | "true" | "1") => Some(AuditPlace::Default),
        Some(name) => Some(AuditPlace::File(environment.working_dir.join(name))),
        None => config.observe.audit.clone(),
    };
    let default = environment.state_dir.as_ref().map(|it| it.join(FILE));
    match (configured, default) {
        (Some(AuditPlace::Off), _) | (None, None) => Place::Nowhere,
        (None, Some(path)) => Place::Default(path),
        // Asked for, so it is an error if it cannot be kept.
        (Some(AuditPlace::Default), Some(path)) | (Some(AuditPlace::File(path)), _) => {
            Place::Named(path)
        }
        // A platform without such a folder.
        (Some(AuditPlace::Default), None) => Place::Named(environment.working_dir.join(FILE)),
    }
}

/// A file that only grows, written by a thread that may wait for the disk.
struct AuditFile {
    path: PathBuf,
    lines: mpsc::Sender<Work>,
}

/// What the thread does, in order.
#[derive(Debug)]
enum Work {
    Line(Vec<u8>),
    /// Hand everything to the disk and say what went wrong since the last time.
    Flush(oneshot::Sender<Result<(), String>>),
}

impl AuditFile {
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let file = private_file(path)?;
        let (lines, work) = mpsc::channel(WAITING);
        // No thread of the runtime, which would wait for it at the end once more than `flush` does.
        thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write(file, work))?;
        Ok(Self {
            path: path.to_owned(),
            lines,
        })
    }

    async fn flush(&self) -> Result<(), String> {
        let (done, is_done) = oneshot::channel();
        let flushed = async {
            let sent = self.lines.send(Work::Flush(done)).await;
            sent.map_err(|_| "its writer is gone".to_owned())?;
            let done = is_done.await;
            done.unwrap_or_else(|_| Err("its writer is gone".to_owned()))
        };
        let in_time = tokio::time::timeout(PATIENCE, flushed).await;
        in_time.unwrap_or_else(|_| Err("the disk does not answer".to_owned()))
    }
}

/// One write for each record, to a file that is open for appending: records of several processes do
/// not mix.
fn write<W: Disk>(mut file: W, mut work: mpsc::Receiver<Work>) {
    let mut lost = 0_u64;
    let mut why = String::new();
    while let Some(next) = work.blocking_recv() {
        match next {
            Work::Line(line) => {
                if let Err(error) = file.append(&line) {
                    lost += 1;
                    why = error.to_string();
                }
            }
            Work::Flush(done) => {
                let synced = file.sync().map_err(|error| error.to_string());
                let result = match std::mem::take(&mut lost) {
                    0 => synced,
                    lost => Err(format!("{lost} records were not written: {why}")),
                };
                // Whoever asked has gone on if this took too long.
                let _ = done.send(result);
            }
        }
    }
}

/// What is written to, so that a test can have a full one.
trait Disk {
    fn append(&mut self, line: &[u8]) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

impl Disk for File {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_all(line)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.sync_data() {
            // A pipe or a device takes lines too, and has nothing to be synced.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }
}

impl fmt::Debug for AuditFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;

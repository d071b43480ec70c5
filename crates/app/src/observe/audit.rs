//! The audit file: one JSON line for each model call, tool call and run.

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
    config::{AuditPlace, Config, environment::Environment},
    models::list_price,
    storage::private_file::make_folder,
    terminal,
};

const FILE: &str = "audit.jsonl";

/// Maximum number of records in the queue. A slow disk blocks the run, because no record may be
/// lost.
const QUEUE_SIZE: usize = 4_096;

/// Time limit for the last records at the end of the program.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The configured audit file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the audit file {} cannot be written; name another one with `audit: FILE`, or `audit: \
         false` for none", path.display())]
pub(crate) struct AuditError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// The audit of this process: one file for all runs. Needs a runtime.
#[derive(Debug)]
pub(crate) struct AuditLog {
    file: Option<AuditFile>,
    redactor: Redactor,
    results: bool,
}

impl AuditLog {
    /// Opens the configured file, or `audit.jsonl` in the user's state folder. Only a configured
    /// file must be writable.
    pub(crate) fn open(config: &Config, environment: &Environment) -> Result<Self, AuditError> {
        let file = match location(config, environment) {
            Location::Nowhere => None,
            Location::Named(path) => Some(AuditFile::open(&path).map_err(|source| AuditError {
                path: path.clone(),
                source,
            })?),
            Location::Default(path) => match AuditFile::open(&path) {
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
            results: config.audit_results.unwrap_or(false),
        })
    }

    /// Returns the path of the audit file, which need not exist.
    pub(crate) fn location(config: &Config, environment: &Environment) -> Option<PathBuf> {
        match location(config, environment) {
            Location::Nowhere => None,
            Location::Named(path) | Location::Default(path) => Some(path),
        }
    }

    /// Returns the recorder of a new run.
    pub(crate) fn run(&self, session_id: Option<String>, principal: Option<Principal>) -> Recorder {
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

    /// Waits until all records are on the disk, at most three seconds. Prints a warning if records
    /// were lost.
    pub(crate) async fn flush(&self) {
        let Some(file) = &self.file else { return };
        if let Err(why) = file.flush().await {
            terminal::print_warning(&format!(
                "the audit in {} is not complete: {why}",
                file.path.display()
            ));
        }
    }
}

/// Writes the audit records of one run.
#[derive(Debug)]
pub(crate) struct Recorder {
    trail: AuditTrail,
    lines: Option<mpsc::Sender<Work>>,
}

impl Recorder {
    /// Records an event. Blocks only if the queue is full.
    pub(crate) async fn observe(&mut self, event: &RunEvent) {
        let Some(lines) = &self.lines else { return };
        for record in self.trail.observe(event) {
            let mut line = match serde_json::to_vec(&record) {
                Ok(line) => line,
                Err(error) => {
                    tracing::warn!(%error, "failed to serialize an audit record");
                    continue;
                }
            };
            line.push(b'\n');
            let _ = lines.send(Work::Line(line)).await;
        }
    }
}

/// Returns the cost of model calls by list prices. Unknown models and requests of provider tools
/// have no price.
pub(crate) fn list_prices() -> CostFunction {
    Arc::new(|model, usage: &Usage| {
        let pricing = list_price(model)?;
        // Unreported tokens would count as free.
        (usage.input_tokens.is_some() && usage.output_tokens.is_some())
            .then(|| pricing.cost(usage))
            .filter(|cost| cost.unpriced_requests == 0)
            .map(|cost| cost.usd)
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Location {
    Nowhere,
    Named(PathBuf),
    Default(PathBuf),
}

/// Returns the location. `SWITCHBOARD_AUDIT` (a file, `on` or `off`) takes precedence over files.
fn location(config: &Config, environment: &Environment) -> Location {
    let configured = match environment.get("SWITCHBOARD_AUDIT").map(str::trim) {
        Some("off" | "false" | "0") => Some(AuditPlace::Off),
        Some("on" | "true" | "1") => Some(AuditPlace::Default),
        Some(name) => Some(AuditPlace::File(environment.working_dir.join(name))),
        None => config.audit.clone(),
    };
    let default = environment.state_dir.as_ref().map(|it| it.join(FILE));
    match (configured, default) {
        (Some(AuditPlace::Off), _) | (None, None) => Location::Nowhere,
        (None, Some(path)) => Location::Default(path),
        // Explicitly configured, so it must be writable.
        (Some(AuditPlace::Default), Some(path)) | (Some(AuditPlace::File(path)), _) => {
            Location::Named(path)
        }
        // The platform has no state folder.
        (Some(AuditPlace::Default), None) => Location::Named(environment.working_dir.join(FILE)),
    }
}

/// An append-only file with a writer thread.
struct AuditFile {
    path: PathBuf,
    lines: mpsc::Sender<Work>,
}

#[derive(Debug)]
enum Work {
    Line(Vec<u8>),
    /// Syncs the file and returns the errors since the last flush.
    Flush(oneshot::Sender<Result<(), String>>),
}

impl AuditFile {
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let file = private_file(path)?;
        let (lines, work) = mpsc::channel(QUEUE_SIZE);
        // At the end, the runtime waits for its threads.
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
        let in_time = tokio::time::timeout(FLUSH_TIMEOUT, flushed).await;
        in_time.unwrap_or_else(|_| Err("the disk does not answer".to_owned()))
    }
}

/// Writes one record at a time in append mode, so that records of several processes do not mix.
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
                // The caller may have timed out.
                let _ = done.send(result);
            }
        }
    }
}

/// A file, or a full disk in tests.
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
            // Pipes and devices cannot be synced.
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

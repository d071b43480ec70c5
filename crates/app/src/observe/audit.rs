//! The audit file: one JSON line for each model call, tool call and run.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::bail;
use switchboard_domain::{Principal, Usage, redact::Redactor};
use switchboard_orchestration::{
    RunEvent,
    observe::audit::{AuditOptions, AuditTrail, CostFunction},
};

use super::{log::private_file, secrets::redactor};
use crate::{
    config::{AuditPlace, Config, environment::Environment},
    models::list_price,
    storage::private_file::make_folder,
    terminal,
};

const FILE: &str = "audit.jsonl";

/// Time limit for the last records at the end of the program.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The audit of this process: one file for all runs.
#[derive(Debug)]
pub(crate) struct AuditLog {
    file: Option<Arc<AuditFile>>,
    redactor: Redactor,
    results: bool,
}

impl AuditLog {
    /// Opens the configured file, or `audit.jsonl` in the user's state folder. Only a configured
    /// file must be writable.
    pub(crate) fn open(config: &Config, environment: &Environment) -> anyhow::Result<Self> {
        let opened = location(config, environment).map(|(path, is_configured)| {
            let file = AuditFile::open(&path).map(Arc::new);
            (file, path, is_configured)
        });
        let file = match opened {
            None => None,
            Some((Ok(file), ..)) => Some(file),
            Some((Err(error), path, true)) => bail!(
                "the audit file {} cannot be written; name another one with `audit: FILE`, or \
                 `audit: false` for none: {error}",
                path.display()
            ),
            Some((Err(error), path, false)) => {
                tracing::warn!(path = %path.display(), %error, "no audit is kept");
                None
            }
        };
        Ok(Self {
            file,
            redactor: redactor(config, environment),
            results: config.audit_results.unwrap_or(false),
        })
    }

    /// Returns the path of the audit file, which need not exist.
    pub(crate) fn location(config: &Config, environment: &Environment) -> Option<PathBuf> {
        location(config, environment).map(|(path, _)| path)
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
            file: self.file.clone(),
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
    file: Option<Arc<AuditFile>>,
}

impl Recorder {
    /// Records an event. A slow disk blocks the run, because no record may be lost.
    pub(crate) fn observe(&mut self, event: &RunEvent) {
        let Some(file) = &self.file else { return };
        for record in self.trail.observe(event) {
            match serde_json::to_vec(&record) {
                Ok(line) => file.append(line),
                Err(error) => tracing::warn!(%error, "failed to serialize an audit record"),
            }
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

/// Returns the path of the audit file, and whether it is configured and so must be writable.
/// `SWITCHBOARD_AUDIT` (a file, `on` or `off`) takes precedence over files.
fn location(config: &Config, environment: &Environment) -> Option<(PathBuf, bool)> {
    let configured = match environment.get("SWITCHBOARD_AUDIT").map(str::trim) {
        Some("off" | "false" | "0") => Some(AuditPlace::Off),
        Some("on" | "true" | "1") => Some(AuditPlace::Default),
        Some(name) => Some(AuditPlace::File(environment.working_dir.join(name))),
        None => config.audit.clone(),
    };
    let default = environment.state_dir.as_ref().map(|it| it.join(FILE));
    match configured {
        Some(AuditPlace::Off) => None,
        None => default.map(|path| (path, false)),
        Some(AuditPlace::File(path)) => Some((path, true)),
        // Some platforms have no state folder.
        Some(AuditPlace::Default) => Some((
            default.unwrap_or_else(|| environment.working_dir.join(FILE)),
            true,
        )),
    }
}

/// An append-only file. One write for each record, so that records of several processes do not mix.
#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    file: File,
    /// The errors of records that were not written since the last flush.
    errors: Mutex<Vec<io::Error>>,
}

impl AuditFile {
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file: private_file(path)?,
            errors: Mutex::default(),
        })
    }

    fn append(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        if let Err(error) = (&self.file).write_all(&line) {
            let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
            errors.push(error);
        }
    }

    async fn flush(self: &Arc<Self>) -> Result<(), String> {
        let file = Arc::clone(self);
        let syncing = tokio::task::spawn_blocking(move || file.sync());
        match tokio::time::timeout(FLUSH_TIMEOUT, syncing).await {
            Ok(synced) => synced.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => Err("the disk does not answer".to_owned()),
        }
    }

    fn sync(&self) -> Result<(), String> {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let errors = std::mem::take(&mut *errors);
        if let Some(error) = errors.last() {
            return Err(format!(
                "{} records were not written: {error}",
                errors.len()
            ));
        }
        match self.file.sync_data() {
            // Pipes and devices cannot be synced.
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error.to_string()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;

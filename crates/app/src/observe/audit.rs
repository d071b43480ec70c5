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

use super::{log::open_private_file, secrets::build_redactor};
use crate::{
    config::{AuditLocation, Config, environment::Environment},
    models::find_list_price,
    storage::private_file::create_private_folder,
    terminal,
};

const FILE: &str = "audit.jsonl";

/// Time limit at the end of the program for writing the last audit records to disk.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The audit log of this process. All runs write to the same file.
#[derive(Debug)]
pub(crate) struct AuditLog {
    file: Option<Arc<AuditFile>>,
    redactor: Redactor,
    results: bool,
}

impl AuditLog {
    /// Opens the configured audit file, or `audit.jsonl` in the user's state folder. Returns an
    /// error if a configured file cannot be opened. If the default file cannot be opened, logs a
    /// warning and writes no audit.
    pub(crate) fn open_audit(config: &Config, environment: &Environment) -> anyhow::Result<Self> {
        let opened = find_audit_path(config, environment).map(|(path, is_configured)| {
            let file = AuditFile::open_audit_file(&path).map(Arc::new);
            (file, path, is_configured)
        });
        let file = match opened {
            None => None,
            Some((Ok(file), ..)) => Some(file),
            Some((Err(error), path, true)) => bail!(
                "cannot write the audit file {}: {error}. Choose another file with `audit: FILE`, \
                 or disable the audit with `audit: false`",
                path.display()
            ),
            Some((Err(error), path, false)) => {
                tracing::warn!(path = %path.display(), %error, "failed to open the audit file");
                None
            }
        };
        Ok(Self {
            file,
            redactor: build_redactor(config, environment),
            results: config.audit_results.unwrap_or(false),
        })
    }

    /// Returns the path of the audit file, which may not exist yet. `None` if the audit is off.
    pub(crate) fn audit_path(config: &Config, environment: &Environment) -> Option<PathBuf> {
        find_audit_path(config, environment).map(|(path, _)| path)
    }

    /// Creates the audit recorder of a new run.
    pub(crate) fn create_run_recorder(
        &self,
        session_id: Option<String>,
        principal: Option<Principal>,
    ) -> AuditRecorder {
        let options = AuditOptions {
            session_id,
            principal,
            redactor: self.redactor.clone(),
            results: self.results,
            cost: Some(build_cost_function()),
        };
        AuditRecorder {
            trail: AuditTrail::new(options),
            file: self.file.clone(),
        }
    }

    /// Waits at most [`FLUSH_TIMEOUT`] until all audit records are on disk. Prints a warning if
    /// records were lost.
    pub(crate) async fn flush_audit_log(&self) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let path = file.path.display().to_string();
        let syncing = tokio::task::spawn_blocking(move || file.sync_to_disk());
        let synced = match tokio::time::timeout(FLUSH_TIMEOUT, syncing).await {
            Ok(synced) => synced.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => Err("the disk did not respond in time".to_owned()),
        };
        if let Err(why) = synced {
            terminal::print_warning(&format!("the audit in {path} is incomplete: {why}"));
        }
    }
}

/// Recorder of one run, which converts run events to audit records.
#[derive(Debug)]
pub(crate) struct AuditRecorder {
    trail: AuditTrail,
    file: Option<Arc<AuditFile>>,
}

impl AuditRecorder {
    /// Writes the audit records of an event. Waits for a slow disk, so that no record is lost.
    pub(crate) fn record_event(&mut self, event: &RunEvent) {
        let Some(file) = &self.file else { return };
        for record in self.trail.create_records(event) {
            match serde_json::to_vec(&record) {
                Ok(line) => file.append_line(line),
                Err(error) => tracing::warn!(%error, "failed to serialize an audit record"),
            }
        }
    }
}

/// Returns a function that computes the cost of a model call from list prices. The function returns
/// `None` for models without a list price and for calls that used tools of the provider, such as a
/// web search.
pub(crate) fn build_cost_function() -> CostFunction {
    Arc::new(|model, usage: &Usage| {
        let pricing = find_list_price(model)?;
        // Both token counts are required, because a missing count would make the cost too low.
        (usage.input_tokens.is_some() && usage.output_tokens.is_some())
            .then(|| pricing.compute_cost(usage))
            .filter(|cost| cost.unpriced_requests == 0)
            .map(|cost| cost.usd)
    })
}

/// Returns the path of the audit file and whether the user configured it. The variable
/// `SWITCHBOARD_AUDIT` (a file, `on` or `off`) takes precedence over configuration files. Returns
/// `None` if no audit is written.
fn find_audit_path(config: &Config, environment: &Environment) -> Option<(PathBuf, bool)> {
    let configured = match environment.get("SWITCHBOARD_AUDIT").map(str::trim) {
        Some("off" | "false" | "0") => Some(AuditLocation::Off),
        Some("on" | "true" | "1") => Some(AuditLocation::Default),
        Some(name) => Some(AuditLocation::File(environment.working_dir.join(name))),
        None => config.audit.clone(),
    };
    let default = environment.state_dir.as_ref().map(|it| it.join(FILE));
    match configured {
        Some(AuditLocation::Off) => None,
        None => default.map(|path| (path, false)),
        Some(AuditLocation::File(path)) => Some((path, true)),
        // If the user has switched the audit on and the platform has no state folder, the audit
        // file is in the working directory.
        Some(AuditLocation::Default) => Some((
            default.unwrap_or_else(|| environment.working_dir.join(FILE)),
            true,
        )),
    }
}

/// An append-only file. Each record is a single write, so that the records of several processes do
/// not mix.
#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    file: File,
    /// Errors of writes since the last flush. The flush reports them and clears the list.
    errors: Mutex<Vec<io::Error>>,
}

impl AuditFile {
    fn open_audit_file(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            create_private_folder(folder)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file: open_private_file(path)?,
            errors: Mutex::default(),
        })
    }

    fn append_line(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        if let Err(error) = (&self.file).write_all(&line) {
            let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
            errors.push(error);
        }
    }

    fn sync_to_disk(&self) -> Result<(), String> {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let errors = std::mem::take(&mut *errors);
        if let Some(error) = errors.last() {
            return Err(format!(
                "{} records were not written: {error}",
                errors.len()
            ));
        }
        match self.file.sync_data() {
            // `InvalidInput`: the audit file is a pipe or device, which cannot be synced.
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error.to_string()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;

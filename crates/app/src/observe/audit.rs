//! The audit in the session store and in a file: one record for each model call, tool call and run.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::bail;
use switchboard_domain::{
    MAX_AUDIT_RECORD_BYTES, Principal, SessionStoreError, StoredAuditRecord, Usage,
    redact::Redactor,
};
use switchboard_orchestration::{
    RunEvent,
    observe::audit::{AuditOptions, AuditTrail, CostFunction},
};

use super::{
    audit_queue::{AuditQueue, LostRecords},
    log::open_private_file,
    secrets::build_redactor,
};
use crate::{
    config::{AuditLocation, Config, environment::Environment},
    models::find_list_price,
    storage::{private_file::create_private_folder, sessions::OpenSessionStore},
    terminal,
};

const FILE: &str = "audit.jsonl";

/// Time limit at the end of the program for writing the last audit records to the store, and for
/// writing them to disk.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The audit log of this process. All runs write to the same store and file.
#[derive(Debug)]
pub(crate) struct AuditLog {
    is_off: bool,
    store: Option<Arc<AuditQueue>>,
    file: Option<Arc<AuditFile>>,
    redactor: Redactor,
    results: bool,
}

impl AuditLog {
    /// Opens the audit of runs that are stored in `sessions`, and the configured file. Without
    /// `sessions`, the default file is `audit.jsonl` in the user's state folder. Returns an error
    /// if a configured file cannot be opened. If the default file cannot be opened, logs a warning
    /// and writes no audit.
    pub(crate) fn open_audit(
        config: &Config,
        environment: &Environment,
        sessions: Option<&OpenSessionStore>,
    ) -> anyhow::Result<Self> {
        let found = find_audit_path(config, environment);
        let found = found.filter(|(_, is_configured)| *is_configured || sessions.is_none());
        let file = match found {
            None => None,
            Some((path, is_configured)) => match AuditFile::open_audit_file(&path) {
                Ok(file) => Some(Arc::new(file)),
                Err(error) if is_configured => bail!(
                    "cannot write the audit file {}: {error}. Choose another file with `audit: \
                     FILE`, or disable the audit with `audit: false`",
                    path.display()
                ),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "failed to open the audit file");
                    None
                }
            },
        };
        let store = sessions.map(|sessions| Arc::new(AuditQueue::new(sessions.store.clone())));
        Ok(Self {
            is_off: Self::is_off(config, environment),
            store,
            file,
            redactor: build_redactor(config, environment),
            results: config.audit_results.unwrap_or(false),
        })
    }

    /// Returns whether the user has turned the audit off.
    pub(crate) fn is_off(config: &Config, environment: &Environment) -> bool {
        configured_location(config, environment) == Some(AuditLocation::Off)
    }

    /// Returns the path of the audit file, which may not exist. `None` if the audit is off or the
    /// platform has no state folder.
    pub(crate) fn audit_path(config: &Config, environment: &Environment) -> Option<PathBuf> {
        find_audit_path(config, environment).map(|(path, _)| path)
    }

    /// Creates the audit recorder of a new run.
    pub(crate) fn create_run_recorder(
        &self,
        session_id: Option<String>,
        principal: Option<Principal>,
    ) -> AuditRecorder {
        let owner = principal.clone().unwrap_or_default();
        let options = AuditOptions {
            session_id,
            principal,
            redactor: self.redactor.clone(),
            results: self.results,
            cost: Some(build_cost_function()),
        };
        AuditRecorder {
            trail: AuditTrail::new(options),
            owner,
            store: self.store.clone().filter(|_| !self.is_off),
            file: self.file.clone(),
        }
    }

    /// Returns stored audit records of a principal, including all records of the events so far. See
    /// [`AuditStore::list_audit_records`](switchboard_domain::AuditStore::list_audit_records).
    pub(crate) async fn list_stored_records(
        &self,
        owner: &Principal,
        before: &str,
        limit: u32,
    ) -> Result<Vec<StoredAuditRecord>, SessionStoreError> {
        let Some(queue) = &self.store else {
            return Ok(Vec::new());
        };
        queue.write_waiting().await;
        queue.store.list_audit_records(owner, before, limit).await
    }

    /// Waits at most [`FLUSH_TIMEOUT`] until all audit records are in the store, and as long until
    /// they are on disk. Prints a warning if records were lost.
    pub(crate) async fn flush_audit_log(&self) {
        if let Some(queue) = &self.store {
            let writing = async {
                queue.write_waiting().await;
                queue.lost.take_lost()
            };
            warn_if_incomplete("the session store", writing).await;
        }
        if let Some(file) = self.file.clone() {
            let path = file.path.display().to_string();
            let syncing = tokio::task::spawn_blocking(move || file.sync_to_disk());
            let syncing = async { syncing.await.unwrap_or_else(|error| Err(error.to_string())) };
            warn_if_incomplete(&path, syncing).await;
        }
    }
}

async fn warn_if_incomplete(place: &str, writing: impl Future<Output = Result<(), String>>) {
    let written = tokio::time::timeout(FLUSH_TIMEOUT, writing).await;
    let written = written.unwrap_or_else(|_| Err("it did not respond in time".to_owned()));
    if let Err(why) = written {
        terminal::print_warning(&format!("the audit in {place} is incomplete: {why}"));
    }
}

/// Recorder of one run, which converts run events to audit records.
#[derive(Debug)]
pub(crate) struct AuditRecorder {
    trail: AuditTrail,
    owner: Principal,
    store: Option<Arc<AuditQueue>>,
    file: Option<Arc<AuditFile>>,
}

impl AuditRecorder {
    /// Writes the audit records of an event. Waits for a slow store or disk, so that no record is
    /// lost.
    pub(crate) async fn record_event(&mut self, event: &RunEvent) {
        if self.store.is_none() && self.file.is_none() {
            return;
        }
        for record in self.trail.create_records(event) {
            let json = serde_json::to_string(&record);
            let Ok(json) = json.inspect_err(|error| tracing::warn!(%error, "invalid audit record"))
            else {
                continue;
            };
            if let Some(file) = &self.file {
                file.append_line(&json);
            }
            match &self.store {
                // The store would refuse the record and the others of its batch.
                Some(queue) if json.len() > MAX_AUDIT_RECORD_BYTES => {
                    queue.lost.add_lost(1, &"a record is too large");
                }
                Some(queue) => queue.add_record(self.owner.clone(), json.into()).await,
                None => {}
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

/// Returns the configured location of the audit file. The variable `SWITCHBOARD_AUDIT` (a file,
/// `on` or `off`) takes precedence over configuration files.
fn configured_location(config: &Config, environment: &Environment) -> Option<AuditLocation> {
    match environment.get("SWITCHBOARD_AUDIT").map(str::trim) {
        Some("off" | "false" | "0") => Some(AuditLocation::Off),
        Some("on" | "true" | "1") => Some(AuditLocation::Default),
        Some(name) => Some(AuditLocation::File(environment.working_dir.join(name))),
        None => config.audit.clone(),
    }
}

/// Returns the path of the audit file and whether the user configured it. Returns `None` if no
/// audit file is written.
fn find_audit_path(config: &Config, environment: &Environment) -> Option<(PathBuf, bool)> {
    let default = environment.state_dir.as_ref().map(|it| it.join(FILE));
    match configured_location(config, environment) {
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
    lost: LostRecords,
}

impl AuditFile {
    fn open_audit_file(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            create_private_folder(folder)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file: open_private_file(path)?,
            lost: LostRecords::default(),
        })
    }

    fn append_line(&self, json: &str) {
        let line = format!("{json}\n");
        if let Err(error) = (&self.file).write_all(line.as_bytes()) {
            self.lost.add_lost(1, &error);
        }
    }

    fn sync_to_disk(&self) -> Result<(), String> {
        self.lost.take_lost()?;
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

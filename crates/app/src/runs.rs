//! Runs that wait for somebody: stored on disk until another process goes on with them.

use std::{
    collections::HashSet,
    fs, io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use switchboard_orchestration::{
    Run,
    checkpoint::{Checkpoint, CheckpointError, Checkpoints},
};

use crate::{environment::Environment, private_file};

/// Stored runs, one file each, in the user's data folder.
///
/// A run is stored when it comes to a question about a tool call, from then on at every point at which
/// something could be lost or done twice, and no longer when it is over.
#[derive(Debug)]
pub struct StoredRuns {
    folder: PathBuf,
    stored: Mutex<HashSet<String>>,
}

/// Why a stored run cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StoredRunError {
    /// There is no place for the user's data on this platform.
    #[error("this platform has no folder for the data of users, so no run can be stored")]
    NoPlace,
    /// There is none of this id.
    #[error("there is no stored run `{id}`; `switchboard runs` lists those that wait")]
    NotFound {
        /// The id.
        id: String,
    },
    /// What is meant is not clear.
    #[error("several stored runs begin with `{id}`: write more of the id")]
    Ambiguous {
        /// The beginning of an id.
        id: String,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What stands in the file is no run of this version.
    #[error("{}: is no run that this version can read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl StoredRuns {
    /// The runs of this user.
    pub fn of(environment: &Environment) -> Result<Self, StoredRunError> {
        let data = environment.data_dir.as_ref();
        let folder = data.ok_or(StoredRunError::NoPlace)?.join("runs");
        Ok(Self {
            folder,
            stored: Mutex::default(),
        })
    }

    /// The ids of the runs that wait, oldest first.
    pub fn ids(&self) -> Result<Vec<String>, StoredRunError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.failed(self.folder.clone(), source)),
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut ids: Vec<String> = names
            .filter_map(|name| Some(name.to_str()?.strip_suffix(".json")?.to_owned()))
            .collect();
        // Ids sort by time.
        ids.sort();
        Ok(ids)
    }

    /// The run of this id, or whose id begins so.
    pub fn load(&self, id: &str) -> Result<Run, StoredRunError> {
        let ids = self.ids()?;
        let mut fitting = ids.iter().filter(|known| known.starts_with(id));
        let found = match (fitting.next(), fitting.next()) {
            (Some(found), None) => found,
            (Some(_), Some(_)) => return Err(StoredRunError::Ambiguous { id: id.to_owned() }),
            (None, _) => return Err(StoredRunError::NotFound { id: id.to_owned() }),
        };
        let path = self.path(found);
        let text = private_file::read(&path)
            .map_err(|source| self.failed(path.clone(), source))?
            .ok_or_else(|| StoredRunError::NotFound { id: id.to_owned() })?;
        let run = serde_json::from_str(&text)
            .map_err(|source| StoredRunError::Unreadable { path, source })?;
        self.lock().insert(found.clone());
        Ok(run)
    }

    /// Forgets a run. Whether there was one.
    pub fn forget(&self, id: &str) -> Result<bool, StoredRunError> {
        self.lock().remove(id);
        let path = self.path(id);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(self.failed(path, source)),
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    #[allow(clippy::unused_self)] // The error belongs to this store.
    fn failed(&self, path: PathBuf, source: io::Error) -> StoredRunError {
        StoredRunError::File { path, source }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Checkpoints for StoredRuns {
    async fn reached(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        let is_stored = self.lock().contains(run.id());
        let wants = match point {
            Checkpoint::Waiting => true,
            // What never waited for anybody is not worth a write for each call.
            Checkpoint::Over if is_stored => {
                let forgotten = self.forget(run.id()).map(|_| ());
                return forgotten.map_err(|error| failure(&error));
            }
            _ => is_stored,
        };
        if !wants {
            return Ok(());
        }
        let text = serde_json::to_vec(run).map_err(|error| failure(&error))?;
        let path = self.path(run.id());
        // A file of some kilobytes; the run waits for it, and so it may.
        let written = tokio::task::spawn_blocking(move || private_file::write(&path, &text)).await;
        match written {
            Ok(Ok(())) => {
                self.lock().insert(run.id().to_owned());
                Ok(())
            }
            Ok(Err(error)) => Err(failure(&error)),
            Err(error) => Err(failure(&error)),
        }
    }
}

fn failure(error: &dyn std::error::Error) -> CheckpointError {
    CheckpointError {
        message: error.to_string(),
        source: None,
    }
}

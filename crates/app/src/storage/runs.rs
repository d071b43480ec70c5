//! Files of runs that wait for an approval decision and belong to no session.

use std::{
    collections::HashMap,
    fs::{self, File, TryLockError},
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use switchboard_orchestration::{
    Run,
    persistence::checkpoint::{Checkpoint, CheckpointError, Checkpoints},
};

use super::private_file;
use crate::config::environment::Environment;

/// Stored runs, one file each, in the user's data folder.
///
/// A run is stored when it waits for an approval decision, and at every later checkpoint. The file
/// is deleted when the run ends.
#[derive(Debug)]
pub(crate) struct StoredRuns {
    folder: PathBuf,
    /// The lock files of runs that this process executes.
    taken: Mutex<HashMap<String, File>>,
}

/// A stored run cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredRunError {
    /// The platform has no data folder.
    #[error("this platform has no folder for the data of users, so no run can be stored")]
    NoPlace,
    #[error("unknown run `{id}`. See `switchboard runs`")]
    NotFound { id: String },
    /// Another process executes the run.
    #[error("another process executes run `{id}`")]
    Taken { id: String },
    /// The prefix matches several runs.
    #[error("several stored runs begin with `{id}`: write more of the id")]
    Ambiguous { id: String },
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file is not a run of this version.
    #[error(
        "{}: not a run of this version: {source}. Discard it with `switchboard runs forget`, or \
         resume it with a program of its version",
        path.display()
    )]
    Unreadable {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
}

impl StoredRuns {
    /// Returns the store of the user.
    pub(crate) fn of(environment: &Environment) -> Result<Self, StoredRunError> {
        let data = environment.data_dir.as_ref();
        let folder = data.ok_or(StoredRunError::NoPlace)?.join("runs");
        Ok(Self {
            folder,
            taken: Mutex::default(),
        })
    }

    /// Returns the ids of the stored runs, oldest first.
    pub(crate) fn ids(&self) -> Result<Vec<String>, StoredRunError> {
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

    /// Returns the only id with this prefix.
    pub(crate) fn find(&self, id: &str) -> Result<String, StoredRunError> {
        let ids = self.ids()?;
        let mut fitting = ids
            .into_iter()
            .filter(|known| !id.is_empty() && known.starts_with(id));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => Err(StoredRunError::Ambiguous { id: id.to_owned() }),
            (None, _) => Err(StoredRunError::NotFound { id: id.to_owned() }),
        }
    }

    /// Reads a run.
    pub(crate) fn load(&self, id: &str) -> Result<Run, StoredRunError> {
        let path = self.path(id);
        let text = private_file::read(&path)
            .map_err(|source| self.failed(path.clone(), source))?
            .ok_or_else(|| StoredRunError::NotFound { id: id.to_owned() })?;
        serde_json::from_str(&text).map_err(|source| StoredRunError::Unreadable { path, source })
    }

    /// Reads a run and locks it, so that no other process executes it.
    pub(crate) fn take(&self, id: &str) -> Result<Run, StoredRunError> {
        self.lock(id)?;
        self.load(id)
    }

    /// Deletes a run. Returns whether it existed.
    pub(crate) fn forget(&self, id: &str) -> Result<bool, StoredRunError> {
        self.lock(id)?;
        let path = self.path(id);
        let was_there = match fs::remove_file(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => return Err(self.failed(path, source)),
        };
        let path = self.lock_path(id);
        // The file is removed while it is locked, so that the next process opens another file.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.failed(path, error));
            }
            _ => {}
        }
        self.taken().remove(id);
        Ok(was_there)
    }

    fn lock(&self, id: &str) -> Result<(), StoredRunError> {
        let mut taken = self.taken();
        if taken.contains_key(id) {
            return Ok(());
        }
        let path = self.lock_path(id);
        let file = private_file::open_or_create(&path)
            .map_err(|source| self.failed(path.clone(), source))?;
        match file.try_lock() {
            Ok(()) => {
                taken.insert(id.to_owned(), file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(StoredRunError::Taken { id: id.to_owned() }),
            Err(TryLockError::Error(source)) => Err(self.failed(path, source)),
        }
    }

    fn lock_path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.lock"))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    #[allow(clippy::unused_self)] // The error belongs to this store.
    fn failed(&self, path: PathBuf, source: io::Error) -> StoredRunError {
        StoredRunError::File { path, source }
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, HashMap<String, File>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Checkpoints for StoredRuns {
    async fn reached(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        let is_stored = self.taken().contains_key(run.id());
        let wants = match point {
            Checkpoint::Waiting => true,
            // A run that never waited is not stored.
            Checkpoint::Over if is_stored => {
                let pin_error = self.forget(run.id()).map(|_| ());
                return pin_error.map_err(|error| failure(&error));
            }
            _ => is_stored,
        };
        if !wants {
            return Ok(());
        }
        self.lock(run.id()).map_err(|error| failure(&error))?;
        let text = serde_json::to_vec(run).map_err(|error| failure(&error))?;
        let path = self.path(run.id());
        let written = tokio::task::spawn_blocking(move || private_file::write(&path, &text)).await;
        match written {
            Ok(Ok(())) => Ok(()),
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

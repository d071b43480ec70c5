//! Runs that wait for somebody: stored on disk until another process goes on with them.

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

use crate::{environment::Environment, private_file};

/// Stored runs, one file each, in the user's data folder.
///
/// A run is stored when it comes to a question about a tool call, from then on at every point at which
/// something could be lost or done twice, and no longer when it is over.
#[derive(Debug)]
pub struct StoredRuns {
    folder: PathBuf,
    /// The runs that this process goes on with, each with the lock that keeps others from doing so.
    taken: Mutex<HashMap<String, File>>,
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
    /// Another process goes on with it, or still asks about it.
    #[error("another process is at work on run `{id}`")]
    Taken {
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
    #[error(
        "{}: is no run that this version can read: {source}; `switchboard runs forget` discards it",
        path.display()
    )]
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
            taken: Mutex::default(),
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

    /// The id of the one run whose id begins so.
    pub fn find(&self, id: &str) -> Result<String, StoredRunError> {
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

    /// The run of this id.
    pub fn load(&self, id: &str) -> Result<Run, StoredRunError> {
        let path = self.path(id);
        let text = private_file::read(&path)
            .map_err(|source| self.failed(path.clone(), source))?
            .ok_or_else(|| StoredRunError::NotFound { id: id.to_owned() })?;
        serde_json::from_str(&text).map_err(|source| StoredRunError::Unreadable { path, source })
    }

    /// The run of this id, to go on with it. No other process can, until this one ends or the run is over:
    /// nothing may run twice.
    pub fn take(&self, id: &str) -> Result<Run, StoredRunError> {
        self.lock(id)?;
        self.load(id)
    }

    /// Forgets a run. Whether there was one.
    pub fn forget(&self, id: &str) -> Result<bool, StoredRunError> {
        self.lock(id)?;
        let path = self.path(id);
        let was_there = match fs::remove_file(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => return Err(self.failed(path, source)),
        };
        let path = self.lock_path(id);
        // Removed while it is held: whoever opens it next opens another file.
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
        self.lock(run.id()).map_err(|error| failure(&error))?;
        let text = serde_json::to_vec(run).map_err(|error| failure(&error))?;
        let path = self.path(run.id());
        // A file of some kilobytes; the run waits for it, and so it may.
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

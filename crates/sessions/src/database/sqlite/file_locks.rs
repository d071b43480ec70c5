//! Instance locks as locked files. The operating system releases them when the process ends.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::PathBuf,
    sync::Mutex,
};

use async_trait::async_trait;
use uuid::Uuid;

use super::files::{create_private_folder, set_private_mode};
use crate::database::{
    Connection, Database, DatabaseError, FailureKind, InstanceClaim, InstanceLocks, lock_mutex,
    values,
};

pub(super) struct FileLocks {
    folder: PathBuf,
    own: Mutex<Option<(String, File)>>,
}

impl FileLocks {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            own: Mutex::new(None),
        }
    }

    fn create_lock_file(&self, id: &str) -> io::Result<File> {
        create_private_folder(&self.folder)?;
        // The file is renamed only after it is locked, so that no other process finds it unlocked.
        let unnamed = self.folder.join(format!(".{id}"));
        let file =
            set_private_mode(OpenOptions::new().write(true).create_new(true)).open(&unnamed)?;
        let locked = file.try_lock().map_err(io::Error::from);
        locked
            .and_then(|()| fs::rename(&unnamed, self.lock_path(id)))
            .inspect_err(|_| {
                // An error is ignored, because no process uses a file with this unique name.
                let _ = fs::remove_file(&unnamed);
            })?;
        Ok(file)
    }

    fn is_unlocked(&self, id: &str) -> io::Result<bool> {
        if self.own_id().as_deref() == Some(id) {
            return Ok(false);
        }
        let file = match File::open(self.lock_path(id)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        // The check tries a shared lock. With exclusive locks, two processes that check at the same
        // time would block each other, and a dead instance would look alive.
        match file.try_lock_shared() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_path(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }
}

#[async_trait]
impl InstanceLocks for FileLocks {
    async fn acquire_new_lock(&self) -> Result<InstanceClaim, DatabaseError> {
        let id = Uuid::now_v7().to_string();
        let file = self.create_lock_file(&id).map_err(database_error)?;
        let before = lock_mutex(&self.own).replace((id.clone(), file));
        if let Some((before, _)) = before {
            self.remove_stale_lock(&before);
        }
        Ok(InstanceClaim { id, lock_key: 0 })
    }

    fn own_id(&self) -> Option<String> {
        lock_mutex(&self.own).as_ref().map(|(id, _)| id.clone())
    }

    async fn is_dead(&self, _database: &dyn Database, id: &str) -> Result<bool, DatabaseError> {
        self.is_unlocked(id).map_err(database_error)
    }

    async fn remove_dead_instance(
        &self,
        connection: &mut dyn Connection,
        id: &str,
    ) -> Result<bool, DatabaseError> {
        const REMOVE: &str = "DELETE FROM instances WHERE id = $1";
        // A dead instance cannot become alive again before its row is deleted, because a lock file
        // is locked only when it is created.
        let is_dead = self.is_unlocked(id).map_err(database_error)?;
        if is_dead {
            connection.execute(REMOVE, values![id]).await?;
        }
        Ok(is_dead)
    }

    fn remove_stale_lock(&self, id: &str) {
        // An error is ignored, because opening a store removes the files of dead instances too.
        let _ = fs::remove_file(self.lock_path(id));
    }

    fn remove_stale_locks(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let id = name.to_str().filter(|name| !name.starts_with('.'));
            if let Some(id) = id
                && matches!(self.is_unlocked(id), Ok(true))
            {
                self.remove_stale_lock(id);
            }
        }
    }

    fn release_lock(&self) {
        *lock_mutex(&self.own) = None;
    }
}

fn database_error(error: io::Error) -> DatabaseError {
    DatabaseError::new(FailureKind::ConnectionLost, error)
}

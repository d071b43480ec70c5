//! Instances of SQLite: a file each, locked with a lock of the operating system, which ends with the process.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;

use super::Claim;
use crate::{
    database::{Connection, values},
    place::{make_folder, private},
};

pub(crate) struct Locks {
    folder: PathBuf,
    mine: Mutex<Option<(String, File)>>,
}

impl Locks {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            mine: Mutex::new(None),
        }
    }

    pub(crate) fn claim(&self) -> io::Result<Claim> {
        make_folder(&self.folder)?;
        let id = Uuid::now_v7().to_string();
        // Locked before it has its name: there is no moment in which others could take it for dead.
        let unnamed = self.folder.join(format!(".{id}"));
        let file = private(OpenOptions::new().write(true).create_new(true)).open(&unnamed)?;
        let locked = file.try_lock().map_err(io::Error::from);
        locked
            .and_then(|()| fs::rename(&unnamed, self.path(&id)))
            .inspect_err(|_| {
                // The name is ours alone; what cannot be removed does no harm.
                let _ = fs::remove_file(&unnamed);
            })?;
        let before = self.mine().replace((id.clone(), file));
        if let Some((before, _)) = before {
            self.sweep(&before);
        }
        Ok(Claim { id, lock_key: 0 })
    }

    pub(crate) fn me(&self) -> Option<String> {
        self.mine().as_ref().map(|(id, _)| id.clone())
    }

    pub(crate) fn is_dead(&self, id: &str) -> io::Result<bool> {
        if self.mine().as_ref().is_some_and(|(mine, _)| mine == id) {
            return Ok(false);
        }
        let file = match File::open(self.path(id)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        // Shared: two that look at once do not take each other for the owner.
        match file.try_lock_shared() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(crate) fn sweep(&self, id: &str) {
        // A file that stays is found dead again, and does no harm.
        let _ = fs::remove_file(self.path(id));
    }

    /// Removes what all that died have left behind. A file has its name only while or after it is locked.
    pub(crate) fn sweep_all(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            if matches!(self.is_dead(id), Ok(true)) {
                self.sweep(id);
            }
        }
    }

    pub(crate) fn release(&self) {
        *self.mine() = None;
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    fn mine(&self) -> MutexGuard<'_, Option<(String, File)>> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn forget(connection: &mut Connection, id: &str) -> Result<(), sqlx::Error> {
    let forget = "DELETE FROM instances WHERE id = $1";
    connection.execute(forget, values![id]).await.map(|_| ())
}

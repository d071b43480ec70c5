//! Token store that saves each login in a file that only its user can read.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use crate::auth::{
    login::pkce::random_token,
    store::{
        GrantKey, StoreError, StoreLock, StoredGrant, TokenStore, parse_grant, serialize_grant,
        sort_grants_newest_first,
    },
};

/// Time limit to wait for the lock of a stored login. A process holds the lock during token
/// requests, which time out earlier.
const LOCK_TIMEOUT: Duration = Duration::from_mins(1);
/// Interval of attempts to lock a file. A blocking lock could not time out.
const LOCK_INTERVAL: Duration = Duration::from_millis(25);

/// Token store in a folder with one JSON file for each login. Only the user can read the folder
/// (mode 0700) and its files (mode 0600). Several processes may share the folder.
#[derive(Debug)]
pub struct FileStore {
    folder: PathBuf,
}

impl FileStore {
    /// Creates a store in a folder. The first use creates the folder or restricts its mode to 0700,
    /// so the folder must not contain other files.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the path of the file for a stored login. The file name is a hash of the key, which
    /// hides the account.
    fn grant_file_path(&self, key: &GrantKey, ending: &str) -> PathBuf {
        let mut hash = Sha256::new();
        for part in [&key.issuer, &key.resource, &key.principal] {
            // The length prefix distinguishes the key parts `ab` + `c` from `a` + `bc`.
            hash.update(part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        let name = URL_SAFE_NO_PAD.encode(&hash.finalize()[..16]);
        self.folder.join(format!("{name}.{ending}"))
    }
}

#[async_trait]
impl TokenStore for FileStore {
    async fn find_grants(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<Vec<(GrantKey, StoredGrant)>, StoreError> {
        let folder = self.folder.clone();
        let mut found = run_blocking(&self.folder, move || read_grants(&folder)).await?;
        found.retain(|(key, grant)| key.principal == principal && grant.server == server);
        sort_grants_newest_first(&mut found);
        Ok(found)
    }

    async fn save_grant(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError> {
        let (folder, path) = (self.folder.clone(), self.grant_file_path(key, "json"));
        let record = serialize_grant(key, grant);
        let replaced = path.clone();
        run_blocking(&path, move || {
            create_private_folder(&folder)?;
            replace_file(&folder, &replaced, record.expose_secret())
        })
        .await
    }

    async fn remove_grant(&self, key: &GrantKey) -> Result<bool, StoreError> {
        let path = self.grant_file_path(key, "json");
        let removed = path.clone();
        run_blocking(&path, move || match fs::remove_file(removed) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        })
        .await
    }

    async fn lock_grant(&self, key: &GrantKey) -> Result<StoreLock, StoreError> {
        let (folder, path) = (self.folder.clone(), self.grant_file_path(key, "lock"));
        let opened = path.clone();
        let file = run_blocking(&path, move || {
            create_private_folder(&folder)?;
            set_private_mode(OpenOptions::new().write(true).create(true)).open(opened)
        })
        .await?;
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                // Releasing the lock does not remove the lock file. Otherwise two processes could
                // lock different files with the same name.
                Ok(()) => return Ok(Box::new(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    sleep(LOCK_INTERVAL).await;
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::Busy { path }),
                Err(TryLockError::Error(source)) => return Err(StoreError::File { path, source }),
            }
        }
    }
}

async fn run_blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::Error::other("the operation was interrupted")))
        .map_err(|source| StoreError::File {
            path: path.to_owned(),
            source,
        })
}

fn read_grants(folder: &Path) -> io::Result<Vec<(GrantKey, StoredGrant)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // Another process removed the file after this function listed the folder.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let Some(record) = parse_grant(&text) else {
            tracing::warn!(
                path = %path.display(),
                "ignored an invalid token file; commit f008d49 is the last one that reads the \
                 earlier format"
            );
            continue;
        };
        found.push(record);
    }
    Ok(found)
}

/// Replaces the content of a file atomically: writes a temporary file and renames it.
pub(crate) fn replace_file(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let temporary = folder.join(format!("{}.new", random_token()));
    let written = write_new_file(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new_file(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File =
        set_private_mode(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(unix)]
pub(crate) fn set_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600)
}

#[cfg(not(unix))]
pub(crate) fn set_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    // An existing folder may be readable by other users, so its mode is restricted.
    if fs::metadata(folder)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

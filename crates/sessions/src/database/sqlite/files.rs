//! Creation of files and folders that only their owner can read, and the lock folder's path.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::error::StoreOpenError;

/// Creates a missing file and its missing folders with access for the current user only.
///
/// SQLite uses the mode of the file for its write-ahead log and shared-memory index too.
pub(crate) fn create_private_file(path: &Path) -> Result<(), StoreOpenError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreOpenError::File { path, source }
    };
    let folder = path.parent();
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_folder(folder).map_err(failed(folder))?;
    }
    match set_private_mode(OpenOptions::new().write(true).create_new(true)).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Sets the mode of a new file to 0600 on Unix.
pub(super) fn set_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Returns the path of the folder for lock files, which is next to the database file.
pub(super) fn lock_folder_path(path: &Path) -> PathBuf {
    // Symbolic links are resolved, because all paths to one database file must lead to the same
    // lock folder.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.into_os_string();
    name.push("-locks");
    name.into()
}

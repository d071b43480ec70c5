//! Files and folders that only their owner can read.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::error::OpenError;

/// Creates a file and its folder for the current user alone, where they are missing.
///
/// SQLite gives the mode of the file to its log and its index.
pub(crate) fn create_private_file(path: &Path) -> Result<(), OpenError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::File { path, source }
    };
    let folder = path.parent();
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_folder(folder).map_err(failed(folder))?;
    }
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
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

/// Sets the mode of a new file.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Returns the folder beside a database that holds the locks of its instances.
pub(super) fn lock_folder(path: &Path) -> PathBuf {
    // Different paths of one file must give one folder.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.into_os_string();
    name.push("-locks");
    name.into()
}

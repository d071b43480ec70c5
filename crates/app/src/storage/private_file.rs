//! Files with private access that are replaced atomically.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use uuid::Uuid;

/// Replaces a file atomically: a reader sees the old or the new content. Creates the folder if
/// necessary. The file has mode 0600, a new folder 0700.
pub(crate) fn write_atomically(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folder(folder)?;
    let temporary = folder.join(format!(".{}", Uuid::now_v7()));
    let created = owner_only_options()
        .write(true)
        .create_new(true)
        .open(&temporary);
    let written = created
        .and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // A temporary file that cannot be removed is harmless.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Creates a folder that only its owner can access.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns options that create files with mode 0600 (owner only).
pub(crate) fn owner_only_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file for reading and writing. A new file has mode 0600.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    create_private_folder(path.parent().unwrap_or(Path::new(".")))?;
    let mut options = owner_only_options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// Locks a file until the returned value is dropped. Other processes hold the lock for milliseconds
/// only.
///
/// The lock is on a separate file, because the file itself is replaced. The lock file is never
/// removed, because then two processes could lock two different files with one name.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    let file = open_or_create(&path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Reads a file. Returns `None` if the file does not exist.
pub(crate) fn read_if_exists(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state.json");
        assert_eq!(read_if_exists(&path).unwrap(), None);
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(read_if_exists(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

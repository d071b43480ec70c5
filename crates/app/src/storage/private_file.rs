//! Files that only their owner can read, and that are replaced atomically.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use uuid::Uuid;

/// Replaces the content of a file atomically: a reader sees the old or the new content. Creates the
/// folder if necessary. The file has mode 0600, a new folder 0700.
pub(crate) fn write_atomically(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folder(folder)?;
    let temporary = folder.join(format!(".{}", Uuid::now_v7()));
    let mut options = owner_only_open_options();
    let created = options.write(true).create_new(true).open(&temporary);
    let written = created
        .and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // An error is ignored: the temporary file then remains, which is harmless.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Creates a folder that only its owner can access, unless it exists.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns options that create files with mode 0600 (owner only).
pub(crate) fn owner_only_open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file for reading and writing, and creates it with mode 0600 if it does not exist.
pub(crate) fn open_or_create_file(path: &Path) -> io::Result<File> {
    create_private_folder(path.parent().unwrap_or(Path::new(".")))?;
    let mut options = owner_only_open_options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// Time limit for locking a file. Usually, other processes hold the lock only for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Locks a file until the returned value is dropped.
///
/// A separate file is locked, because the file itself is replaced. The separate file is never
/// removed, because then two processes could each lock a different file of this name.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    lock_file_with_timeout(path, LOCK_TIMEOUT)
}

fn lock_file_with_timeout(path: &Path, timeout: Duration) -> io::Result<File> {
    let file = open_or_create_file(&path.with_extension("lock"))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // `File::lock` cannot time out, so another thread waits for the lock. After the time-out, that
    // thread releases the lock as soon as it gets it.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(file.lock().map(|()| file));
    });
    receiver.recv_timeout(timeout).unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another process has held its lock for too long",
        ))
    })
}

/// Reads the text of a file. Returns `None` if the file does not exist.
pub(crate) fn read_file_if_exists(path: &Path) -> io::Result<Option<String>> {
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
    fn a_lock_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state.json");
        let first = lock_file(&path).unwrap();
        let refused = lock_file_with_timeout(&path, Duration::from_millis(1)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        let second = {
            let path = path.clone();
            std::thread::spawn(move || lock_file_with_timeout(&path, Duration::MAX))
        };
        drop(first);
        second.join().unwrap().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state.json");
        assert_eq!(read_file_if_exists(&path).unwrap(), None);
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(read_file_if_exists(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

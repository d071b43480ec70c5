//! Files with private access that are replaced atomically.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use uuid::Uuid;

/// Writes a file with mode 0600, in a folder with mode 0700, which is created if necessary. A
/// reader sees the old or the new content, never a part.
pub(crate) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let temporary = folder.join(format!(".{}", Uuid::now_v7()));
    let created = options().write(true).create_new(true).open(&temporary);
    let written = created
        .and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // A temporary file that cannot be removed does no harm.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Creates a folder with private access.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns options that create files with mode 0600.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens or creates a file with private access.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    make_folder(path.parent().unwrap_or(Path::new(".")))?;
    let mut options = options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// Time limit for the lock of a file. Writing takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Locks a file until the returned value is dropped.
///
/// The lock is on a separate file, because the file itself is replaced. The lock file stays: after
/// its removal two processes could hold two locks of one name.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    lock_within(path, LOCK_TIMEOUT)
}

fn lock_within(path: &Path, timeout: Duration) -> io::Result<File> {
    let file = open_or_create(&path.with_extension("lock"))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The kernel's wait has no time limit. After a time-out the thread releases the lock as soon as
    // it gets it.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(file.lock().map(|()| file));
    });
    receiver.recv_timeout(timeout).unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another process has been writing it for too long",
        ))
    })
}

/// Reads a file. `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
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
        let first = lock(&path).unwrap();
        let refused = lock_within(&path, Duration::from_millis(1)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        let second = {
            let path = path.clone();
            std::thread::spawn(move || lock_within(&path, Duration::MAX))
        };
        drop(first);
        second.join().unwrap().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state.json");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

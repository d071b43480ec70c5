//! Files of the user's own: nobody else reads them, and they are replaced as a whole.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use uuid::Uuid;

/// Writes a file so that nobody else can read it (mode 0600, in a folder of mode 0700 that is made
/// where it is missing). Whoever reads it sees the old text or the new one, never a part.
pub(crate) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let beside = folder.join(format!(".{}", Uuid::now_v7()));
    let written = create(&beside)
        .and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The name is ours alone; what cannot be removed does no harm.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Makes a folder that nobody else can look into, if it is not there.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A file that nobody else can open, made where it is missing; to be locked.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    make_folder(path.parent().unwrap_or(Path::new(".")))?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// How long somebody else may hold a file's lock: writing it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Held by whoever reads a file to write it again, until it is dropped.
///
/// The lock is on a file beside it, as the file itself is replaced. That one stays: if it were removed, two
/// could hold two locks of one name.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    lock_within(path, PATIENCE)
}

fn lock_within(path: &Path, patience: Duration) -> io::Result<File> {
    let file = open_or_create(&path.with_extension("lock"))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Only the kernel can wait for it, and it knows no end. If this gives up, the thread lets go of the
    // lock as soon as it has it.
    let (held, is_held) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = held.send(file.lock().map(|()| file));
    });
    is_held.recv_timeout(patience).unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another process has been writing it for too long",
        ))
    })
}

/// What stands in a file; `None` if there is none.
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
    fn a_lock_is_waited_for_and_not_for_ever() {
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

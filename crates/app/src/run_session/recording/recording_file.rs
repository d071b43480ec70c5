//! Writes a recording to a file, which other users cannot read.

use std::{
    fs::{File, TryLockError},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write},
    path::Path,
};

use serde::Deserialize;

use crate::{storage::private_file, terminal::print_warning};

/// Maximum size in bytes of the first line, which shows that a file is a recording.
const MAX_HEADER_BYTES: u64 = 64 << 10;

/// Maximum size in bytes of the new lines that are kept in memory until the first model response.
/// If they are larger, they are written immediately.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The file to which a recording is written. An older recording in the file may have cost money,
/// and the new run may fail early. Therefore the older recording is replaced only when the first
/// model response arrives.
#[derive(Debug)]
pub(crate) struct RecordingFile {
    file: File,
    /// File name as the user typed it, for use in messages.
    name: String,
    /// Lines of the new recording, which are kept in memory until the first model response. `None`
    /// if lines are written immediately.
    held: Option<Vec<u8>>,
    /// `true` after the first successful write. From then on, write errors print a warning.
    has_begun: bool,
}

/// Fields by which lines of a recording are recognized. The first line has the field `format`, and
/// all other lines have the field `type`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordingLine {
    format: String,
    #[serde(rename = "type")]
    kind: String,
}

impl RecordingFile {
    /// Opens and locks a file for a recording. Creates the file if necessary. Returns an error if
    /// the file has other content than a recording, or if another process records to it.
    pub(crate) fn open_recording_file(path: &Path, name: String) -> io::Result<Self> {
        let mut options = private_file::owner_only_open_options();
        options.write(true).create(true).truncate(false);
        // A pipe or device cannot contain an older recording and may not be readable.
        let is_special = std::fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir());
        if is_special {
            let file = options.create(false).open(path)?;
            return Ok(Self::new(file, name, None));
        }
        let mut file = options.read(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other(
                    "another run is recording to it: wait until it ends, or choose another file",
                ));
            }
            // The file system does not support locks, so the file is used without a lock.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let held = if file.metadata()?.len() == 0 {
            None
        } else if is_recording_file(&file) {
            file.rewind()?;
            Some(Vec::new())
        } else {
            return Err(io::Error::other(
                "the file exists and is not a recording: choose another file, or remove it",
            ));
        };
        make_file_private(&file)?;
        Ok(Self::new(file, name, held))
    }

    fn new(file: File, name: String, held: Option<Vec<u8>>) -> Self {
        Self {
            file,
            name,
            held,
            has_begun: false,
        }
    }

    /// Writes a line to the file. If the file contains an older recording, lines wait in `held`
    /// until the first model response. Then they replace the older recording.
    fn write_line(&mut self, line: &[u8]) -> io::Result<usize> {
        let Some(held) = &mut self.held else {
            return self.file.write(line);
        };
        held.extend(line);
        if parse_recording_line(line).kind == "model_call" || held.len() > MAX_HELD_BYTES {
            let all = std::mem::take(held);
            self.held = None;
            self.file.set_len(0)?;
            self.file.write_all(&all)?;
        }
        Ok(line.len())
    }
}

fn is_recording_file(file: &File) -> bool {
    let mut line = Vec::new();
    let read = BufReader::new(file.take(MAX_HEADER_BYTES)).read_until(b'\n', &mut line);
    read.is_ok() && parse_recording_line(&line).format == "switchboard-recording"
}

fn parse_recording_line(line: &[u8]) -> RecordingLine {
    serde_json::from_slice(line).unwrap_or_default()
}

/// Removes the permissions of other users from a file that already existed.
#[cfg(unix)]
fn make_file_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = file.metadata()?.permissions();
    let private = permissions.mode() & !0o077;
    if permissions.mode() == private {
        return Ok(());
    }
    permissions.set_mode(private);
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn make_file_private(_: &File) -> io::Result<()> {
    Ok(())
}

impl Write for RecordingFile {
    /// Writes a line of the recording. Prints a warning for an error, because the run continues.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.write_line(bytes);
        match &written {
            Ok(_) => self.has_begun = true,
            Err(error) if self.has_begun && error.kind() != io::ErrorKind::Interrupted => {
                print_warning(&format!("recording to {} stopped: {error}", self.name));
            }
            Err(_) => {}
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str =
        "{\"format\":\"switchboard-recording\",\"version\":1,\"program\":\"old\"}\n{\"old\":1}\n";

    fn open(path: &Path) -> io::Result<RecordingFile> {
        RecordingFile::open_recording_file(path, "run.jsonl".to_owned())
    }

    #[test]
    fn withheld_events_have_a_maximum_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        std::fs::write(&path, OLD).unwrap();
        let mut file = open(&path).unwrap();
        let line = vec![b'x'; 1 << 20];
        for _ in 0..=MAX_HELD_BYTES >> 20 {
            assert_eq!(std::fs::read_to_string(&path).unwrap(), OLD);
            file.write_all(&line).unwrap();
        }
        let written = std::fs::metadata(&path).unwrap().len();
        assert_eq!(written, (MAX_HELD_BYTES + line.len()) as u64);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_everybody_could_read_is_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        std::fs::write(&path, OLD).unwrap();
        let readable = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, readable).unwrap();
        open(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

//! The root folder of the workspace, through which the tools access all files.

pub(super) mod folder;
pub(super) mod folder_walk;
pub(super) mod path;

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    text::suggest_name,
    tool::{BundledTool, ToolError, ToolResult},
};
use folder::{Folder, Kind, Meta, Stamp};
use path::{Access, NameRules, RelativePath};

/// The root folder of the workspace with its access rules and limits.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    folder: Folder,
    pub(super) rules: NameRules,
    pub(super) max_file_bytes: u64,
    /// Lock that a call holds while it checks and saves a file.
    saving: Mutex<()>,
    /// Number of the next temporary file.
    temporary: AtomicU64,
}

/// The content and metadata of a file that was read.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub(super) bytes: Vec<u8>,
    pub(super) stamp: Stamp,
    pub(super) protected: bool,
}

/// An error of a file operation. Its text contains only paths below the root folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// The path does not exist. `suggestion` is a sentence with a similar path in the same folder,
    /// or empty.
    #[error("{path} does not exist.{suggestion}")]
    Missing {
        path: RelativePath,
        suggestion: String,
    },
    /// The path or one of its folders is a link.
    #[error("{0} is a link, and links are not followed.")]
    Link(RelativePath),
    /// The file operation failed for another reason.
    #[error("{0}")]
    Other(String),
}

impl Root {
    /// Opens the root folder. On Unix, the handle of the folder stays valid after the folder is
    /// renamed.
    pub(super) fn open(path: &Path, rules: NameRules, max_file_bytes: u64) -> io::Result<Self> {
        // On Windows, `canonicalize` returns a form (`\\?\`) that some programs do not accept as
        // their working directory.
        let path = if cfg!(windows) {
            std::path::absolute(path)?
        } else {
            std::fs::canonicalize(path)?
        };
        let folder = Folder::open(&path)?;
        Ok(Self {
            path,
            folder,
            rules,
            max_file_bytes,
            saving: Mutex::new(()),
            temporary: AtomicU64::new(0),
        })
    }

    /// Runs blocking file operations on a separate thread.
    pub(super) async fn run_blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let root = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&root)).await;
        done.unwrap_or_else(|error| {
            tracing::error!(%error, "a tool of the workspace panicked");
            Err("The tool failed.".into())
        })
    }

    /// Returns the path of the root folder as the working directory of commands. Returns `None` if
    /// a different folder, or no folder, is at this path since the root folder was opened.
    pub(super) fn working_directory(&self) -> Option<&Path> {
        let now = Folder::open(&self.path).and_then(|folder| folder.read_stamp());
        let opened = self.folder.read_stamp();
        let same =
            matches!((now, opened), (Ok(now), Ok(opened)) if now.identity == opened.identity);
        same.then_some(&self.path)
    }

    /// Parses a path. Returns an error for the model if the path is invalid, or if the access rules
    /// do not allow `access` to this path.
    pub(super) fn parse_path(&self, text: &str, access: Access) -> Result<RelativePath, FileError> {
        let path = RelativePath::parse(text, &self.path).map_err(FileError::Other)?;
        let checked = self.rules.check_access(&path, access);
        checked.map_err(FileError::Other)?;
        Ok(path)
    }

    /// Acquires the lock for saving, so that no other call of this server changes a file between
    /// the check of its content and the write.
    pub(super) fn lock_for_save(&self) -> MutexGuard<'_, ()> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a whole file. Fails for files larger than the configured maximum size.
    pub(super) fn read_file(&self, path: &RelativePath) -> Result<ReadFile, FileError> {
        self.read_file_with_limit(path, self.max_file_bytes)
    }

    /// Reads a whole file. Fails for files larger than `limit` bytes.
    pub(super) fn read_file_with_limit(
        &self,
        path: &RelativePath,
        limit: u64,
    ) -> Result<ReadFile, FileError> {
        let (file, meta) = self.open_file(path)?;
        if meta.size > limit {
            return Err(too_large_error(path, meta.size, limit));
        }
        let bytes = read_first_bytes(file, limit.saturating_add(1))
            .map_err(|it| to_file_error(path, &it))?;
        match u64::try_from(bytes.len()) {
            Ok(size) if size > limit => Err(too_large_error(path, size, limit)),
            _ => Ok(ReadFile {
                bytes,
                stamp: meta.stamp,
                protected: meta.protected,
            }),
        }
    }

    /// Reads at most the first `bytes` bytes of a file.
    pub(super) fn read_head(&self, path: &RelativePath, bytes: u64) -> Result<Vec<u8>, FileError> {
        let (file, _) = self.open_file(path)?;
        read_first_bytes(file, bytes).map_err(|it| to_file_error(path, &it))
    }

    /// Reads at most the last `bytes` bytes of a file.
    pub(super) fn read_tail(&self, path: &RelativePath, bytes: u64) -> Result<Vec<u8>, FileError> {
        let (mut file, meta) = self.open_file(path)?;
        file.seek(SeekFrom::Start(meta.size.saturating_sub(bytes)))
            .and_then(|_| read_first_bytes(file, bytes))
            .map_err(|it| to_file_error(path, &it))
    }

    fn open_file(&self, path: &RelativePath) -> Result<(File, Meta), FileError> {
        let Some((folder, name)) = path.split() else {
            return Err(not_a_file_error(path));
        };
        let folder = self.open_folder(path, folder.len(), false)?;
        let meta = folder.entry_metadata(name);
        let meta = meta.map_err(|error| self.missing_path(&folder, path, &error))?;
        // The kind is checked before opening, because opening a device may have side effects.
        check_is_file(path, meta.kind)?;
        let opened = folder.open_file(name);
        let (file, meta) = opened.map_err(|error| to_file_error(path, &error))?;
        check_is_file(path, meta.kind)?;
        Ok((file, meta))
    }

    /// Returns the names and metadata of a folder's entries, sorted by name.
    pub(super) fn list_dir(&self, path: &RelativePath) -> Result<Vec<(String, Meta)>, FileError> {
        let folder = self.open_folder(path, path.names().len(), false)?;
        let names = folder.entry_names();
        let mut names = names.map_err(|error| to_file_error(path, &error))?;
        names.sort();
        // An entry is skipped if another process has removed it meanwhile.
        let entries = names
            .into_iter()
            .filter_map(|name| Some((folder.entry_metadata(&name).ok()?, name)));
        Ok(entries.map(|(meta, name)| (name, meta)).collect())
    }

    /// Returns the kind of the entry at a path without opening the entry. Returns `None` if the
    /// entry or one of its folders does not exist.
    pub(super) fn entry_kind(&self, path: &RelativePath) -> Result<Option<Kind>, FileError> {
        let Some((folder, name)) = path.split() else {
            return Ok(Some(Kind::Folder));
        };
        let folder = match self.open_folder(path, folder.len(), false) {
            Ok(folder) => folder,
            Err(FileError::Missing { .. }) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        match folder.entry_metadata(name) {
            Ok(meta) => Ok(Some(meta.kind)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(to_file_error(path, &error)),
        }
    }

    /// Creates a file and its missing folders. Fails if the path exists. Other processes never see
    /// a partial file.
    pub(super) fn create_file(&self, path: &RelativePath, bytes: &[u8]) -> Result<(), FileError> {
        let (parents, name) = self.check_write_allowed(path, bytes)?;
        let folder = self.open_folder(path, parents.len(), true)?;
        self.write_and_rename(&folder, path, bytes, None, |temporary| {
            folder.rename_new(temporary, name).map(|()| true)
        })
    }

    /// Replaces the content of a file and keeps its permissions. Fails if the file is
    /// write-protected, or has changed since its content was read as `read`. Other processes never
    /// see a partial file.
    pub(super) fn replace_file(
        &self,
        path: &RelativePath,
        bytes: &[u8],
        read: &ReadFile,
    ) -> Result<(), FileError> {
        let (parents, name) = self.check_write_allowed(path, bytes)?;
        if read.protected {
            return Err(FileError::Other(format!("{path} is write-protected.")));
        }
        let folder = self.open_folder(path, parents.len(), false)?;
        self.write_and_rename(&folder, path, bytes, Some(name), |temporary| {
            match folder.entry_metadata(name) {
                Ok(meta) if meta.kind == Kind::File && meta.stamp == read.stamp => {
                    folder.rename_replacing(temporary, name).map(|()| true)
                }
                _ => Ok(false),
            }
        })
    }

    fn check_write_allowed<'a>(
        &self,
        path: &'a RelativePath,
        bytes: &[u8],
    ) -> Result<(&'a [String], &'a str), FileError> {
        let checked = self.rules.check_access(path, Access::Write);
        checked.map_err(FileError::Other)?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > self.max_file_bytes {
            return Err(too_large_error(path, size, self.max_file_bytes));
        }
        path.split().ok_or_else(|| not_a_file_error(path))
    }

    /// Writes a temporary file and passes its name to `put`, which renames it to the target file.
    /// If `put` returns `false`, another process has changed the target file, and the result is an
    /// error. Copies the permissions of the file `like`, if one is given.
    fn write_and_rename(
        &self,
        folder: &Folder,
        path: &RelativePath,
        bytes: &[u8],
        like: Option<&str>,
        put: impl FnOnce(&str) -> io::Result<bool>,
    ) -> Result<(), FileError> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        // The name contains the process id and the time, because an earlier process with the same
        // id may have left a temporary file.
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = time.map_or(0, |time| time.as_micros());
        let temporary = format!(".switchboard-{}-{time:x}-{number}.tmp", std::process::id());
        let made = folder.make_file(&temporary);
        let mut file = made.map_err(|error| to_file_error(path, &error))?;
        let written = (|| {
            file.write_all(bytes)?;
            if let Some(like) = like {
                folder.copy_permissions(like, &file)?;
            }
            file.sync_all()?;
            drop(file);
            put(&temporary)
        })();
        let fault = match written {
            Ok(true) => return Ok(()),
            Ok(false) => FileError::file_changed_error(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                FileError::Other(format!("{path} already exists."))
            }
            Err(error) => to_file_error(path, &error),
        };
        let _ = folder.remove_file(&temporary);
        Err(fault)
    }

    /// Opens the folder at the first `names` names of `path`: `a/b` for the path `a/b/c` and 2
    /// names. With `create`, creates missing folders. Otherwise, a missing folder is an error.
    fn open_folder(
        &self,
        path: &RelativePath,
        names: usize,
        create: bool,
    ) -> Result<Folder, FileError> {
        let root = self.folder.try_clone();
        let mut folder = root.map_err(|error| to_file_error(path, &error))?;
        for (depth, name) in path.names().iter().take(names).enumerate() {
            let here = path.first_names(depth + 1);
            let mut opened = folder.open_subfolder(name);
            let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
            if create && opened.as_ref().is_err_and(is_missing) {
                match folder.make_folder(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(to_file_error(&here, &error));
                    }
                    _ => opened = folder.open_subfolder(name),
                }
            }
            folder = match opened {
                Ok(folder) => folder,
                Err(error) => return Err(self.not_a_folder(&folder, &here, &error)),
            };
        }
        Ok(folder)
    }

    /// Returns the error for a path that could not be opened as a folder, for example because the
    /// path does not exist, is a link or is a file. `error` is the error of opening. It is used
    /// only if the path is a folder.
    fn not_a_folder(&self, parent: &Folder, path: &RelativePath, error: &io::Error) -> FileError {
        match parent.entry_metadata(path.name()) {
            Err(error) => self.missing_path(parent, path, &error),
            Ok(meta) => match meta.kind {
                Kind::Link => FileError::Link(path.clone()),
                Kind::File | Kind::Special => FileError::Other(format!("{path} is not a folder.")),
                Kind::Folder => to_file_error(path, error),
            },
        }
    }

    fn missing_path(&self, parent: &Folder, path: &RelativePath, error: &io::Error) -> FileError {
        if error.kind() != io::ErrorKind::NotFound {
            return to_file_error(path, error);
        }
        let names = parent.entry_names().unwrap_or_default();
        let names = names.iter().filter(|name| !self.rules.is_secret(name));
        let folder = path.first_names(path.names().len().saturating_sub(1));
        let paths: Vec<String> = names.map(|name| folder.join(name).to_string()).collect();
        FileError::Missing {
            path: path.clone(),
            suggestion: suggest_name(&path.to_string(), paths.iter().map(String::as_str)),
        }
    }
}

/// Creates a tool that is marked as read-only and calls `work` on a blocking thread, because file
/// operations block.
pub(super) fn create_blocking_tool<I, O>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    root: &Arc<Root>,
    work: fn(&Root, &I) -> ToolResult<O>,
) -> BundledTool
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    O: Serialize + JsonSchema + Send + 'static,
{
    let call = move |root: Arc<Root>, input| async move {
        root.run_blocking(move |root| work(root, &input)).await
    };
    BundledTool::new(name, title, description, root.clone(), call)
}

impl FileError {
    /// Returns the error for a file that another process has changed.
    pub(super) fn file_changed_error(path: &RelativePath) -> Self {
        Self::Other(format!(
            "Another process changed {path}, so it was not saved. Load it again."
        ))
    }
}

impl From<FileError> for ToolError {
    fn from(fault: FileError) -> Self {
        Self::Refused(fault.to_string())
    }
}

fn check_is_file(path: &RelativePath, kind: Kind) -> Result<(), FileError> {
    match kind {
        Kind::File => Ok(()),
        Kind::Folder => Err(not_a_file_error(path)),
        Kind::Link => Err(FileError::Link(path.clone())),
        Kind::Special => Err(FileError::Other(format!(
            "{path} is neither a file nor a folder."
        ))),
    }
}

fn not_a_file_error(path: &RelativePath) -> FileError {
    FileError::Other(format!("{path} is a folder, not a file."))
}

fn too_large_error(path: &RelativePath, size: u64, limit: u64) -> FileError {
    FileError::Other(format!(
        "{path} is too large: {size} bytes, at most {limit} are allowed."
    ))
}

fn read_first_bytes(file: File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    file.take(bytes).read_to_end(&mut contents)?;
    Ok(contents)
}

fn to_file_error(path: &RelativePath, error: &io::Error) -> FileError {
    tracing::debug!(%path, %error, "a file operation failed");
    // Only the error kind is used, because the message may contain the absolute path.
    FileError::Other(format!("{path}: {}.", error.kind()))
}

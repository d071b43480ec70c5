//! File access by path, for systems without file access relative to a folder handle. Each name is
//! checked just before its use.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::{Kind, Meta, Stamp};

/// A folder that is identified by its path.
#[derive(Debug)]
pub(in crate::workspace) struct Folder(PathBuf);

impl Folder {
    /// Opens the root folder. Follows links, because the user configured the path.
    pub(in crate::workspace) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        fs::read_dir(&path)?;
        Ok(Self(path))
    }

    /// Returns a copy of this folder. On Unix, the function with this name duplicates the folder
    /// handle.
    #[allow(clippy::unnecessary_wraps, reason = "the same interface as on Unix")]
    pub(in crate::workspace) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.clone()))
    }

    /// Returns the identity and version of the folder.
    pub(in crate::workspace) fn read_stamp(&self) -> io::Result<Stamp> {
        Ok(to_metadata(&fs::symlink_metadata(&self.0)?).stamp)
    }

    /// Opens a subfolder of this folder. Fails if the name is a link.
    pub(in crate::workspace) fn open_subfolder(&self, name: &str) -> io::Result<Self> {
        match self.entry_metadata(name)?.kind {
            Kind::Folder => Ok(Self(self.0.join(name))),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(in crate::workspace) fn entry_metadata(&self, name: &str) -> io::Result<Meta> {
        Ok(to_metadata(&fs::symlink_metadata(self.0.join(name))?))
    }

    /// Opens a file of this folder for reading and returns its metadata. Fails if the entry is not
    /// a file.
    pub(in crate::workspace) fn open_file(&self, name: &str) -> io::Result<(File, Meta)> {
        if self.entry_metadata(name)?.kind != Kind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::open(self.0.join(name))?;
        let meta = to_metadata(&file.metadata()?);
        Ok((file, meta))
    }

    /// Returns the unsorted names of the folder's entries. Omits names that are not valid Unicode.
    pub(in crate::workspace) fn entry_names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub(in crate::workspace) fn make_folder(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    /// Creates a file for writing. Fails if an entry with this name exists.
    pub(in crate::workspace) fn make_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.open(self.0.join(name))
    }

    /// Copies the permissions of the file `name` to an open file.
    pub(in crate::workspace) fn copy_permissions(&self, name: &str, file: &File) -> io::Result<()> {
        file.set_permissions(fs::symlink_metadata(self.0.join(name))?.permissions())
    }

    /// Renames the entry `from` to `to` and replaces an existing entry. Does not follow links.
    pub(in crate::workspace) fn rename_replacing(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    /// Renames the entry `from` to `to`. Fails if `to` exists.
    pub(in crate::workspace) fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.0.join(from), self.0.join(to))?;
        self.remove_file(from)
    }

    pub(in crate::workspace) fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }
}

fn to_metadata(metadata: &Metadata) -> Meta {
    let file_type = metadata.file_type();
    let kind = if file_type.is_symlink() {
        Kind::Link
    } else if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Special
    };
    let size = metadata.len();
    let instant = |time: io::Result<std::time::SystemTime>| {
        let since = time.ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or_default())
    };
    let changed = instant(metadata.modified());
    Meta {
        kind,
        size,
        protected: metadata.permissions().readonly(),
        stamp: Stamp {
            // The creation time identifies the file, because the standard library returns no file
            // number on this system.
            identity: (instant(metadata.created()), 0),
            size,
            changed: (i64::try_from(changed).unwrap_or_default(), 0),
        },
    }
}

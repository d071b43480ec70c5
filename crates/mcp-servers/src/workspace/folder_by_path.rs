//! [`Folder`] where files cannot be opened relative to a folder: by its path, every name checked
//! just before it is used.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::{Kind, Meta, Stamp};

/// A folder that was there when it was opened.
#[derive(Debug)]
pub(in crate::workspace) struct Folder(PathBuf);

impl Folder {
    /// The folder at this path. Links in the path are followed: it comes from a person.
    pub(in crate::workspace) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        fs::read_dir(&path)?;
        Ok(Self(path))
    }

    /// The same folder once more.
    #[allow(clippy::unnecessary_wraps, reason = "the same interface as on Unix")]
    pub(in crate::workspace) fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.clone()))
    }

    /// Which folder this is.
    pub(in crate::workspace) fn stamp(&self) -> io::Result<Stamp> {
        Ok(meta(&fs::symlink_metadata(&self.0)?).stamp)
    }

    /// A folder in it.
    pub(in crate::workspace) fn folder(&self, name: &str) -> io::Result<Self> {
        match self.meta(name)?.kind {
            Kind::Folder => Ok(Self(self.0.join(name))),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(in crate::workspace) fn meta(&self, name: &str) -> io::Result<Meta> {
        Ok(meta(&fs::symlink_metadata(self.0.join(name))?))
    }

    /// A file in it, for reading, and what it is.
    pub(in crate::workspace) fn file(&self, name: &str) -> io::Result<(File, Meta)> {
        if self.meta(name)?.kind != Kind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::open(self.0.join(name))?;
        let meta = meta(&file.metadata()?);
        Ok((file, meta))
    }

    /// The names in it, in no order. Names that are no Unicode are left out: no path can say them.
    pub(in crate::workspace) fn names(&self) -> io::Result<Vec<String>> {
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

    /// A new file for writing; fails if the name is taken.
    pub(in crate::workspace) fn make_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.open(self.0.join(name))
    }

    /// Gives an open file the permissions of the file `name`.
    pub(in crate::workspace) fn copy_permissions(&self, name: &str, file: &File) -> io::Result<()> {
        file.set_permissions(fs::symlink_metadata(self.0.join(name))?.permissions())
    }

    /// `from` becomes `to`, whatever `to` was. Links are replaced, not followed.
    pub(in crate::workspace) fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    /// `from` becomes `to`; fails if that name is taken.
    pub(in crate::workspace) fn give_name(&self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.0.join(from), self.0.join(to))?;
        self.remove(from)
    }

    pub(in crate::workspace) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }
}

fn meta(metadata: &Metadata) -> Meta {
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
            // There is no number of the file to be had; when it was made tells most of them apart.
            identity: (instant(metadata.created()), 0),
            size,
            changed: (i64::try_from(changed).unwrap_or_default(), 0),
        },
    }
}

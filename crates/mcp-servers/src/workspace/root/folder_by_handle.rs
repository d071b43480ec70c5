//! File access relative to an open folder handle, for Unix.

use std::{fs::File, io, os::fd::OwnedFd, path::Path};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, linkat, mkdirat, openat,
    renameat, statat, unlinkat,
};

use super::{Kind, Meta, Stamp};

/// Flags for opening any entry that is not a link.
const ENTRY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Flags for opening a folder that is not a link.
const FOLDER: OFlags = ENTRY.union(OFlags::RDONLY).union(OFlags::DIRECTORY);

/// A folder that is open for relative file operations.
#[derive(Debug)]
pub(in crate::workspace) struct Folder(OwnedFd);

impl Folder {
    /// Opens the root folder. Follows links, because the user configured the path.
    pub(in crate::workspace) fn open(path: &Path) -> io::Result<Self> {
        let flags = FOLDER.difference(OFlags::NOFOLLOW);
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    pub(in crate::workspace) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Returns the identity and version of the folder.
    pub(in crate::workspace) fn read_stamp(&self) -> io::Result<Stamp> {
        Ok(to_metadata(&fstat(&self.0)?).stamp)
    }

    /// Opens a subfolder of this folder. Fails if the name is a link.
    pub(in crate::workspace) fn open_subfolder(&self, name: &str) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, FOLDER, Mode::empty())?))
    }

    pub(in crate::workspace) fn entry_metadata(&self, name: &str) -> io::Result<Meta> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(to_metadata(&stat))
    }

    /// Opens a directory entry for reading and returns its metadata. The caller must check the kind
    /// in the metadata, because another process may have replaced the file by something else.
    /// Opening does not wait for the other end of a pipe and does not acquire a terminal.
    pub(in crate::workspace) fn open_file(&self, name: &str) -> io::Result<(File, Meta)> {
        let flags = ENTRY | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(&self.0, name, flags, Mode::empty())?;
        let meta = to_metadata(&fstat(&file)?);
        Ok((File::from(file), meta))
    }

    /// Returns the unsorted names of the folder's entries. Omits names that are not UTF-8.
    pub(in crate::workspace) fn entry_names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            if let Ok(name) = entry?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(in crate::workspace) fn make_folder(&self, name: &str) -> io::Result<()> {
        Ok(mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?)
    }

    /// Creates a file for writing. Fails if an entry with this name exists.
    pub(in crate::workspace) fn make_file(&self, name: &str) -> io::Result<File> {
        let flags = ENTRY | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = openat(&self.0, name, flags, Mode::from_raw_mode(0o666))?;
        Ok(File::from(file))
    }

    /// Copies the permissions of the file `name` to an open file.
    pub(in crate::workspace) fn copy_permissions(&self, name: &str, file: &File) -> io::Result<()> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // Set-user-ID, set-group-ID and sticky bits are not copied.
        let mode = Mode::from_raw_mode(stat.st_mode)
            .intersection(Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO));
        Ok(fchmod(file, mode)?)
    }

    /// Renames the entry `from` to `to` and replaces an existing entry. Does not follow links.
    pub(in crate::workspace) fn rename_replacing(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    /// Renames the entry `from` to `to`. Fails if `to` exists. On a file system without hard links,
    /// this function checks that `to` does not exist and then renames. An entry that another
    /// process creates between these two steps is replaced.
    pub(in crate::workspace) fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        use rustix::io::Errno;
        match linkat(&self.0, from, &self.0, to, AtFlags::empty()) {
            Ok(()) => self.remove_file(from),
            // With these errors, no hard link can be created, usually because the file system does
            // not support hard links.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                match self.entry_metadata(to) {
                    Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                    Err(_) => self.rename_replacing(from, to),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(in crate::workspace) fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_lossless,
    reason = "the fields have other types on other systems; stamps are only compared"
)]
fn to_metadata(stat: &Stat) -> Meta {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    };
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let anybody = Mode::WUSR.union(Mode::WGRP).union(Mode::WOTH);
    Meta {
        kind,
        size,
        protected: !Mode::from_raw_mode(stat.st_mode).intersects(anybody),
        stamp: Stamp {
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            size,
            changed: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        },
    }
}

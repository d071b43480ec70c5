//! [`Folder`] on Unix.

use std::{fs::File, io, os::fd::OwnedFd, path::Path};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, linkat, mkdirat, openat,
    renameat, statat, unlinkat,
};

use super::{Kind, Meta, Stamp};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A folder that is open.
#[derive(Debug)]
pub(in crate::workspace) struct Folder(OwnedFd);

impl Folder {
    /// The folder at this path. Links in the path are followed: it comes from a person.
    pub(in crate::workspace) fn open(path: &Path) -> io::Result<Self> {
        let flags = FOLDER.difference(OFlags::NOFOLLOW);
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// The same folder once more.
    pub(in crate::workspace) fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Which folder this is.
    pub(in crate::workspace) fn stamp(&self) -> io::Result<Stamp> {
        Ok(meta(&fstat(&self.0)?).stamp)
    }

    /// A folder in it.
    pub(in crate::workspace) fn folder(&self, name: &str) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, FOLDER, Mode::empty())?))
    }

    pub(in crate::workspace) fn meta(&self, name: &str) -> io::Result<Meta> {
        Ok(meta(&statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// A file in it, for reading, and what it is: it may be something else than a file by now.
    /// Opening neither waits (for the other end of a pipe) nor takes over a terminal.
    pub(in crate::workspace) fn file(&self, name: &str) -> io::Result<(File, Meta)> {
        let flags = OFlags::RDONLY
            .union(OFlags::NOFOLLOW)
            .union(OFlags::NONBLOCK)
            .union(OFlags::NOCTTY)
            .union(OFlags::CLOEXEC);
        let file = openat(&self.0, name, flags, Mode::empty())?;
        let meta = meta(&fstat(&file)?);
        Ok((File::from(file), meta))
    }

    /// The names in it, in no order. Names that are no UTF-8 are left out: no path can say them.
    pub(in crate::workspace) fn names(&self) -> io::Result<Vec<String>> {
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

    /// A new file for writing; fails if the name is taken.
    pub(in crate::workspace) fn make_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY
            .union(OFlags::CREATE)
            .union(OFlags::EXCL)
            .union(OFlags::NOFOLLOW)
            .union(OFlags::CLOEXEC);
        let file = openat(&self.0, name, flags, Mode::from_raw_mode(0o666))?;
        Ok(File::from(file))
    }

    /// Gives an open file the permissions of the file `name`.
    pub(in crate::workspace) fn copy_permissions(&self, name: &str, file: &File) -> io::Result<()> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // What makes a program run as somebody else is not given on to other contents.
        let mode = Mode::from_raw_mode(stat.st_mode)
            .intersection(Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO));
        Ok(fchmod(file, mode)?)
    }

    /// `from` becomes `to`, whatever `to` was. Links are replaced, not followed.
    pub(in crate::workspace) fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    /// `from` becomes `to`; fails if that name is taken.
    pub(in crate::workspace) fn give_name(&self, from: &str, to: &str) -> io::Result<()> {
        use rustix::io::Errno;
        match linkat(&self.0, from, &self.0, to, AtFlags::empty()) {
            Ok(()) => self.remove(from),
            // A file system without hard links.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                match self.meta(to) {
                    Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                    Err(_) => self.replace(from, to),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(in crate::workspace) fn remove(&self, name: &str) -> io::Result<()> {
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
fn meta(stat: &Stat) -> Meta {
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

//! Folders as handles: everything is opened by its bare name in a folder that is already open.
//!
//! No link is ever followed, whoever makes it and whenever: on Unix the system is told not to
//! (`openat` with `O_NOFOLLOW` at every step), so there is no moment between a check and its use.
//! Elsewhere (`folder_by_path.rs`) every step is checked just before it is made, which stops links
//! that are there but not one that another process puts there in between.

#[cfg(not(unix))]
#[path = "folder_by_path.rs"]
mod platform;
#[cfg(unix)]
#[path = "folder_by_handle.rs"]
mod platform;

pub(super) use platform::Folder;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    /// A pipe, a socket, a device.
    Special,
}

/// What is told about a name without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) kind: Kind,
    /// In bytes; meaningful for files only.
    pub(super) size: u64,
    /// Nobody may write to it.
    pub(super) protected: bool,
    /// Changes with the file: which one it is, and when it was last written to.
    pub(super) stamp: Stamp,
}

/// Tells a file from what took its place, and from itself after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    identity: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// Whether both are of one file, changed or not.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

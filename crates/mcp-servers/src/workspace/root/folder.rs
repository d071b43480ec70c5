//! Access to files relative to an open folder, without following links.
//!
//! On Unix, `openat` with `O_NOFOLLOW` opens each name, which excludes a race between a check and
//! its use. On other systems (`folder_by_path.rs`) each name is checked just before its use. This
//! does not detect a link that another process creates in between.

use schemars::JsonSchema;
use serde::Serialize;

#[cfg(not(unix))]
#[path = "folder_by_path.rs"]
mod platform;
#[cfg(unix)]
#[path = "folder_by_handle.rs"]
mod platform;

pub(in crate::workspace) use platform::Folder;

// The kind of a directory entry. `Special` is a pipe, a socket or a device. A doc comment would
// become part of the output schema of the tool `file_list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::workspace) enum Kind {
    File,
    Folder,
    Link,
    Special,
}

/// The metadata of a directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workspace) struct Meta {
    pub(in crate::workspace) kind: Kind,
    /// Size of the file in bytes.
    pub(in crate::workspace) size: u64,
    /// Whether the file is write-protected for all users: on Unix, no user has write permission.
    pub(in crate::workspace) protected: bool,
    /// Identity and version of the file, to detect changes.
    pub(in crate::workspace) stamp: Stamp,
}

/// The identity, size and time of the last change of a file. If the stamp of a path differs from an
/// earlier one, the file was replaced or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workspace) struct Stamp {
    pub(in crate::workspace) identity: (u64, u64),
    size: u64,
    pub(in crate::workspace) changed: (i64, i64),
}

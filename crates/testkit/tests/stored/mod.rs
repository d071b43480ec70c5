//! Names of the stored snapshots.

use std::{collections::BTreeSet, ffi::OsStr, fs, io, path::Path};

/// Returns the names, without `.snap`, of this crate's snapshots that begin with `prefix`.
pub(crate) fn snapshots(prefix: &str) -> io::Result<BTreeSet<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let mut names = BTreeSet::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        if path.extension() == Some(OsStr::new("snap")) && stem.starts_with(prefix) {
            names.insert(stem.to_owned());
        }
    }
    Ok(names)
}

//! Finds folders in `src/` that have too many entries.

use std::collections::{BTreeMap, BTreeSet};

use super::source::is_test_file;

#[cfg(test)]
#[path = "folders_tests.rs"]
mod tests;

/// Maximum number of files and folders in one folder of `src/`.
pub(super) const MAX_ENTRIES: usize = 12;

/// Returns the folders with too many entries, each with its number of entries.
///
/// `files` are paths below `src/`. A file `x.rs` and its folder `x/` are one entry. Files of tests
/// and snapshots do not count.
pub(super) fn find_crowded_folders<'a>(
    files: impl IntoIterator<Item = &'a str>,
) -> Vec<(String, usize)> {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        if is_test_file(file) || file.starts_with("snapshots/") {
            continue;
        }
        let mut start = 0;
        loop {
            let (folder, rest) = file.split_at(start);
            let end = rest.find('/');
            let entry = &rest[..end.unwrap_or(rest.len())];
            let entry = entry.strip_suffix(".rs").unwrap_or(entry);
            folders.entry(folder).or_default().insert(entry);
            match end {
                Some(end) => start += end + 1,
                None => break,
            }
        }
    }
    folders
        .into_iter()
        .filter(|(_, entries)| entries.len() > MAX_ENTRIES)
        .map(|(folder, entries)| (folder.to_owned(), entries.len()))
        .collect()
}

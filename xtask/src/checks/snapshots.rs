//! `cargo xtask snapshots`: checks and accepts the snapshot files of insta. Does not need the
//! program `cargo-insta`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::suites::test;
use crate::{files, process};

#[derive(Debug, Default, Clone, Copy, clap::Subcommand)]
pub(crate) enum Action {
    /// Run the tests without writing any snapshot, then look for stale and orphaned files
    #[default]
    Check,
    /// Run the tests and rewrite every snapshot; `git diff` shows the changes
    Accept,
}

pub(crate) fn run(action: Action) -> Result<()> {
    match action {
        Action::Check => {
            test::run_with_insta_update("no")?;
            check_files()
        }
        Action::Accept => {
            test::run_with_insta_update("always")?;
            for pending in list_pending_snapshots()? {
                fs::remove_file(&pending)?;
            }
            println!("Accepted. Review the changes: git diff -- '*.snap'");
            check_files()
        }
    }
}

/// Fails if a snapshot is pending or is not used by any test. Reads the list of used snapshots,
/// which a run of all tests writes.
pub(crate) fn check_files() -> Result<()> {
    let notes = test::snapshot_references_path();
    let asked_for = fs::read_to_string(&notes).with_context(|| {
        format!(
            "failed to read {}, which `cargo xtask test` writes",
            notes.display()
        )
    })?;
    let referenced: BTreeSet<PathBuf> = asked_for.lines().filter_map(canonical_path).collect();
    let stored = files::find_files_by_ending(&process::root().join("crates"), ".snap")?;
    let orphans = find_unused_snapshots(&stored, &referenced);
    let pending = list_pending_snapshots()?;

    println!(
        "{} snapshots, {} pending, {} orphaned",
        stored.len(),
        pending.len(),
        orphans.len()
    );
    for file in &pending {
        eprintln!("pending (accept or delete): {}", relative_path(file));
    }
    for file in &orphans {
        eprintln!("orphaned (not used by any test): {}", relative_path(file));
    }
    if !pending.is_empty() || !orphans.is_empty() {
        bail!(
            "pending or orphaned snapshots found: accept pending snapshots with `cargo xtask \
             snapshots accept`, and delete orphaned ones"
        );
    }
    Ok(())
}

fn list_pending_snapshots() -> Result<Vec<PathBuf>> {
    files::find_files_by_ending(&process::root().join("crates"), ".snap.new")
}

/// Returns the snapshots that no test used in the last run of all tests. Ignores the snapshots of
/// tests with `peer_` in their name, which run only with `--peers`.
fn find_unused_snapshots(stored: &[PathBuf], referenced: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let is_orphan = |file: &&PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let known = canonical_path(file).is_some_and(|path| referenced.contains(&path));
        !known && !name.contains("peer_")
    };
    stored.iter().filter(is_orphan).cloned().collect()
}

/// Returns the canonical form of a path. The list that insta writes contains paths such as
/// `src/../tests/snapshots/x.snap`.
fn canonical_path(path: impl AsRef<Path>) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

fn relative_path(path: &Path) -> String {
    let inside = path.strip_prefix(process::root()).unwrap_or(path);
    inside.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_no_test_uses_is_an_orphan() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, "").unwrap();
            path
        };
        let stored = [file("a.snap"), file("b.snap"), file("t__peer_c.snap")];
        let referenced = [folder.path().join("./a.snap")];
        let referenced = referenced.iter().filter_map(canonical_path).collect();
        assert_eq!(
            find_unused_snapshots(&stored, &referenced),
            [stored[1].clone()]
        );
    }
}

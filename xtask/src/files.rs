//! Which files are ours, and how to read them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result};

use crate::process;

/// Returns the files that git tracks or would track, relative to the repository root, with `/`.
///
/// # Errors
/// When this is not a git checkout: generated files could not be distinguished from sources.
pub(crate) fn ours() -> Result<Vec<String>> {
    let mut git = process::command("git");
    git.args(["ls-files", "-z", "--cached"]);
    let list = process::stdout_of(git.args(["--others", "--exclude-standard"]))
        .context("failed to list the files with git; this requires a git checkout")?;
    let root = process::root();
    let mut files: Vec<String> = list
        .split('\0')
        // Deleted, but not committed yet.
        .filter(|file| !file.is_empty() && root.join(file).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Whether a path names Rust source.
pub(crate) fn is_rust(file: &str) -> bool {
    has_ending(file, "rs")
}

/// Whether a path names Markdown.
pub(crate) fn is_markdown(file: &str) -> bool {
    has_ending(file, "md")
}

fn has_ending(file: &str, ending: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|actual| actual == ending)
}

/// Returns the text of a repository file, or `None` for a binary file.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn text(file: &str) -> Result<Option<String>> {
    match fs::read_to_string(process::root().join(file)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {file}")),
    }
}

/// Returns every file under `folder` whose name ends with `ending`, ignored files included.
///
/// # Errors
/// When a folder cannot be read.
pub(crate) fn ending_with(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("failed to read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                // Neither builds nor packages of others hold snapshots of ours.
                if !matches!(&*name, "target" | "node_modules" | ".git") {
                    open.push(entry.path());
                }
            } else if name.ends_with(ending) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_by_ending_but_not_in_builds() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/x.snap", "a/x.snap.new", "target/y.snap.new"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = ending_with(folder.path(), ".snap.new").unwrap();
        assert_eq!(found, [folder.path().join("a/x.snap.new")]);
    }
}

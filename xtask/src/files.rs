//! Lists and reads the files of the repository.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result};

use crate::process;

/// Returns the paths of all files that git does not ignore, relative to the repository, with `/`.
/// Fails if the folder is not a git checkout.
pub(crate) fn list_repository_files() -> Result<Vec<String>> {
    let mut git = process::command("git");
    git.args(["ls-files", "-z", "--cached"]);
    let list = process::stdout_of(git.args(["--others", "--exclude-standard"]))
        .context("failed to list the files with git; this requires a git checkout")?;
    let root = process::root();
    let mut files: Vec<String> = list
        .split('\0')
        // git also lists files that are deleted but still committed.
        .filter(|file| !file.is_empty() && root.join(file).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Returns whether a file is a Rust source file, by its extension.
pub(crate) fn is_rust(file: &str) -> bool {
    has_ending(file, "rs")
}

/// Returns whether a file is a Markdown file, by its extension.
pub(crate) fn is_markdown(file: &str) -> bool {
    has_ending(file, "md")
}

fn has_ending(file: &str, ending: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|actual| actual == ending)
}

/// Returns the text of a file of the repository, or `None` for a binary file.
pub(crate) fn read_text(file: &str) -> Result<Option<String>> {
    match fs::read_to_string(process::root().join(file)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {file}")),
    }
}

/// Returns all files below `folder` whose names end with `ending`, including files that git
/// ignores.
pub(crate) fn find_files_by_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
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
                // Folders with build results and third-party packages are skipped.
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
        let found = find_files_by_ending(folder.path(), ".snap.new").unwrap();
        assert_eq!(found, [folder.path().join("a/x.snap.new")]);
    }
}

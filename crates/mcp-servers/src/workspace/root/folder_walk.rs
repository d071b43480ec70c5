//! Traversal of folders for the tools that list files.

use std::collections::VecDeque;

use regex::Regex;

use super::{
    FileError, Root,
    folder::{Kind, Meta},
    path::RelativePath,
};

/// Maximum number of names that one traversal visits. Further names are not listed.
const MAX_VISITED: usize = 20_000;
/// Maximum depth of a traversal in folders below its start folder. Deeper folders are not entered.
const MAX_DEPTH: usize = 16;
/// Names of folders with many generated files. These folders are listed but not entered.
const GENERATED_FOLDERS: [&str; 4] = ["node_modules", "target", "__pycache__", "venv"];

/// The options of a folder traversal.
#[derive(Debug, Clone, Copy)]
pub(in crate::workspace) struct Walk {
    /// Whether the traversal enters subfolders.
    pub(in crate::workspace) recursive: bool,
    /// Whether hidden names are included. The content of folders with secrets stays excluded.
    pub(in crate::workspace) hidden: bool,
}

impl Walk {
    /// A traversal of all visible files and folders.
    pub(in crate::workspace) const VISIBLE: Self = Self {
        recursive: true,
        hidden: false,
    };

    /// Passes each entry below the folder `start` to `take`, until `take` returns `false`. The
    /// entries of a folder come before the entries of its subfolders. Returns `false` if `take`
    /// returned `false` or a limit of the traversal was reached, otherwise `true`. Skips subfolders
    /// that cannot be read.
    pub(in crate::workspace) fn visit_entries(
        self,
        root: &Root,
        start: &RelativePath,
        mut take: impl FnMut(RelativePath, Meta) -> bool,
    ) -> Result<bool, FileError> {
        let mut visited = 0;
        let mut complete = true;
        let mut folders = VecDeque::from([start.clone()]);
        while let Some(folder) = folders.pop_front() {
            let entries = match root.list_dir(&folder) {
                Ok(entries) => entries,
                Err(fault) if folder == *start => return Err(fault),
                // Skips a folder that was removed meanwhile or cannot be read.
                Err(_) => continue,
            };
            for (name, meta) in entries {
                visited += 1;
                if visited > MAX_VISITED {
                    return Ok(false);
                }
                if !self.hidden && root.rules.is_hidden(&name) {
                    continue;
                }
                let path = folder.join(&name);
                let enter = self.recursive
                    && meta.kind == Kind::Folder
                    && !GENERATED_FOLDERS.contains(&name.as_str())
                    && !root.rules.is_secret(&name);
                if enter && path.names().len() - start.names().len() < MAX_DEPTH {
                    folders.push_back(path.clone());
                } else if enter {
                    complete = false;
                }
                if !take(path, meta) {
                    return Ok(false);
                }
            }
        }
        Ok(complete)
    }
}

/// Parses a pattern for whole names: `*` matches any number of characters, and `?` matches one
/// character. Fails if the pattern is too long.
pub(in crate::workspace) fn parse_pattern(pattern: &str) -> Result<Regex, regex::Error> {
    let escaped = regex::escape(pattern);
    let expression = escaped.replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("(?s)^{expression}$"))
}

#[cfg(test)]
mod tests {
    use super::parse_pattern;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "main.rs.bak", false),
            ("m?in.*", "main.rs", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("?", "ä", true),
            ("**x", "x", true),
        ] {
            let found = parse_pattern(pattern).unwrap().is_match(name);
            assert_eq!(found, expected, "{pattern} {name}");
        }
        // The run time has a bound.
        let long = parse_pattern(&"*a".repeat(500)).unwrap();
        assert!(!long.is_match(&"a".repeat(499)));
    }
}

//! What is below a folder, for the tools that list.

use std::collections::VecDeque;

use super::{
    folder::Kind,
    path::RelativePath,
    root::{FileFault, Root},
};

/// How many names are looked at before a list is given up.
const LOOKED_AT: usize = 20_000;
/// How far down a list goes.
const DEEPEST: usize = 16;
/// Folders that hold what tools made, by the thousand. They are listed but not entered.
const HEAPS: [&str; 4] = ["node_modules", "target", "__pycache__", "venv"];

/// A name that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: RelativePath,
    pub(super) kind: Kind,
    pub(super) size: u64,
}

/// What to list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// Also what is in the folders.
    pub(super) recursive: bool,
    /// Also hidden names. What is in folders with secrets stays out.
    pub(super) hidden: bool,
}

impl Walk {
    /// Hands on what is in `start` and below, a folder's own names before those below it, until
    /// `take` says `false`. Says whether that was everything.
    pub(super) fn run(
        self,
        root: &Root,
        start: &RelativePath,
        mut take: impl FnMut(Found) -> bool,
    ) -> Result<bool, FileFault> {
        let mut looked_at = 0;
        let mut complete = true;
        let mut folders = VecDeque::from([start.clone()]);
        while let Some(folder) = folders.pop_front() {
            let entries = match root.list(&folder) {
                Ok(entries) => entries,
                Err(fault) if folder == *start => return Err(fault),
                // It is gone, or not ours to read.
                Err(_) => continue,
            };
            for entry in entries {
                looked_at += 1;
                if looked_at > LOOKED_AT {
                    return Ok(false);
                }
                if !self.hidden && root.rules().is_hidden(&entry.name) {
                    continue;
                }
                let path = folder.join(&entry.name);
                let enter = self.recursive
                    && entry.kind == Kind::Folder
                    && !HEAPS.contains(&entry.name.as_str())
                    && !root.rules().is_secret(&entry.name);
                if enter && path.names().len() - start.names().len() < DEEPEST {
                    folders.push_back(path.clone());
                } else if enter {
                    complete = false;
                }
                let found = Found {
                    path,
                    kind: entry.kind,
                    size: entry.size,
                };
                if !take(found) {
                    return Ok(false);
                }
            }
        }
        Ok(complete)
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters and `?` for one.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut here) = (0, 0);
    // Where the last `*` stands, and how much of the name it has taken so far.
    let mut star = None;
    while here < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == name[here] => {
                at += 1;
                here += 1;
            }
            _ => match star {
                Some((position, taken)) => {
                    star = Some((position, taken + 1));
                    at = position + 1;
                    here = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

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
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        // No pattern takes for ever.
        assert!(!matches(&"*a".repeat(500), &"a".repeat(499)));
    }
}

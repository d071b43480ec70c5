//! Paths that models use as tool arguments, and access rules for the names in them.
//!
//! A path is a list of names below the root folder without `..`. `Root` refuses links, so the names
//! alone identify a file.

use std::{fmt, path::Path};

/// Maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Lower-case names of files and folders that usually contain secrets, such as tokens in the
/// `config` of `.git`. Names that begin with `.env` are secret too.
const SECRET: &[&str] = &[
    ".git",
    ".git-credentials",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".ssh",
    ".aws",
    ".azure",
    ".gcloud",
    ".gnupg",
    ".kube",
    ".docker",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];

/// A path below the root folder, as a list of names. The list is empty for the root folder itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::workspace) struct RelativePath {
    names: Vec<String>,
}

impl RelativePath {
    /// Parses a path with the separator `/`. Refuses `..`. Accepts an absolute path below the
    /// folder `root`, because compilers print such paths. The error is for the model.
    pub(in crate::workspace) fn parse(text: &str, root: &Path) -> Result<Self, String> {
        let wrong_characters =
            || format!("{text:?} contains characters that are not allowed in a path.");
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("The path is longer than {MAX_PATH_BYTES} bytes."));
        }
        if text.chars().any(char::is_control) {
            return Err(wrong_characters());
        }
        let path = Path::new(text);
        let inner = if path.has_root() || path.is_absolute() {
            let inner = path.strip_prefix(root).ok().and_then(Path::to_str);
            inner.ok_or_else(|| {
                format!(
                    "{text:?} is an absolute path outside of the root folder. Write the path \
                     relative to the root folder, such as src/main.rs."
                )
            })?
        } else {
            text
        };
        let separator = |character| character == '/' || cfg!(windows) && character == '\\';
        let mut names = Vec::new();
        for name in inner.split(separator) {
            match name {
                "" | "." => {}
                ".." => {
                    return Err(format!(
                        "{text:?} contains `..`. Write the path relative to the root folder, \
                         without `..`."
                    ));
                }
                _ if !is_ordinary_name(name) => return Err(wrong_characters()),
                _ => names.push(name.to_owned()),
            }
        }
        Ok(Self { names })
    }

    pub(in crate::workspace) fn names(&self) -> &[String] {
        &self.names
    }

    /// Splits the path into the names of its parent folders and its last name. Returns `None` for
    /// the root folder.
    pub(in crate::workspace) fn split(&self) -> Option<(&[String], &str)> {
        let (name, folder) = self.names.split_last()?;
        Some((folder, name))
    }

    /// Returns the path of the entry `name` in the folder that this path identifies.
    pub(in crate::workspace) fn join(&self, name: &str) -> Self {
        let mut names = self.names.clone();
        names.push(name.to_owned());
        Self { names }
    }

    /// Returns the path of the first `names` names: `a/b` for the path `a/b/c` and 2 names.
    pub(in crate::workspace) fn first_names(&self, names: usize) -> Self {
        Self {
            names: self.names.iter().take(names).cloned().collect(),
        }
    }

    pub(in crate::workspace) fn name(&self) -> &str {
        self.names.last().map_or(".", String::as_str)
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return f.write_str(".");
        }
        f.write_str(&self.names.join("/"))
    }
}

/// Returns whether a file name has no special meaning on this system. On Windows, some names do:
/// `a:b` is a stream of `a`, `NUL` is a device, `a.` equals `a`, and `PROGRA~1` is an alias. On all
/// other systems, the result is `true`.
fn is_ordinary_name(name: &str) -> bool {
    const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
    if !cfg!(windows) {
        return true;
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_ascii_lowercase();
    let numbered = ["com", "lpt"].iter().any(|device| {
        let number = stem.strip_prefix(device);
        number.is_some_and(|number| number.chars().count() == 1)
    });
    !(name.contains(|it: char| "<>:\"|?*".contains(it))
        || name.ends_with(['.', ' '])
        || name.contains('~') && name.contains(|it: char| it.is_ascii_digit())
        || numbered
        || DEVICES.contains(&stem.as_str()))
}

/// The kind of access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workspace) enum Access {
    Read,
    Write,
}

/// The access rules for names of files and folders: secret names are refused, and hidden names
/// cannot be written, unless the user allows them.
#[derive(Debug, Clone, Default)]
pub(in crate::workspace) struct NameRules {
    /// Hidden or secret names that the user allows, in lower case.
    allowed: Vec<String>,
}

impl NameRules {
    pub(in crate::workspace) fn new(allowed: &[String]) -> Self {
        Self {
            allowed: allowed.iter().map(|name| fold_name(name)).collect(),
        }
    }

    /// Returns an error for the model if a name in the path is secret, or if a name in the path is
    /// hidden and `access` is [`Access::Write`]. Every name is checked, because the content of a
    /// hidden folder is hidden too. Hidden files cannot be written, because they usually configure
    /// tools.
    pub(in crate::workspace) fn check_access(
        &self,
        path: &RelativePath,
        access: Access,
    ) -> Result<(), String> {
        for name in path.names() {
            let problem = if self.is_secret(name) {
                format!("{path} is off limits: {name} usually contains secrets.")
            } else if access == Access::Write && self.is_hidden(name) {
                format!("{path} cannot be written: {name} is hidden.")
            } else {
                continue;
            };
            return Err(format!(
                "{problem} Only the person who started this server can allow it (--allow-name \
                 {name})."
            ));
        }
        Ok(())
    }

    pub(in crate::workspace) fn is_secret(&self, name: &str) -> bool {
        let name = fold_name(name);
        (name.starts_with(".env") || SECRET.contains(&name.as_str()))
            && !self.allowed.contains(&name)
    }

    pub(in crate::workspace) fn is_hidden(&self, name: &str) -> bool {
        let name = fold_name(name);
        name.starts_with('.') && !self.allowed.contains(&name)
    }
}

/// Folds the case of a file name and removes invisible characters, which some file systems ignore.
fn fold_name(name: &str) -> String {
    let visible = name.chars().filter(|character| {
        !matches!(
            character,
            '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
        )
    });
    // Converts to upper case first, because some letters, such as the long s, equal others only in
    // upper case.
    let folded = visible.flat_map(char::to_uppercase);
    folded.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;

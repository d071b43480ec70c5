//! Paths as models write them, and which of them are off limits.
//!
//! A path is a list of names below the root and nothing else: there is no `..` in it, and links are
//! refused where it is opened (`root.rs`). So its names are what decides, and two spellings of one
//! file are one path.

use std::{fmt, path::Path};

/// Longer paths are refused before the system is asked.
const LONGEST: usize = 4096;

/// Names, in lower case, of files and folders that usually hold secrets. `.env` stands for
/// everything that begins with it. `.git` is here because its `config` may hold tokens.
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

/// A place below the root: its names, from the root down. The root itself has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RelativePath {
    names: Vec<String>,
}

/// Why a text is no path of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathFault {
    /// It has `..` in it.
    #[error("{0:?} has `..` in it. Write the path from the root folder down, without `..`.")]
    Parent(String),
    /// It begins somewhere else than the root.
    #[error(
        "{0:?} is an absolute path outside of the root folder. Write the path from the root folder \
         down, such as src/main.rs."
    )]
    Absolute(String),
    /// It has characters that no file name should have.
    #[error("{0:?} has characters in it that are not possible in a path.")]
    Characters(String),
    /// It is too long.
    #[error("The path is longer than {LONGEST} characters.")]
    Long,
}

impl RelativePath {
    /// Reads a path. `/` stands between the names; an absolute path is understood if it begins
    /// with the root, because compilers print such paths.
    pub(super) fn parse(text: &str, root: &Path) -> Result<Self, PathFault> {
        if text.len() > LONGEST {
            return Err(PathFault::Long);
        }
        if text.chars().any(char::is_control) {
            return Err(PathFault::Characters(text.to_owned()));
        }
        let path = Path::new(text);
        let inner = if path.has_root() || path.is_absolute() {
            let inner = path.strip_prefix(root).ok().and_then(Path::to_str);
            inner.ok_or_else(|| PathFault::Absolute(text.to_owned()))?
        } else {
            text
        };
        let separator = |character| character == '/' || cfg!(windows) && character == '\\';
        let mut names = Vec::new();
        for name in inner.split(separator) {
            match name {
                "" | "." => {}
                ".." => return Err(PathFault::Parent(text.to_owned())),
                _ if !is_plain(name) => return Err(PathFault::Characters(text.to_owned())),
                _ => names.push(name.to_owned()),
            }
        }
        Ok(Self { names })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The folder it is in and its own name, unless it is the root.
    pub(super) fn split(&self) -> Option<(&[String], &str)> {
        let (name, folder) = self.names.split_last()?;
        Some((folder, name))
    }

    /// What is called `name` in this folder.
    pub(super) fn join(&self, name: &str) -> Self {
        let mut names = self.names.clone();
        names.push(name.to_owned());
        Self { names }
    }

    /// Its first names only.
    pub(super) fn start(&self, names: usize) -> Self {
        Self {
            names: self.names.iter().take(names).cloned().collect(),
        }
    }

    pub(super) fn name(&self) -> &str {
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

/// Whether a name means the file of that name and nothing else. On Windows `a:b` is a stream of `a`,
/// `NUL` a device, `a.` the same as `a`, and `PROGRA~1` an alias.
fn is_plain(name: &str) -> bool {
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

/// What a tool wants to do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Which names are off limits.
#[derive(Debug, Clone, Default)]
pub(super) struct NameRules {
    /// In lower case.
    allowed: Vec<String>,
}

/// A name that is off limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OffLimits {
    /// Its contents are usually secret.
    #[error(
        "{path} is off limits: {name} usually holds secrets. Only the person who started this \
         server can allow it (--allow-name {name})."
    )]
    Secret {
        /// Where.
        path: String,
        /// The name in it.
        name: String,
    },
    /// It is hidden, and hidden files steer tools more than they hold work.
    #[error(
        "{path} cannot be written: {name} is hidden. Only the person who started this server can \
         allow it (--allow-name {name})."
    )]
    Hidden {
        /// Where.
        path: String,
        /// The name in it.
        name: String,
    },
}

impl NameRules {
    pub(super) fn new(allowed: &[String]) -> Self {
        Self {
            allowed: allowed.iter().map(|name| fold(name)).collect(),
        }
    }

    /// Every name of the path counts: what is in a hidden folder is hidden.
    pub(super) fn check(&self, path: &RelativePath, access: Access) -> Result<(), OffLimits> {
        for name in path.names() {
            let (path, shown) = (path.to_string(), name.clone());
            if self.is_secret(name) {
                return Err(OffLimits::Secret { path, name: shown });
            }
            if access == Access::Write && self.is_hidden(name) {
                return Err(OffLimits::Hidden { path, name: shown });
            }
        }
        Ok(())
    }

    pub(super) fn is_secret(&self, name: &str) -> bool {
        let name = fold(name);
        (name.starts_with(".env") || SECRET.contains(&name.as_str()))
            && !self.allowed.contains(&name)
    }

    pub(super) fn is_hidden(&self, name: &str) -> bool {
        let name = fold(name);
        name.starts_with('.') && !self.allowed.contains(&name)
    }
}

/// Some file systems take `.ENV` for `.env`; and some leave out characters that nobody sees.
fn fold(name: &str) -> String {
    let visible = name.chars().filter(|character| {
        !matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    });
    // There and back, because some letters (the long s) meet their twins only in upper case.
    let folded = visible.flat_map(char::to_uppercase);
    folded.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;

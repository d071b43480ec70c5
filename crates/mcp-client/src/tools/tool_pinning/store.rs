//! Storage of tool pins between runs.
//!
//! A changed definition is reported in every run until a person accepts it
//! ([`McpHost::accept_tools`](crate::McpHost::accept_tools)).

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    auth::store::file::{create_private_folder, replace_file, set_private_mode},
    tools::tool_pinning::fingerprint::ToolPins,
};

/// Version of the format of the tool pin file. Reading a file of another version returns
/// [`ToolPinStoreError::Malformed`].
const VERSION: u32 = 1;

/// Reason why tool pins cannot be loaded from or stored in their file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolPinStoreError {
    /// The file with the tool pins cannot be read or written.
    #[error("cannot access the tool pins in {}: {source}", path.display())]
    File {
        /// Path of the file with the tool pins.
        path: PathBuf,
        /// Error of the operating system for this file.
        source: io::Error,
    },
    /// The file with the tool pins has an unknown format. The store does not change it.
    #[error(
        "{} does not contain tool pins of this version ({reason}), so changed tools are not \
         detected: delete it to pin the current tools. Commit `f008d49` is the last one that reads \
         the earlier format",
        path.display()
    )]
    Malformed {
        /// Path of the file with the tool pins.
        path: PathBuf,
        /// Description of the part of the file that is invalid.
        reason: String,
    },
}

/// Store for tool pins in a file that only its user can read (mode 0600). Every save replaces the
/// whole file. Several processes may share the file.
#[derive(Debug)]
pub struct ToolPinFile {
    path: PathBuf,
    sources: BTreeMap<String, String>,
}

/// JSON content of the tool pin file: the fingerprints of tools by configuration source, server and
/// tool name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinFileData {
    version: u32,
    sources: BTreeMap<String, ToolPins>,
}

impl ToolPinFile {
    /// Creates the store. The file is created when pins are saved, and its folder gets the mode
    /// 0700.
    ///
    /// `sources` maps the name of each server to the source of its configuration, such as a file.
    /// Servers with one name from different sources have separate pins.
    pub fn new(path: impl Into<PathBuf>, sources: BTreeMap<String, String>) -> Self {
        Self {
            path: path.into(),
            sources,
        }
    }

    /// Returns the pins of the servers in `sources`. Returns empty pins if the file does not exist.
    pub fn load(&self) -> Result<ToolPins, ToolPinStoreError> {
        let mut content = self.read_pin_file()?;
        let mut pins = ToolPins::default();
        for (server, source) in &self.sources {
            let source = content.sources.get_mut(source);
            if let Some(tools) = source.and_then(|source| source.0.remove(server)) {
                pins.0.insert(server.clone(), tools);
            }
        }
        Ok(pins)
    }

    fn read_pin_file(&self) -> Result<PinFileData, ToolPinStoreError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (version, sources) = (VERSION, BTreeMap::new());
                return Ok(PinFileData { version, sources });
            }
            Err(error) => return Err(self.file_error(error)),
        };
        let malformed = |reason: String| ToolPinStoreError::Malformed {
            path: self.path.clone(),
            reason,
        };
        let content: PinFileData =
            serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        if content.version != VERSION {
            return Err(malformed(format!("found version {}", content.version)));
        }
        Ok(content)
    }

    fn file_error(&self, source: io::Error) -> ToolPinStoreError {
        ToolPinStoreError::File {
            path: self.path.clone(),
            source,
        }
    }

    /// Waits for the lock that prevents other processes from changing the file.
    fn lock_file(&self) -> Result<File, ToolPinStoreError> {
        // The lock is a separate file, because the file with the pins is replaced. The lock file is
        // never removed: otherwise two processes could lock different files with the same name.
        let path = self.path.with_extension("lock");
        let file = set_private_mode(OpenOptions::new().write(true).create(true)).open(path);
        let file = file.map_err(|error| self.file_error(error))?;
        file.lock().map_err(|error| self.file_error(error))?;
        Ok(file)
    }

    /// Stores pins of the servers in `sources`. Existing pins are overwritten only if `replaces` is
    /// set. Waits for other processes that write the file.
    pub(crate) fn save(&self, pins: &ToolPins, replaces: bool) -> Result<(), ToolPinStoreError> {
        let pins = pins.0.iter().filter(|(_, tools)| !tools.is_empty());
        let pins =
            pins.filter_map(|(server, tools)| Some((self.sources.get(server)?, server, tools)));
        let pins: Vec<_> = pins.collect();
        if pins.is_empty() {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        create_private_folder(folder).map_err(|error| self.file_error(error))?;
        let _lock = self.lock_file()?;
        let mut content = self.read_pin_file()?;
        for (source, server, tools) in pins {
            let servers = content.sources.entry(source.clone()).or_default();
            let stored = servers.0.entry(server.clone()).or_default();
            for (tool, fingerprint) in tools {
                if replaces || !stored.contains_key(tool) {
                    stored.insert(tool.clone(), fingerprint.clone());
                }
            }
        }
        let text = serde_json::to_string_pretty(&content);
        let text = text.map_err(|error| self.file_error(error.into()))?;
        replace_file(folder, &self.path, &text).map_err(|error| self.file_error(error))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

//! What tools were, kept between runs.
//!
//! A tool is trusted for what it was when it was first seen. So a definition that changed stays a changed one,
//! run after run, until a person accepts it ([`McpHost::accept_tools`](crate::McpHost::accept_tools)).

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    auth::store::file::{make_private_folder, private_file, replace},
    tools::tool_pinning::fingerprint::KnownTools,
};

/// How long another process may take to write the file, which is done at once.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often its lock is tried. A lock that is waited for in the kernel cannot be given up.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);
/// The form of the file.
const VERSION: u32 = 1;

/// Keeps what tools were between runs. Called from wherever a host is closed or a tool accepted, so it must
/// not take long.
pub trait ToolMemory: fmt::Debug + Send + Sync {
    /// Keeps fingerprints: those of tools that were seen for the `first` time, where none is kept yet, and
    /// those of tools that a person `accepted`, instead of what is kept.
    fn keep(&self, first: &KnownTools, accepted: &KnownTools) -> Result<(), ToolMemoryError>;

    /// Whether it keeps anything of a server. Of the others it is told nothing.
    fn remembers(&self, server: &str) -> bool {
        let _ = server;
        true
    }
}

/// Why what tools were is not known, or not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolMemoryError {
    /// The file cannot be read or written.
    #[error("what tools were cannot be kept in {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is in the file was not written by this program, or by a later one. It is left as it is.
    #[error(
        "{} does not say what tools were in earlier runs ({reason}), so it is not seen which have changed; \
         delete it to begin anew",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another process writes it all the time.
    #[error("what tools were cannot be kept in {}: another process writes it", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

/// Fingerprints in a file (mode 0600), replaced as a whole. Several processes may share it.
#[derive(Debug)]
pub struct ToolMemoryFile {
    path: PathBuf,
    places: BTreeMap<String, String>,
}

/// The file: fingerprints by the place where a server is configured, the server and the tool.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    places: BTreeMap<String, KnownTools>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            version: VERSION,
            places: BTreeMap::new(),
        }
    }
}

impl ToolMemoryFile {
    /// The memory in this file, which is made when something is kept. Its folder is set to be its owner's
    /// alone.
    ///
    /// `places` are the servers that are remembered, each with the place where it is configured, such as a
    /// file: two servers of one name in two places are two servers.
    pub fn new(path: impl Into<PathBuf>, places: BTreeMap<String, String>) -> Self {
        Self {
            path: path.into(),
            places,
        }
    }

    /// What is kept of its servers; nothing where there is no file.
    pub fn load(&self) -> Result<KnownTools, ToolMemoryError> {
        let mut record = self.read()?;
        let mut known = KnownTools::default();
        for (server, place) in &self.places {
            let place = record.places.get_mut(place);
            if let Some(tools) = place.and_then(|place| place.0.remove(server)) {
                known.0.insert(server.clone(), tools);
            }
        }
        Ok(known)
    }

    fn read(&self) -> Result<Record, ToolMemoryError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Record::default()),
            Err(error) => return Err(self.failed(error)),
        };
        let malformed = |reason: String| ToolMemoryError::Malformed {
            path: self.path.clone(),
            reason,
        };
        let record: Record =
            serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        if record.version != VERSION {
            return Err(malformed(format!("it is of version {}", record.version)));
        }
        Ok(record)
    }

    fn failed(&self, source: io::Error) -> ToolMemoryError {
        ToolMemoryError::File {
            path: self.path.clone(),
            source,
        }
    }

    /// Held by whoever reads the file to write it.
    fn lock(&self) -> Result<File, ToolMemoryError> {
        // Beside it, for the file itself is replaced. It stays: removing it would let two hold two locks of
        // one name.
        let beside = self.path.with_extension("lock");
        let file = private_file(OpenOptions::new().write(true).create(true)).open(beside);
        let file = file.map_err(|error| self.failed(error))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => pause(),
                Err(TryLockError::WouldBlock) => {
                    return Err(ToolMemoryError::Busy {
                        path: self.path.clone(),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(self.failed(error)),
            }
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "nobody is told when another process lets go of a lock; it does so within milliseconds"
)]
fn pause() {
    // sleep: see above.
    sleep(BETWEEN_TRIES);
}

impl ToolMemory for ToolMemoryFile {
    fn remembers(&self, server: &str) -> bool {
        self.places.contains_key(server)
    }

    fn keep(&self, first: &KnownTools, accepted: &KnownTools) -> Result<(), ToolMemoryError> {
        let remembered = |known: &KnownTools| {
            let servers = known.0.iter().filter(|(_, tools)| !tools.is_empty());
            let servers = servers.filter_map(|(server, tools)| {
                Some((
                    self.places.get(server)?.clone(),
                    server.clone(),
                    tools.clone(),
                ))
            });
            servers.collect::<Vec<_>>()
        };
        let (first, accepted) = (remembered(first), remembered(accepted));
        if first.is_empty() && accepted.is_empty() {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder).map_err(|error| self.failed(error))?;
        let _lock = self.lock()?;
        let mut record = self.read()?;
        let mut changed = false;
        for (place, server, tools) in first {
            let kept = record.places.entry(place).or_default();
            let kept = kept.0.entry(server).or_default();
            for (tool, fingerprint) in tools {
                kept.entry(tool).or_insert_with(|| {
                    changed = true;
                    fingerprint
                });
            }
        }
        for (place, server, tools) in accepted {
            let kept = record.places.entry(place).or_default();
            kept.0.entry(server).or_default().extend(tools);
            changed = true;
        }
        if !changed {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&record);
        let text = text.map_err(|error| self.failed(error.into()))?;
        replace(folder, &self.path, &text).map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

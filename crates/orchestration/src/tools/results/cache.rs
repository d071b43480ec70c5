//! A cache of results of read-only tools.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_domain::{JsonObject, Principal, ToolDefinition, ToolOutput};

use crate::tools::{arguments::canonical, only_reads};

/// The size and lifetime of a cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheOptions {
    /// Lifetime of a result.
    pub lifetime: Duration,
    /// Maximum number of results.
    pub max_entries: usize,
    /// Maximum size of all results as JSON, in bytes.
    pub max_bytes: usize,
}

/// Returns 5 minutes, 256 results and 16 MiB.
impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_mins(5),
            max_entries: 256,
            max_bytes: 16 << 20,
        }
    }
}

/// An in-memory cache of results of tools that declare themselves read-only. The key is the
/// principal, the tool's definition and the input. The least recently used result is removed first.
#[derive(Default)]
pub struct ResultCache {
    options: CacheOptions,
    entries: Mutex<Entries>,
}

/// The key of a result: a digest that reveals nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheKey {
    digest: [u8; 32],
    /// Server of the tool. Empty for a tool without a server.
    server: String,
    /// Number of changes of the server when the key was created. Results that were read before a
    /// later change are outdated.
    changes: u64,
}

#[derive(Default)]
struct Entries {
    by_digest: HashMap<[u8; 32], Entry>,
    /// Number of stores and reads so far.
    uses: u64,
    /// Numbers of changes by server.
    changes: HashMap<String, u64>,
}

struct Entry {
    output: ToolOutput,
    server: String,
    stored: Timestamp,
    bytes: usize,
    last_use: u64,
}

impl ResultCache {
    /// Creates an empty cache.
    pub fn new(options: CacheOptions) -> Self {
        Self {
            options,
            entries: Mutex::default(),
        }
    }

    /// Returns the key of a call, or `None` for a tool that is not read-only.
    ///
    /// `definition` is the tool as its host offers it. `input` includes the values that the host
    /// injected, because results can differ by them. Create the key before the call, so that a
    /// change of the server during the call is detected.
    pub fn key(
        &self,
        principal: &Principal,
        definition: &Arc<ToolDefinition>,
        input: &JsonObject,
    ) -> Option<CacheKey> {
        if !only_reads(definition.annotations) {
            return None;
        }
        let key = serde_json::to_vec(&(principal, &**definition, canonical(input))).ok()?;
        let server = definition.origin.as_ref();
        let server = server.map_or_else(String::new, |origin| origin.server.clone());
        Some(CacheKey {
            digest: Sha256::digest(key).into(),
            changes: self.lock().changes_of(&server),
            server,
        })
    }

    /// Returns a stored result that has not expired.
    pub fn get(&self, key: &CacheKey, now: Timestamp) -> Option<ToolOutput> {
        let entries = &mut *self.lock();
        let entry = entries.by_digest.get_mut(&key.digest)?;
        // A clock that was set back makes the age negative, so unknown.
        let age = Duration::try_from(now.duration_since(entry.stored));
        if age.is_ok_and(|age| age < self.options.lifetime) {
            entries.uses += 1;
            entry.last_use = entries.uses;
            return Some(entry.output.clone());
        }
        entries.by_digest.remove(&key.digest);
        None
    }

    /// Stores a result and returns whether it did. Errors, results that are too large and results
    /// of a changed server are not stored.
    pub fn put(&self, key: CacheKey, output: &ToolOutput, now: Timestamp) -> bool {
        let bytes = serde_json::to_string(output).map_or(usize::MAX, |json| json.len());
        let CacheOptions {
            max_entries,
            max_bytes,
            ..
        } = self.options;
        let entries = &mut *self.lock();
        let is_outdated = entries.changes_of(&key.server) != key.changes;
        if output.is_error || bytes > max_bytes || max_entries == 0 || is_outdated {
            return false;
        }
        let by_digest = &mut entries.by_digest;
        by_digest.remove(&key.digest);
        while by_digest.len() >= max_entries
            || by_digest.values().map(|entry| entry.bytes).sum::<usize>() + bytes > max_bytes
        {
            let oldest = by_digest.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(oldest) = oldest.map(|(digest, _)| *digest) else {
                break;
            };
            by_digest.remove(&oldest);
        }
        entries.uses += 1;
        let entry = Entry {
            output: output.clone(),
            server: key.server,
            stored: now,
            bytes,
            last_use: entries.uses,
        };
        entries.by_digest.insert(key.digest, entry);
        true
    }

    /// Removes the results of a server, and rejects results that are being read. Called before and
    /// after each call that can change something on the server.
    pub fn invalidate(&self, server: &str) {
        let mut entries = self.lock();
        *entries.changes.entry(server.to_owned()).or_default() += 1;
        entries.by_digest.retain(|_, entry| entry.server != server);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats the cache without its results.
impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache")
            .field("options", &self.options)
            .field("entries", &self.lock().by_digest.len())
            .finish_non_exhaustive()
    }
}

impl Entries {
    fn changes_of(&self, server: &str) -> u64 {
        self.changes.get(server).copied().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;

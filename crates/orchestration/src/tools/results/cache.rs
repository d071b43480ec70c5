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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

#[derive(Default)]
struct Entries {
    by_key: HashMap<CacheKey, Entry>,
    /// Number of stores and reads so far.
    uses: u64,
    /// Numbers of changes by server. They are part of the keys, so that a change makes the earlier
    /// results of its server unreachable, also those that are being read.
    changes: HashMap<String, u64>,
}

struct Entry {
    output: ToolOutput,
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
        let origin = definition.origin.as_ref();
        let changes = origin.and_then(|origin| self.lock().changes.get(&origin.server).copied());
        let key = (principal, &**definition, canonical(input), changes);
        let key = serde_json::to_vec(&key).ok()?;
        Some(CacheKey(Sha256::digest(key).into()))
    }

    /// Returns a stored result that has not expired.
    pub fn get(&self, key: &CacheKey, now: Timestamp) -> Option<ToolOutput> {
        let entries = &mut *self.lock();
        let entry = entries.by_key.get_mut(key)?;
        // A clock that was set back makes the age negative, so unknown.
        let age = Duration::try_from(now.duration_since(entry.stored));
        if age.is_ok_and(|age| age < self.options.lifetime) {
            entries.uses += 1;
            entry.last_use = entries.uses;
            return Some(entry.output.clone());
        }
        entries.by_key.remove(key);
        None
    }

    /// Stores a result and returns whether it did. Errors and results that are too large are not
    /// stored.
    pub fn put(&self, key: CacheKey, output: &ToolOutput, now: Timestamp) -> bool {
        let bytes = serde_json::to_string(output).map_or(usize::MAX, |json| json.len());
        let CacheOptions {
            max_entries,
            max_bytes,
            ..
        } = self.options;
        if output.is_error || bytes > max_bytes || max_entries == 0 {
            return false;
        }
        let entries = &mut *self.lock();
        let by_key = &mut entries.by_key;
        by_key.remove(&key);
        while by_key.len() >= max_entries
            || by_key.values().map(|entry| entry.bytes).sum::<usize>() + bytes > max_bytes
        {
            let oldest = by_key.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            by_key.remove(&oldest);
        }
        entries.uses += 1;
        let entry = Entry {
            output: output.clone(),
            stored: now,
            bytes,
            last_use: entries.uses,
        };
        entries.by_key.insert(key, entry);
        true
    }

    /// Invalidates the results of a server, also those that are being read. Called before and after
    /// each call that can change something on the server.
    pub fn invalidate(&self, server: &str) {
        *self.lock().changes.entry(server.to_owned()).or_default() += 1;
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
            .field("entries", &self.lock().by_key.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;

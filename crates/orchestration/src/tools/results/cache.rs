//! A cache of results of read-only tools.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_domain::{JsonObject, Principal, ToolDefinition, ToolOutput};

use crate::tools::{arguments::canonical_json, is_read_only};

/// Settings of a cache for tool results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheOptions {
    /// Time for which a result stays in the cache. Later it is not returned.
    pub lifetime: Duration,
    /// Maximum number of stored results. Above it, the least recently used result is removed.
    pub max_entries: usize,
    /// Maximum total size of the stored results as JSON, in bytes. Above it, the least recently
    /// used results are removed.
    pub max_bytes: usize,
}

/// By default, the cache stores at most 256 results and 16 MiB, for 5 minutes.
impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_mins(5),
            max_entries: 256,
            max_bytes: 16 << 20,
        }
    }
}

/// An in-memory cache of results of tools that declare themselves read-only.
///
/// The cache key consists of the principal, the tool's definition and the input. The least recently
/// used result is removed first. `Debug` omits the results, which may be private.
#[derive(Default, derive_more::Debug)]
#[debug(
    "ResultCache {{ options: {options:?}, entries: {}, .. }}",
    self.lock_entries().by_key.len()
)]
pub struct ResultCache {
    options: CacheOptions,
    entries: Mutex<CacheEntries>,
}

/// The cache key of a tool result: a digest that reveals nothing about the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

#[derive(Default)]
struct CacheEntries {
    by_key: HashMap<CacheKey, CacheEntry>,
    /// Counter that grows with each cache hit and each stored result. Each entry keeps the count of
    /// its last use, so the entry with the lowest count is the least recently used one.
    uses: u64,
    /// Number of calls of [`ResultCache::invalidate_server`], by server name. The number is part of
    /// the cache key. An invalidation therefore makes earlier results of the server unreachable,
    /// even if their calls are still running.
    changes: HashMap<String, u64>,
}

struct CacheEntry {
    output: ToolOutput,
    stored: Timestamp,
    bytes: usize,
    last_use: u64,
}

impl ResultCache {
    /// Creates an empty cache with these settings.
    pub fn new(options: CacheOptions) -> Self {
        Self {
            options,
            entries: Mutex::default(),
        }
    }

    /// Returns the cache key of a tool call, or `None` for a tool that is not read-only.
    ///
    /// `definition` is the tool as its host lists it. `input` includes the values that are hidden
    /// from the model, because results can depend on them. Create the key before the call, so that
    /// [`ResultCache::invalidate_server`] during the call makes the result of this call
    /// unreachable.
    pub fn create_key(
        &self,
        principal: &Principal,
        definition: &Arc<ToolDefinition>,
        input: &JsonObject,
    ) -> Option<CacheKey> {
        if !is_read_only(definition.annotations) {
            return None;
        }
        let server = definition.server_name();
        let changes = server.and_then(|server| self.lock_entries().changes.get(server).copied());
        let key = (principal, &**definition, canonical_json(input), changes);
        let key = serde_json::to_vec(&key).ok()?;
        Some(CacheKey(Sha256::digest(key).into()))
    }

    /// Returns the stored result with this key. Returns `None` if there is none or if it has
    /// expired.
    pub fn get_result(&self, key: &CacheKey, now: Timestamp) -> Option<ToolOutput> {
        let entries = &mut *self.lock_entries();
        let entry = entries.by_key.get_mut(key)?;
        // If the clock was set back, the age of the result is unknown and the result is not used.
        let age = Duration::try_from(now.duration_since(entry.stored));
        if age.is_ok_and(|age| age < self.options.lifetime) {
            entries.uses += 1;
            entry.last_use = entries.uses;
            return Some(entry.output.clone());
        }
        entries.by_key.remove(key);
        None
    }

    /// Stores a tool result and returns `true`. Returns `false` and stores nothing if the result is
    /// an error or larger than [`CacheOptions::max_bytes`], or if [`CacheOptions::max_entries`] is
    /// 0.
    pub fn store_result(&self, key: CacheKey, output: &ToolOutput, now: Timestamp) -> bool {
        let bytes = serde_json::to_string(output).map_or(usize::MAX, |json| json.len());
        let CacheOptions {
            max_entries,
            max_bytes,
            ..
        } = self.options;
        if output.is_error || bytes > max_bytes || max_entries == 0 {
            return false;
        }
        let entries = &mut *self.lock_entries();
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
        let entry = CacheEntry {
            output: output.clone(),
            stored: now,
            bytes,
            last_use: entries.uses,
        };
        entries.by_key.insert(key, entry);
        true
    }

    /// Makes the stored results of a server unreachable, including results of running calls. Call
    /// this before and after each tool call that can change data on the server.
    pub fn invalidate_server(&self, server: &str) {
        *self
            .lock_entries()
            .changes
            .entry(server.to_owned())
            .or_default() += 1;
    }

    fn lock_entries(&self) -> MutexGuard<'_, CacheEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;

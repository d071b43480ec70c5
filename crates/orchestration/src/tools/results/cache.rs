//! A cache of results of read-only tools.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use switchboard_domain::{
    JsonObject, Media, MediaSource, Principal, ToolContent, ToolDefinition, ToolOutput,
};

use crate::{
    tools::arguments::{canonical, canonical_value},
    tools::only_reads,
};

/// Estimated overhead of an entry in bytes.
const ENTRY_BYTES: usize = 256;

/// The size and lifetime of a cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheOptions {
    /// Lifetime of a result.
    pub lifetime: Duration,
    /// Maximum number of results.
    pub max_entries: usize,
    /// Maximum size of all results in bytes.
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
    /// Number of the server's last change when the key was created. Results that were read before a
    /// later change are outdated.
    change: u64,
}

#[derive(Default)]
struct Entries {
    by_digest: HashMap<[u8; 32], Entry>,
    /// Digests by the number of their last use.
    by_use: BTreeMap<u64, [u8; 32]>,
    uses: u64,
    bytes: usize,
    /// Number of changes of all servers.
    changes: u64,
    /// Number of the last change, by server.
    changed: HashMap<String, u64>,
    /// Number of the last change that cleared the cache.
    cleared: u64,
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
        let mut hash = Sha256::new();
        for part in [&principal.tenant, &principal.user] {
            // The length makes the sequence of parts unambiguous.
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update(definition_digest(definition));
        hash.update(canonical(input));
        let server = definition.origin.as_ref();
        let server = server.map_or_else(String::new, |origin| origin.server.clone());
        let change = self.lock().last_change(&server);
        Some(CacheKey {
            digest: hash.finalize().into(),
            server,
            change,
        })
    }

    /// Returns a stored result that has not expired.
    pub fn get(&self, key: &CacheKey, now: Timestamp) -> Option<ToolOutput> {
        let mut entries = self.lock();
        let entry = entries.by_digest.get(&key.digest)?;
        if !self.is_fresh(entry.stored, now) {
            entries.remove(&key.digest);
            return None;
        }
        entries.touch(&key.digest)
    }

    /// Stores a result and returns whether it did. Errors, results that are too large and results
    /// of a changed server are not stored.
    pub fn put(&self, key: CacheKey, output: &ToolOutput, now: Timestamp) -> bool {
        let bytes = ENTRY_BYTES + bytes_of(output);
        if output.is_error || bytes > self.options.max_bytes || self.options.max_entries == 0 {
            return false;
        }
        let mut entries = self.lock();
        if entries.last_change(&key.server) != key.change {
            return false;
        }
        entries.remove(&key.digest);
        while entries.by_digest.len() >= self.options.max_entries
            || entries.bytes + bytes > self.options.max_bytes
        {
            let Some((_, &oldest)) = entries.by_use.first_key_value() else {
                break;
            };
            entries.remove(&oldest);
        }
        entries.uses += 1;
        let last_use = entries.uses;
        entries.bytes += bytes;
        entries.by_use.insert(last_use, key.digest);
        entries.by_digest.insert(
            key.digest,
            Entry {
                output: output.clone(),
                server: key.server,
                stored: now,
                bytes,
                last_use,
            },
        );
        true
    }

    /// Removes the results of a server, and rejects results that are being read. Called before and
    /// after each call that can change something on the server.
    pub fn invalidate(&self, server: &str) {
        let mut entries = self.lock();
        entries.changes += 1;
        let change = entries.changes;
        entries.changed.insert(server.to_owned(), change);
        let removed: Vec<_> = entries
            .by_digest
            .iter()
            .filter(|(_, entry)| entry.server == server)
            .map(|(digest, _)| *digest)
            .collect();
        for digest in removed {
            entries.remove(&digest);
        }
    }

    /// Removes all results.
    pub fn clear(&self) {
        let mut entries = self.lock();
        let changes = entries.changes + 1;
        *entries = Entries {
            changes,
            cleared: changes,
            ..Entries::default()
        };
    }

    /// Returns the number of results, including expired ones.
    pub fn len(&self) -> usize {
        self.lock().by_digest.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns false if the clock was set back, because the age is then unknown.
    fn is_fresh(&self, stored: Timestamp, now: Timestamp) -> bool {
        let age = now.duration_since(stored);
        Duration::try_from(age).is_ok_and(|age| age < self.options.lifetime)
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ResultCache {
    fn default() -> Self {
        Self::new(CacheOptions::default())
    }
}

/// Formats the cache without its results.
impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.lock();
        f.debug_struct("ResultCache")
            .field("options", &self.options)
            .field("entries", &entries.by_digest.len())
            .field("bytes", &entries.bytes)
            .finish_non_exhaustive()
    }
}

impl Entries {
    fn last_change(&self, server: &str) -> u64 {
        let of_server = self.changed.get(server).copied();
        of_server.unwrap_or(0).max(self.cleared)
    }

    fn touch(&mut self, digest: &[u8; 32]) -> Option<ToolOutput> {
        self.uses += 1;
        let entry = self.by_digest.get_mut(digest)?;
        self.by_use.remove(&entry.last_use);
        entry.last_use = self.uses;
        self.by_use.insert(entry.last_use, *digest);
        Some(entry.output.clone())
    }

    fn remove(&mut self, digest: &[u8; 32]) {
        if let Some(entry) = self.by_digest.remove(digest) {
            self.by_use.remove(&entry.last_use);
            self.bytes -= entry.bytes;
        }
    }
}

/// Returns the digest of everything that results can depend on, including the server.
fn definition_digest(definition: &ToolDefinition) -> [u8; 32] {
    let annotations = &definition.annotations;
    let definition = json!([
        definition.name,
        definition.origin,
        definition.title,
        definition.description,
        definition.input_schema,
        definition.output_schema,
        annotations,
    ]);
    Sha256::digest(canonical_value(&definition)).into()
}

fn bytes_of(output: &ToolOutput) -> usize {
    let content: usize = output.content.iter().map(bytes_of_piece).sum();
    content + output.structured.as_ref().map_or(0, bytes_of_value)
}

fn bytes_of_piece(piece: &ToolContent) -> usize {
    const PIECE_BYTES: usize = 64;
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    PIECE_BYTES
        + match piece {
            ToolContent::Text { text } => text.len(),
            ToolContent::Image(media) | ToolContent::Audio(media) => bytes_of_media(media),
            ToolContent::Resource {
                uri,
                media_type,
                text,
                blob,
            } => uri.len() + optional(media_type) + optional(text) + optional(blob),
            ToolContent::ResourceLink {
                uri,
                name,
                media_type,
                description,
            } => uri.len() + name.len() + optional(media_type) + optional(description),
            ToolContent::Unknown { value } => bytes_of_value(value),
            _ => 0,
        }
}

fn bytes_of_media(media: &Media) -> usize {
    media.media_type.len()
        + match &media.source {
            MediaSource::Base64(data) => data.len(),
            MediaSource::Url(url) => url.len(),
            _ => 0,
        }
}

fn bytes_of_value(value: &Value) -> usize {
    const VALUE_BYTES: usize = 32;
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(bytes_of_value).sum(),
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| VALUE_BYTES + key.len() + bytes_of_value(value))
                .sum(),
            _ => 0,
        }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;

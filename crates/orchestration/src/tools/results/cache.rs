//! Results of read-only tools, kept for a while.

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
    policy::approval::only_reads,
    tools::arguments::{canonical, canonical_value},
    tools::per_definition::PerDefinition,
};

/// Bytes that an entry takes beside its contents.
const PER_ENTRY: usize = 256;

/// What a cache keeps, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheOptions {
    /// How long a result is as good as new.
    pub lifetime: Duration,
    /// How many results are kept at most.
    pub max_entries: usize,
    /// How many bytes they have together at most.
    pub max_bytes: usize,
}

/// Five minutes, 256 results, 16 MiB.
impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_mins(5),
            max_entries: 256,
            max_bytes: 16 << 20,
        }
    }
}

/// Results of tools that say they are read-only, by who asked, which tool as it was defined, and the
/// input. What was used least recently goes first. In memory; shared by reference.
///
/// A tool's word that it is read-only is a hint; what it hides by lying is a result of its own.
pub struct ResultCache {
    options: CacheOptions,
    fingerprints: PerDefinition<[u8; 32]>,
    kept: Mutex<Kept>,
}

/// Under what a result is kept: a digest, from which nothing can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheKey {
    digest: [u8; 32],
    /// The server that gives the result; empty for a tool without one.
    server: String,
    /// The last change of that server when the key was made: what is read from then on may be older than
    /// the next one.
    change: u64,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<[u8; 32], Entry>,
    /// Digests by when they were last used, in a count of uses.
    by_use: BTreeMap<u64, [u8; 32]>,
    uses: u64,
    bytes: usize,
    /// Changes so far, of all servers.
    changes: u64,
    /// The number of the last change of each server that had one.
    changed: HashMap<String, u64>,
    /// That of the last change of everything.
    cleared: u64,
}

struct Entry {
    output: Arc<ToolOutput>,
    server: String,
    since: Timestamp,
    bytes: usize,
    used: u64,
}

impl ResultCache {
    /// An empty cache.
    pub fn new(options: CacheOptions) -> Self {
        Self {
            options,
            fingerprints: PerDefinition::default(),
            kept: Mutex::default(),
        }
    }

    /// The key of a call; `None` for a tool that does not say it is read-only.
    ///
    /// `definition` is the tool as its host gives it and `input` what it is really called with, values of
    /// the host included: two conversations must not share what differs by them.
    ///
    /// To be made before the call: a result that was on its way while its server changed is not kept.
    pub fn key(
        &self,
        principal: &Principal,
        definition: &Arc<ToolDefinition>,
        input: &JsonObject,
    ) -> Option<CacheKey> {
        if !only_reads(definition.annotations) {
            return None;
        }
        let fingerprint = self.fingerprints.of(definition, fingerprint);
        let mut hash = Sha256::new();
        for part in [&principal.tenant, &principal.user] {
            // With its length before it, no two rows of parts have the same bytes.
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update(*fingerprint);
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

    /// The result, if it is here and not too old.
    pub fn get(&self, key: &CacheKey, now: Timestamp) -> Option<ToolOutput> {
        let output = {
            let mut kept = self.lock();
            let entry = kept.entries.get(&key.digest)?;
            if !self.is_fresh(entry.since, now) {
                kept.remove(&key.digest);
                return None;
            }
            kept.touch(&key.digest)?
        };
        // Without the lock: it may be long.
        Some((*output).clone())
    }

    /// Keeps a result, and says whether it did: not one that is an error, none that is too big, and none
    /// whose key is older than the last change of its server.
    pub fn put(&self, key: CacheKey, output: &ToolOutput, now: Timestamp) -> bool {
        let bytes = PER_ENTRY + bytes_of(output);
        if output.is_error || bytes > self.options.max_bytes || self.options.max_entries == 0 {
            return false;
        }
        let output = Arc::new(output.clone());
        let mut kept = self.lock();
        if kept.last_change(&key.server) != key.change {
            return false;
        }
        kept.remove(&key.digest);
        while kept.entries.len() >= self.options.max_entries
            || kept.bytes + bytes > self.options.max_bytes
        {
            let Some((_, &oldest)) = kept.by_use.first_key_value() else {
                break;
            };
            kept.remove(&oldest);
        }
        kept.uses += 1;
        let used = kept.uses;
        kept.bytes += bytes;
        kept.by_use.insert(used, key.digest);
        kept.entries.insert(
            key.digest,
            Entry {
                output,
                server: key.server,
                since: now,
                bytes,
                used,
            },
        );
        true
    }

    /// Forgets the results of one server, also those that are on their way: before and after a tool of it
    /// runs that changes something.
    pub fn invalidate(&self, server: &str) {
        let mut kept = self.lock();
        kept.changes += 1;
        let change = kept.changes;
        kept.changed.insert(server.to_owned(), change);
        let gone: Vec<_> = kept
            .entries
            .iter()
            .filter(|(_, entry)| entry.server == server)
            .map(|(digest, _)| *digest)
            .collect();
        for digest in gone {
            kept.remove(&digest);
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut kept = self.lock();
        let changes = kept.changes + 1;
        *kept = Kept {
            changes,
            cleared: changes,
            ..Kept::default()
        };
    }

    /// How many results there are, old ones included.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A result from the future is not fresh: the clock was set back, and its age is not known.
    fn is_fresh(&self, since: Timestamp, now: Timestamp) -> bool {
        let age = now.duration_since(since);
        Duration::try_from(age).is_ok_and(|age| age < self.options.lifetime)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ResultCache {
    fn default() -> Self {
        Self::new(CacheOptions::default())
    }
}

/// Without the results, which may hold anything.
impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entries, bytes) = {
            let kept = self.lock();
            (kept.entries.len(), kept.bytes)
        };
        f.debug_struct("ResultCache")
            .field("options", &self.options)
            .field("entries", &entries)
            .field("bytes", &bytes)
            .finish_non_exhaustive()
    }
}

impl Kept {
    fn last_change(&self, server: &str) -> u64 {
        let of_server = self.changed.get(server).copied();
        of_server.unwrap_or(0).max(self.cleared)
    }

    fn touch(&mut self, digest: &[u8; 32]) -> Option<Arc<ToolOutput>> {
        self.uses += 1;
        let entry = self.entries.get_mut(digest)?;
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(entry.used, *digest);
        Some(Arc::clone(&entry.output))
    }

    fn remove(&mut self, digest: &[u8; 32]) {
        if let Some(entry) = self.entries.remove(digest) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

/// Everything of a definition that its results may depend on, its server included.
fn fingerprint(definition: &ToolDefinition) -> [u8; 32] {
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
    const PER_PIECE: usize = 64;
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    PER_PIECE
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
    const PER_VALUE: usize = 32;
    PER_VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(bytes_of_value).sum(),
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| PER_VALUE + key.len() + bytes_of_value(value))
                .sum(),
            _ => 0,
        }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
